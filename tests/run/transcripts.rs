//! Command lines with what they print: `cli/*.txt` and the pages under `docs/` (run in a copy of `cli/files`), and
//! the pages of `examples/` (run in a copy of the example's folder), whose inputs are checked too.

mod made;

use libtest_mimic::{Arguments, Failed, Trial};
use miras_tests::{Verdict, bless, entries, folder, root, text, transcript};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The command, built from the sources of `cli/`.
const MIRAS: &str = env!("CARGO_BIN_EXE_miras-under-test");

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    if bless() {
        arguments.test_threads = Some(1);
    }
    match trials() {
        Ok(trials) => libtest_mimic::run(&arguments, trials).exit_code(),
        Err(what) => {
            eprintln!("{what}");
            ExitCode::FAILURE
        }
    }
}

/// What is made comes before what reads it, so that one blessing is enough with one thread.
fn trials() -> Result<Vec<Trial>, String> {
    let files = folder().join("cli").join("files");
    let place = |name: &str| files.join(name).with_extension("safetensors");
    let mut all = Vec::new();
    for (name, change) in made::FILES {
        all.push(trial(&folder(), &place(name), move |path| made::file(path, change)));
    }
    all.push(trial(&folder(), &place(made::TRUNCATED), made::truncated));
    all.push(trial(&folder(), &place(made::HALFWAY), made::halfway));
    let pages = entries(&root().join("docs"))?.into_iter().chain(entries(&root().join("docs/errors"))?);
    for path in pages.filter(|p| has_transcript(p)) {
        let files = files.clone();
        all.push(trial(&root(), &path, move |path| transcript::hold(path, &files, Path::new(MIRAS))));
    }
    for path in entries(&folder().join("cli"))?.into_iter().filter(|p| p.is_file()) {
        let files = files.clone();
        all.push(trial(&folder(), &path, move |path| transcript::hold(path, &files, Path::new(MIRAS))));
    }
    for path in entries(&root().join("examples"))?.into_iter().filter(|p| p.is_dir()) {
        all.push(trial(&root(), &path.join("inputs.safetensors"), made::example));
        let page = path.join("README.md");
        all.push(trial(&root(), &page, move |page| transcript::hold(page, &path, Path::new(MIRAS))));
    }
    Ok(all)
}

/// Whether a file is a page with commands in it.
fn has_transcript(path: &Path) -> bool {
    let page = path.extension().is_some_and(|e| e == "md");
    page && text(path).is_ok_and(|text| text.lines().any(|l| l.trim_end() == "```console"))
}

fn trial(base: &Path, path: &Path, work: impl FnOnce(&Path) -> Verdict + Send + 'static) -> Trial {
    let name = path.strip_prefix(base).unwrap_or(path).display().to_string();
    let path: PathBuf = path.to_path_buf();
    Trial::test(name, move || work(&path).map_err(Failed::from))
}
