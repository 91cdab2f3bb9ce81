//! What pages hold: fenced blocks.

/// A fenced block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The heading that it stands under, without its marks.
    pub heading: String,
    /// The first word after the fence.
    pub language: String,
    /// The other words after the fence.
    pub words: String,
    /// What stands between the fences.
    pub text: String,
}

/// The fenced blocks of a page, in order.
pub fn blocks(page: &str) -> Vec<Block> {
    let (mut found, mut heading, mut open) = (Vec::new(), String::new(), None::<Block>);
    for line in page.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (Some(_), Some(_)) => found.extend(open.take()),
            (Some(block), None) => block.text += &format!("{line}\n"),
            (None, Some(info)) => {
                let (language, words) = info.trim().split_once(' ').unwrap_or((info.trim(), ""));
                let (language, words) = (language.to_string(), words.trim().to_string());
                open = Some(Block { heading: heading.clone(), language, words, text: String::new() });
            }
            (None, None) if line.starts_with('#') => {
                heading = line.trim_start_matches('#').trim().to_string()
            }
            (None, None) => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_know_their_heading_and_words() {
        let found = blocks("# One\n```miras fails E0101\na\n\nb\n```\n## Two\n```\nc\n```\n");
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].heading.as_str(), found[0].language.as_str()), ("One", "miras"));
        assert_eq!((found[0].words.as_str(), found[0].text.as_str()), ("fails E0101", "a\n\nb\n"));
        assert_eq!((found[1].heading.as_str(), found[1].text.as_str()), ("Two", "c\n"));
    }
}
