//! Patterns for names: `*` stands for any run of characters.

/// Whether a name fits a pattern.
pub fn fits(pattern: &str, name: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = name.strip_prefix(pieces.next().unwrap_or("")) else { return false };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else { return rest.is_empty() };
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn patterns() {
        for (pattern, name) in
            [("a", "a"), ("*", ""), ("a*", "abc"), ("*c", "abc"), ("a*b*", "aXbY"), ("a*b", "abb")]
        {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("a", "ab"), ("a*c", "ab"), ("a*a", "a"), ("b*", "ab")] {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
    }
}
