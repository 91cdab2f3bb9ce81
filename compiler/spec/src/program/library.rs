//! The library as text.

/// Texts of definitions that a program may use without naming their files.
#[derive(Clone, Debug, Default)]
pub struct Library {
    texts: Vec<(String, String)>,
}

impl Library {
    /// The library that ships with Miras.
    pub fn standard() -> Library {
        Library::from_texts(miras_stdlib::files().map(|(path, text)| (format!("stdlib/{path}"), text)))
    }

    /// No definitions at all.
    pub fn empty() -> Library {
        Library::default()
    }

    /// A library of these texts, each with its name in messages.
    pub fn from_texts<N: Into<String>, T: Into<String>>(texts: impl IntoIterator<Item = (N, T)>) -> Library {
        Library { texts: texts.into_iter().map(|(name, text)| (name.into(), text.into())).collect() }
    }

    /// Names and texts.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts.iter().map(|(name, text)| (name.as_str(), text.as_str()))
    }
}
