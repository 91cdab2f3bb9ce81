//! The pages under `docs/`: every program in them is run, every page about a diagnostic shows that diagnostic, and what
//! is generated is current (`MIRAS_BLESS=1` writes it anew).

use miras_base::diagnostic::{CATALOGUE, Entry};
use miras_base::{Fault, Severity};
use miras_cli::{Console, main_with};
use miras_tests::markdown::{Block, blocks};
use miras_tests::{entries, root, snapshot, text};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// As the command itself has.
const STACK: usize = 256 << 20;

/// Pages without an example, and why.
const UNSHOWN: [(&str, &str); 5] = [
    ("E0004", "the example would be longer than 4 MiB; the front end's tests make one"),
    ("E0305", "from a text the pair is refused before (E0303); the rule's tests build such a layer"),
    ("E0601", "depends on the adapters of the machine"),
    ("E0603", "no test can take a device away from a running program"),
    ("E0901", "an example would be a bug, and be mended"),
];

/// Status, output and the codes told of.
struct Ran {
    status: u8,
    out: String,
    codes: BTreeSet<String>,
    told: String,
}

/// Runs the command in this process, on a thread with room for deep formulas.
fn miras(words: &[&str]) -> Ran {
    let words: Vec<std::ffi::OsString> =
        ["miras", "--message-format", "json"].iter().chain(words).map(Into::into).collect();
    let work = move || {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut console = Console::new(&mut out, &mut err);
        let status = main_with(words, &mut console);
        drop(console);
        (status, String::from_utf8_lossy(&out).into_owned(), String::from_utf8_lossy(&err).into_owned())
    };
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(work).expect("a thread");
    let (status, out, told) = thread.join().expect("no panic");
    let code = |line: &str| {
        Some(serde_json::from_str::<serde_json::Value>(line).ok()?["code"].as_str()?.to_string())
    };
    Ran { status, out, codes: told.lines().filter_map(code).collect(), told }
}

/// A program in a folder of its own.
fn file(folder: &tempfile::TempDir, text: &str) -> PathBuf {
    let path = folder.path().join("example.miras");
    std::fs::write(&path, text).expect("a writable folder");
    path
}

fn page_of(code: &str) -> String {
    text(&root().join("docs/errors").join(format!("{code}.md"))).unwrap_or_default()
}

#[test]
fn every_code_has_a_page_and_every_page_a_code() {
    let pages = entries(&root().join("docs/errors")).unwrap();
    let pages: BTreeSet<String> = pages
        .iter()
        .filter_map(|p| Some(p.file_stem()?.to_str()?.to_string()))
        .filter(|n| n != "README")
        .collect();
    let codes: BTreeSet<String> = CATALOGUE.iter().map(|e| e.code.0.to_string()).collect();
    assert_eq!(pages, codes);
    for Entry { code, title, .. } in CATALOGUE {
        let page = page_of(code.0);
        assert!(
            page.starts_with(&format!("# {code}: {title}\n\n")),
            "{code}: the title is not the catalogue's"
        );
        let prose = page.lines().skip(2).take_while(|l| !l.starts_with("## ")).map(str::len).sum::<usize>();
        assert!(prose > 100, "{code}: the page says too little");
        if let Some(long) = page.lines().find(|l| l.chars().count() > 100) {
            panic!("{code}: more than 100 columns: {long}");
        }
    }
}

#[test]
fn every_page_fails_with_its_code_and_is_mended_without_it() {
    let mut wrong = String::new();
    for Entry { code, .. } in CATALOGUE {
        let (page, code) = (page_of(code.0), code.0);
        let of = |title: &str| blocks(&page).into_iter().filter(|b| b.heading == title).collect::<Vec<_>>();
        let (failing, mended) = (of("Wrong"), of("Right"));
        if UNSHOWN.iter().any(|(unshown, _)| *unshown == code) {
            assert!(failing.is_empty(), "{code} has an example: take it out of UNSHOWN");
            continue;
        }
        if failing.len() != 1 || mended.len() != 1 {
            wrong += &format!("{code}: one example under `## Wrong` and one under `## Right`\n");
            continue;
        }
        let (found, _) = told_by(&failing[0]);
        if found != BTreeSet::from([code.to_string()]) {
            wrong += &format!("{code}: the wrong example gives {found:?}\n");
        }
        let (found, status) = told_by(&mended[0]);
        if status != 0 || found.contains(code) {
            wrong += &format!("{code}: the right example gives {found:?}, status {status}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// The codes that a block gives, and its status: of a program by running it, of a transcript (which another test holds
/// to what the command prints) by reading it.
fn told_by(block: &Block) -> (BTreeSet<String>, u8) {
    if block.language == "console" {
        let code = |line: &str| {
            let line = line.strip_prefix("note[").unwrap_or(line);
            let known =
                |e: &&Entry| line.starts_with(e.code.0) && !line[5..].starts_with(char::is_alphanumeric);
            CATALOGUE.iter().find(known).map(|e| e.code.0.to_string())
        };
        let lines: Vec<&str> = block.text.lines().collect();
        let failed = lines.iter().any(|l| l.starts_with("(exit status"));
        return (lines.into_iter().filter_map(code).collect(), u8::from(failed));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = file(&folder, &block.text);
    let ran = miras(&["explain", &path.display().to_string()]);
    (ran.codes, ran.status)
}

#[test]
fn the_index_of_codes_is_current() {
    let mut page = String::from(
        "# Diagnostics\n\nWhat Miras can say, by code. `miras explain E0101` shows a page in the terminal.\n\nThis page is generated \
         from the catalogue.\n",
    );
    for (letter, title) in [("E", "Errors"), ("W", "Warnings and notes")] {
        let _ = write!(page, "\n## {title}\n\n| code | meaning | about |\n|---|---|---|\n");
        for e in CATALOGUE.iter().filter(|e| e.code.0.starts_with(letter)) {
            let about = match (e.severity, e.fault) {
                (Severity::Note, _) => "for your information",
                (_, Fault::Program) => "your program or data",
                (_, Fault::Limit) => "a limit of Miras or of the machine",
                (_, Fault::Bug) => "a bug in Miras",
            };
            let _ = writeln!(page, "| [{0}]({0}.md) | {1} | {about} |", e.code, e.title);
        }
    }
    snapshot::hold(&root().join("docs/errors/README.md"), &page).unwrap();
}

#[test]
fn every_program_of_the_guide_is_right_or_fails_as_it_says() {
    let mut wrong = String::new();
    let mut count = 0;
    for name in ["docs/guide.md", "docs/mathematics.md"] {
        let page = text(&root().join(name)).unwrap();
        for block in blocks(&page).into_iter().filter(|b| b.language == "miras") {
            count += 1;
            if let Err(what) = guided(&block) {
                wrong += &format!("{name}, under \"{}\":\n{}\n{what}\n", block.heading, block.text);
            }
        }
    }
    assert!(count >= 20, "{count} programs");
    assert!(wrong.is_empty(), "{wrong}");
}

/// Checks a program, and explains each of its layers; one marked `fails CODE` must be refused with that code alone.
fn guided(block: &Block) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let path = file(&folder, &block.text).display().to_string();
    let checked = miras(&["check", &path]);
    if let Some(code) = block.words.strip_prefix("fails ") {
        let alone = checked.codes == BTreeSet::from([code.to_string()]);
        return if alone && checked.status == 1 { Ok(()) } else { Err(format!("gives {:?}", checked.codes)) };
    }
    if checked.status != 0 || !checked.codes.iter().all(|c| c.starts_with('W')) {
        return Err(checked.told);
    }
    // `FILE: name (class), ...`
    let layers = checked.out.trim().rsplit_once(": ").map_or("", |(_, layers)| layers);
    for layer in
        layers.split(", ").filter_map(|l| l.strip_suffix(')')?.split_once(" (")).map(|(name, _)| name)
    {
        let words = ["explain", &path, "--layer", layer];
        let explained = if layer == "anonymous" { miras(&words[..2]) } else { miras(&words) };
        if layers.starts_with("definitions only") {
            break;
        }
        if explained.status != 0 {
            return Err(explained.told);
        }
    }
    Ok(())
}

#[test]
fn the_page_of_the_library_is_current() {
    let mut page = String::from(
        "# The library\n\nEvery definition that ships with Miras, as `miras list` shows it, with its text, and of each \
         layer the recurrence that follows from it, as `miras explain` prints it. The library is written in the \
         language and has no privilege: a definition of your own is treated in the same way.\n\nThis page is generated from \
         [stdlib/](../stdlib).\n",
    );
    let listed = miras(&["list"]).out;
    let mut files: Vec<(String, &str)> = miras_stdlib::files().collect();
    files.sort();
    let mut kind = String::new();
    for (path, source) in files {
        let (folder, name) = path.split_once('/').expect("a folder and a name");
        let name = name.trim_end_matches(".miras");
        if folder != kind {
            let _ = write!(page, "\n## {folder}\n");
            kind = folder.to_string();
        }
        let line = listed.lines().skip_while(|l| *l != folder).skip(1).take_while(|l| l.starts_with("  "));
        let mut about = line.filter_map(|l| l.trim_start().split_once("  "));
        let about = about.find(|(n, _)| n.trim() == name).map(|(_, about)| about.trim());
        let about = about.unwrap_or_else(|| panic!("`miras list` does not show {path}"));
        let _ = write!(page, "\n### {name}\n\n{about}\n\n```\n{}```\n", source);
        if folder == "layer" {
            page += &recurrence(name);
        }
    }
    snapshot::hold(&root().join("docs/library.md"), &page).unwrap();
}

/// The recurrence of a layer, its class and its schedule, as `miras explain` has them.
fn recurrence(name: &str) -> String {
    let explained = miras(&["explain", name, "--format", "json"]).out;
    let explained: serde_json::Value = serde_json::from_str(&explained).expect("JSON");
    let layer = &explained["layers"][0];
    let text = |value: &serde_json::Value| value.as_str().expect("a text").to_string();
    let steps = layer["derivation"].as_array().expect("steps").iter();
    let inner = steps.filter(|s| text(&s["title"]).starts_with("Inner gradient")).map(|s| &s["formulas"]);
    let formulas = inner.chain([&layer["closed_form"]]).flat_map(|f| f.as_array().expect("formulas"));
    let mut page = String::from("\n```\n");
    for formula in formulas {
        let remark = text(&formula["remark"]);
        let remark = if remark.is_empty() { remark } else { format!("    ({remark})") };
        let _ = writeln!(page, "{}{remark}", text(&formula["text"]));
    }
    let (class, schedule) = (text(&layer["class"]["title"]), text(&layer["schedule"]["title"]));
    let _ = write!(page, "```\n\nClass: {class}. Schedule: {schedule}.\n");
    page
}

#[test]
fn every_definition_of_the_library_names_its_source() {
    let known = ["Miras", "Titans", "TTT", "arXiv"];
    for (path, source) in miras_stdlib::files() {
        let comment: String = source.lines().take_while(|l| l.starts_with("//")).collect();
        let named =
            comment.split_once("Source: ").is_some_and(|(_, at)| known.iter().any(|k| at.starts_with(k)));
        assert!(named, "stdlib/{path} names no paper as its source:\n{comment}");
        let about = comment.trim_start_matches('/').trim();
        assert!(about.len() > 40, "stdlib/{path} says too little");
    }
}

#[test]
fn a_new_project_does_what_its_page_says() {
    let folder = tempfile::tempdir().unwrap();
    let miras = |place: &Path, words: &[&str]| {
        let done = std::process::Command::new(env!("CARGO_BIN_EXE_miras-under-test"))
            .args(words)
            .current_dir(place)
            .output();
        let done = done.expect("the command runs");
        assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    miras(folder.path(), &["new", "first_try"]);
    let project = folder.path().join("first_try");
    let page = text(&project.join("README.md")).unwrap();
    let commands: Vec<String> = blocks(&page)
        .into_iter()
        .filter(|b| b.language == "console")
        .flat_map(|b| {
            b.text.lines().filter_map(|l| l.strip_prefix("$ miras ")).map(String::from).collect::<Vec<_>>()
        })
        .collect();
    assert!(commands.len() >= 4, "{page}");
    for command in commands {
        miras(&project, &command.split_whitespace().collect::<Vec<_>>());
    }
    assert!(project.join("out.safetensors").is_file());
}

#[test]
fn nobody_complains_of_a_missing_runtime_folder() {
    let done = std::process::Command::new(env!("CARGO_BIN_EXE_miras-under-test"))
        .arg("devices")
        .env_remove("XDG_RUNTIME_DIR")
        .output()
        .expect("the command runs");
    assert!(done.status.success());
    assert_eq!(String::from_utf8_lossy(&done.stderr), "");
}

#[test]
fn the_highlighting_knows_the_words_of_the_language() {
    let page = text(&root().join("grammar/miras.tmLanguage.json")).unwrap();
    let colours: serde_json::Value = serde_json::from_str(&page).expect("JSON");
    let rules: BTreeSet<&str> =
        colours["repository"].as_object().expect("rules").keys().map(String::as_str).collect();
    let included = colours["patterns"].as_array().expect("patterns").iter();
    let included: BTreeSet<&str> =
        included.filter_map(|p| p["include"].as_str()?.strip_prefix('#')).collect();
    assert_eq!(rules, included);
    let words = "if then else let for in on use bias retention memory algo fn layer chunk read solve repeat window \
                 refine weight slow state input trained history require dual real positive unit nat bool learned";
    let known: BTreeSet<&str> = page.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    for word in words.split_whitespace() {
        assert!(known.contains(word), "`{word}` has no colour");
    }
}
