//! Texts made wrong at random, always the same ones: nothing may panic or hang, and what is told must have a
//! place inside the text.

use super::{base, programs, right_programs, syntax};

/// A linear congruential generator: the cases are the same on every machine.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n.max(1)
    }

    fn place(&mut self, text: &str) -> usize {
        let mut at = self.below(text.len() + 1);
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    }
}

const SCRAPS: &[&str] = &[
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ";",
    ":",
    ",",
    "=",
    "==",
    "..",
    "..=",
    ".",
    "'",
    "\"",
    "-",
    "^",
    "@",
    "//",
    "\n",
    "\r\n",
    "if ",
    "then ",
    "else ",
    "let ",
    "for ",
    "in ",
    "layer ",
    "weight W[1]: ",
    "use \"a\"",
    "1e999",
    "2x",
    "\u{3b1}",
    "\u{feff}",
    "\u{1f980}",
    "\0",
    "bias b {",
    "fn f(",
    "dual ",
    "history k",
    "{a, b}",
    "S'",
];

/// Takes away, puts in, doubles or moves a stretch.
fn mutate(text: &mut String, dice: &mut Dice) {
    let (a, b) = (dice.place(text), dice.place(text));
    let near = (a + dice.below(12)).min(text.len());
    let near = (near..=text.len()).find(|i| text.is_char_boundary(*i)).unwrap_or(text.len());
    match dice.below(5) {
        0 => text.replace_range(a..near, ""),
        1 => text.insert_str(a, SCRAPS[dice.below(SCRAPS.len())]),
        2 => {
            let stretch = text[a..near].to_string();
            text.insert_str(b, &stretch);
        }
        3 => text.replace_range(a..near, SCRAPS[dice.below(SCRAPS.len())]),
        _ => text.truncate(a),
    }
}

fn check(text: &str) {
    let (file, problems) = syntax::parse(base::FileId(0), text);
    for problem in &problems {
        assert_ne!(problem.code, base::diagnostic::code::BUG, "{problem:?} in {text}");
        assert!(!problem.labels.is_empty() && problem.help.is_some(), "{problem:?} in {text}");
        for label in &problem.labels {
            let place = text.get(label.span.start as usize..label.span.end as usize);
            assert!(place.is_some(), "{problem:?} in {text}");
        }
    }
    match syntax::format(text, base::FileId(0)) {
        Ok(set) => {
            assert_eq!(problems, [], "{text}");
            assert_eq!(syntax::format(&set, base::FileId(0)).as_ref(), Ok(&set), "{text}");
            let (again, _) = syntax::parse(base::FileId(0), &set);
            assert_eq!(syntax::print::file(&again), syntax::print::file(&file), "{text}");
        }
        Err(refused) => assert_eq!(refused, problems, "{text}"),
    }
}

#[test]
fn mutated_programs_never_panic() {
    let mut sources = right_programs();
    sources.extend(programs("tests/mistakes"));
    let mut dice = Dice(2504);
    for case in 0..20_000 {
        let mut text = sources[case % sources.len()].1.clone();
        // Mostly short stretches, so that several mistakes still leave something to read.
        let start = dice.place(&text);
        text.replace_range(..start, "");
        let end = (600.min(text.len())..=text.len()).find(|i| text.is_char_boundary(*i));
        text.truncate(end.unwrap_or(text.len()));
        for _ in 0..=dice.below(3) {
            mutate(&mut text, &mut dice);
        }
        check(&text);
    }
}

#[test]
fn heaps_of_scraps_never_panic() {
    let mut dice = Dice(13173);
    for _ in 0..5_000 {
        let scraps: String = (0..dice.below(40)).map(|_| SCRAPS[dice.below(SCRAPS.len())]).collect();
        check(&scraps);
    }
}
