//! What was checked, and what came of it.

use crate::schedules::ChunkError;

/// Everything that was checked of one layer on one set of data.
#[derive(Clone, Debug)]
pub struct Report {
    /// The layer's name.
    pub layer: String,
    /// B, H, T.
    pub sizes: [usize; 3],
    /// dk and dv.
    pub dims: Vec<(String, u64)>,
    /// The checks, by subject.
    pub sections: Vec<Section>,
    /// How far the chunked schedule is from the recurrence, by chunk length.
    pub curve: Vec<ChunkError>,
}

/// Checks of one subject.
#[derive(Clone, Debug)]
pub struct Section {
    /// The subject.
    pub title: String,
    /// What is compared with what.
    pub about: String,
    /// The checks.
    pub rows: Vec<Row>,
}

/// One check.
#[derive(Clone, Debug)]
pub struct Row {
    /// What was measured.
    pub what: String,
    /// The figure; None where there is none.
    pub figure: Option<f64>,
    /// The largest figure that the promise allows; None where nothing is promised.
    pub bound: Option<f64>,
    /// What came of it.
    pub verdict: Verdict,
    /// What else is to be known.
    pub note: String,
}

/// What came of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The promise holds.
    Holds,
    /// The promise is broken.
    Broken,
    /// Measured; nothing is promised.
    Measured,
    /// It could not be checked, for the reason in the note.
    NotRun,
}

impl Row {
    /// A promise: the figure is at most the bound. A figure that is no number breaks it.
    pub fn promised(what: impl Into<String>, figure: f64, bound: f64) -> Row {
        let verdict = if figure <= bound { Verdict::Holds } else { Verdict::Broken };
        Row { what: what.into(), figure: Some(figure), bound: Some(bound), verdict, note: String::new() }
    }

    /// A figure without a promise.
    pub fn measured(what: impl Into<String>, figure: f64, note: impl Into<String>) -> Row {
        Row {
            what: what.into(),
            figure: Some(figure),
            bound: None,
            verdict: Verdict::Measured,
            note: note.into(),
        }
    }

    /// A check that could not be made.
    pub fn not_run(what: impl Into<String>, why: impl Into<String>) -> Row {
        Row { what: what.into(), figure: None, bound: None, verdict: Verdict::NotRun, note: why.into() }
    }

    /// A promise whose run failed.
    pub fn failed(what: impl Into<String>, why: impl Into<String>) -> Row {
        Row { what: what.into(), figure: None, bound: None, verdict: Verdict::Broken, note: why.into() }
    }

    /// The same with a note.
    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Row {
        self.note = note.into();
        self
    }
}

impl Verdict {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Broken => "BROKEN",
            Verdict::Measured => "measured",
            Verdict::NotRun => "not run",
        }
    }
}

impl Report {
    /// Number of broken promises.
    pub fn broken(&self) -> usize {
        self.rows().filter(|r| r.verdict == Verdict::Broken).count()
    }

    /// Number of promises that hold.
    pub fn holding(&self) -> usize {
        self.rows().filter(|r| r.verdict == Verdict::Holds).count()
    }

    fn rows(&self) -> impl Iterator<Item = &Row> {
        self.sections.iter().flat_map(|s| &s.rows)
    }

    /// The report as text, at most 100 columns wide but for names that are longer.
    pub fn text(&self) -> String {
        let [b, h, t] = self.sizes;
        let dims: String = self.dims.iter().map(|(name, n)| format!(", {name} {n}")).collect();
        let mut text = format!("{}: B {b}, H {h}, T {t}{dims}\n", self.layer);
        for section in &self.sections {
            text += &section.text();
        }
        let (holding, broken) = (self.holding(), self.broken());
        text += &match broken {
            0 => format!("\nAll {holding} promises hold.\n"),
            1 => format!("\n1 promise is BROKEN; {holding} hold.\n"),
            n => format!("\n{n} promises are BROKEN; {holding} hold.\n"),
        };
        text
    }
}

impl Section {
    fn text(&self) -> String {
        let mut text = format!("\n{}\n", self.title);
        for line in wrapped(&self.about, 96) {
            text += &format!("  {line}\n");
        }
        for row in &self.rows {
            text += &row.text();
        }
        text
    }
}

impl Row {
    fn text(&self) -> String {
        let figure = self.figure.map_or(String::new(), short);
        let bound = self.bound.map_or(String::new(), |b| format!("<= {}", short(b)));
        let line = format!("  {:52} {figure:>9}  {bound:<12} {}", self.what, self.verdict.word());
        let mut text = format!("{}\n", line.trim_end());
        for line in wrapped(&self.note, 92) {
            text += &format!("      {line}\n");
        }
        text
    }
}

/// Two digits and an exponent; 0 as such.
fn short(x: f64) -> String {
    if x == 0.0 { "0".into() } else { format!("{x:.1e}") }
}

/// Text in lines of at most so many characters, cut between words.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) | None => lines.push(word.into()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_breaks_a_promise() {
        assert_eq!(Row::promised("x", f64::NAN, 1.0).verdict, Verdict::Broken);
        assert_eq!(Row::promised("x", f64::INFINITY, 1.0).verdict, Verdict::Broken);
        assert_eq!(Row::promised("x", 1.0, 1.0).verdict, Verdict::Holds);
    }

    #[test]
    fn a_report_says_how_many_promises_are_broken() {
        let rows = vec![Row::promised("a", 0.0, 0.0), Row::failed("b", "no"), Row::not_run("c", "none")];
        let section = Section { title: "T".into(), about: "word ".repeat(40), rows };
        let (layer, dims) = ("l".into(), vec![("dk".into(), 4)]);
        let report = Report { layer, sizes: [1, 2, 3], dims, sections: vec![section], curve: vec![] };
        let text = report.text();
        assert!(text.ends_with("1 promise is BROKEN; 1 hold.\n"), "{text}");
        assert!(text.lines().all(|l| l.chars().count() <= 100), "{text}");
    }
}
