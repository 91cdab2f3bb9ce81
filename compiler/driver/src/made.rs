//! What a room gave and what it said.

use miras_base::Diagnostic;

/// Data of a room with the notes and warnings that come with it.
#[derive(Clone, Debug)]
pub struct Made<T> {
    /// The data.
    pub value: T,
    /// Notes and warnings, in the order in which they were found.
    pub said: Vec<Diagnostic>,
}

/// Data, or the diagnostics that stopped it (at least one of them an error).
pub type Outcome<T> = Result<Made<T>, Vec<Diagnostic>>;

impl<T> Made<T> {
    /// Data with what was said about it.
    pub fn new(value: T, said: Vec<Diagnostic>) -> Made<T> {
        Made { value, said }
    }

    /// The data, unless something that was said is an error.
    ///
    /// # Errors
    /// All that was said, where some of it is an error.
    pub fn unless_wrong(value: T, said: Vec<Diagnostic>) -> Outcome<T> {
        if said.iter().any(Diagnostic::is_error) { Err(said) } else { Ok(Made { value, said }) }
    }

    /// Goes on with the data; what was said before comes first, also where the next step fails.
    ///
    /// # Errors
    /// Those of the next step, behind what was said before.
    pub fn then<U>(self, next: impl FnOnce(T) -> Outcome<U>) -> Outcome<U> {
        let mut said = self.said;
        match next(self.value) {
            Ok(made) => {
                said.extend(made.said);
                Ok(Made { value: made.value, said })
            }
            Err(errors) => {
                said.extend(errors);
                Err(said)
            }
        }
    }

    /// Other data with the same remarks.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Made<U> {
        Made { value: change(self.value), said: self.said }
    }

    /// The data; what was said goes into a list.
    pub fn heard(self, list: &mut Vec<Diagnostic>) -> T {
        list.extend(self.said);
        self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use miras_base::diagnostic::code;

    fn remark(text: &str) -> Diagnostic {
        Diagnostic::new(code::DECLARED, text)
    }

    #[test]
    fn what_was_said_comes_before_the_error_that_followed() {
        let made = Made::new(1, vec![remark("first")]);
        let failed: Outcome<()> = made.then(|_| Err(vec![Diagnostic::bug("second")]));
        let messages: Vec<String> = failed.unwrap_err().into_iter().map(|d| d.message).collect();
        assert_eq!(messages, ["first", "second"]);
    }

    #[test]
    fn an_error_among_the_remarks_stops() {
        assert!(Made::unless_wrong((), vec![remark("a"), Diagnostic::bug("b")]).is_err());
        assert!(Made::unless_wrong((), vec![remark("a")]).is_ok());
    }
}
