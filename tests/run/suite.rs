//! Programs with a header that says what to do with them, and a snapshot of what came of it beside each.
//!
//! A header line is one step: `//: WORDS` gives the words to `miras`, `@` standing for the file itself; and
//! `//: run WORDS` makes inputs and runs them on every backend, with words from
//! `B n`, `H n`, `T n`, `dk n`, `dv n`, `seed n`, `schedule s`, `chunk n`, `layer l`, `set name=value`.

use libtest_mimic::{Arguments, Failed, Trial};
use miras_cli::{Account, Asked, Backend, Console, Finished, ScheduleName};
use miras_driver::Choice;
use miras_host as host;
use miras_tests::compare::difference;
use miras_tests::pipeline::{self, Loaded};
use miras_tests::{Verdict, adapter_or_required, entries, folder, snapshot, text};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// How far float32 may be from float64 on synthetic inputs, relative to a tensor's largest entry: a thousand
/// roundings, where runs of a few tokens make tens.
const NARROW: f64 = 1e-4;

/// As the command itself has.
const STACK: usize = 256 << 20;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    // Files are named in messages as seen from here.
    if let Err(error) = std::env::set_current_dir(folder().join("suite")) {
        eprintln!("tests/suite: {error}");
        return ExitCode::FAILURE;
    }
    match trials(Path::new(".")) {
        Ok(trials) => libtest_mimic::run(&arguments, trials).exit_code(),
        Err(what) => {
            eprintln!("{what}");
            ExitCode::FAILURE
        }
    }
}

/// A trial for each program; what lies in a folder `used` belongs to programs beside it. A snapshot without its
/// program is a mistake.
fn trials(folder: &Path) -> Result<Vec<Trial>, String> {
    let mut all = Vec::new();
    for path in entries(folder)? {
        let path = path.strip_prefix(".").map(Path::to_path_buf).unwrap_or(path);
        let ending = path.extension().map(|e| e.to_string_lossy().into_owned());
        match ending.as_deref() {
            _ if path.is_dir() && path.ends_with("used") => {}
            _ if path.is_dir() => all.extend(trials(&path)?),
            Some("miras") => {
                let name = path.with_extension("").display().to_string();
                all.push(Trial::test(name, move || verdict(&path).map_err(Failed::from)));
            }
            Some("snap") if path.with_extension("miras").is_file() => {}
            _ => return Err(format!("tests/suite/{} belongs to no program", path.display())),
        }
    }
    Ok(all)
}

fn verdict(path: &Path) -> Verdict {
    let source = text(path)?;
    let steps: Vec<&str> = source.lines().map_while(|l| l.strip_prefix("//:")).map(str::trim).collect();
    if steps.is_empty() {
        return Err("it does not begin with a line `//: ...` that says what to do with it".into());
    }
    let mut page = source.trim_end().to_string();
    page.push('\n');
    for step in steps {
        let words: Vec<String> = step.split_whitespace().map(String::from).collect();
        let path: PathBuf = path.to_path_buf();
        // Writing to a string cannot fail.
        let _ = write!(page, "\n==== {step}\n");
        let work = move || match words.split_first() {
            Some((first, words)) if first == "run" => run(&path, words),
            _ => Ok(command(&path, &words)),
        };
        let thread = std::thread::Builder::new().stack_size(STACK).spawn(work).map_err(|e| e.to_string())?;
        page += &thread.join().map_err(|_| format!("panicked: {step}"))??;
    }
    snapshot::hold(&path.with_extension("snap"), &page)
}

/// What `miras` says: the output, the error output, and the status where it is not 0.
fn command(path: &Path, words: &[String]) -> String {
    let words = words.iter().map(|w| if w == "@" { path.as_os_str().into() } else { w.into() });
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let arguments = std::iter::once("miras".into()).chain(words);
    let status = miras_cli::main_with(arguments, &mut Console::new(&mut out, &mut err));
    let mut said = String::from_utf8_lossy(&out).into_owned();
    said += &String::from_utf8_lossy(&err);
    if status != miras_cli::DONE {
        let _ = writeln!(said, "status {status}");
    }
    said
}

/// What a run is asked for.
struct Wanted {
    inputs: host::Synthetic,
    choice: Choice,
    asked: Asked,
}

fn run(path: &Path, words: &[String]) -> Result<String, String> {
    let wanted = wanted(words)?;
    let name = path.display().to_string();
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut used = |used: &str| Ok((used.to_string(), text(&folder.join(used))?));
    let mut loaded = match pipeline::load_with(&name, &text(path)?, &wanted.choice, &mut used) {
        Ok(loaded) => loaded,
        Err(errors) => return Ok(format!("{}\n", pipeline::told(&errors))),
    };
    let data = host::synthetic(&loaded.rule, &wanted.inputs).map_err(|d| d.to_string())?;
    let reference = match run_on(Backend::Reference, &mut loaded, &data, &wanted) {
        Ok(finished) => finished,
        Err(errors) => return Ok(format!("reference: {}\n", pipeline::told(&errors))),
    };
    let mut page = format!("{}\n", order(&reference.account));
    for (name, tensor) in reference.results.iter() {
        let _ = writeln!(page, "{name} {:?}: {}", tensor.shape, first_numbers(tensor));
    }
    let compiled = match run_on(Backend::Cpu, &mut loaded, &data, &wanted) {
        Ok(finished) => {
            let agreed = agreement("cpu", &finished, &reference)?;
            // Snapshots are the same with and without an adapter.
            if adapter_or_required() {
                let finished = run_on(Backend::Gpu, &mut loaded, &data, &wanted);
                agreement("gpu", &finished.map_err(|e| pipeline::told(&e))?, &reference)?;
            }
            agreed
        }
        Err(errors) => pipeline::told(&errors),
    };
    let _ = writeln!(page, "cpu: {compiled}");
    Ok(page)
}

fn run_on(
    backend: Backend,
    loaded: &mut Loaded,
    data: &host::Bundle,
    wanted: &Wanted,
) -> pipeline::Fallible<Finished> {
    loaded.run(data, &Asked { backend, ..wanted.asked.clone() })
}

fn wanted(words: &[String]) -> Result<Wanted, String> {
    let mut inputs = host::Synthetic { seed: 1, batch: 1, heads: 1, tokens: 5, dk: 3, dv: 3, grad: false };
    let (mut choice, mut asked) = (Choice::default(), pipeline::asked(Backend::Reference));
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("`{word}` wants a value"))?;
        let number = || value.parse::<usize>().map_err(|e| format!("{word} {value}: {e}"));
        match word.as_str() {
            "B" => inputs.batch = number()?,
            "H" => inputs.heads = number()?,
            "T" => inputs.tokens = number()?,
            "dk" => inputs.dk = number()?,
            "dv" => inputs.dv = number()?,
            "seed" => inputs.seed = number()? as u64,
            "chunk" => asked.chunk = Some(u32::try_from(number()?).map_err(|e| e.to_string())?),
            "layer" => choice.layer = Some(value.clone()),
            "schedule" if value == "recurrent" => asked.schedule = Some(ScheduleName::Recurrent),
            "schedule" if value == "chunked" => asked.schedule = Some(ScheduleName::Chunked),
            "set" => {
                let (name, value) = value.split_once('=').ok_or("set wants name=value")?;
                choice.overrides.push((name.into(), value.into()));
            }
            _ => return Err(format!("`{word} {value}` says nothing here")),
        }
    }
    Ok(Wanted { inputs, choice, asked })
}

fn order(account: &Account) -> String {
    let schedule = match (account.schedule, account.exact) {
        (host::Schedule::Recurrent, _) => "recurrent".to_string(),
        (host::Schedule::Chunked(c), Some(false)) => format!("chunked({c}), frozen"),
        (host::Schedule::Chunked(c), _) => format!("chunked({c}), exact"),
    };
    format!("class {:?}, {schedule}", account.class)
}

/// As many numbers as show that the values are the same.
fn first_numbers(tensor: &host::Tensor) -> String {
    const SHOWN: usize = 6;
    if let Some(integers) = tensor.i64s() {
        return format!("{integers:?}");
    }
    let values = tensor.f64s().unwrap_or_default();
    // Adding 0 takes the sign from a zero.
    let number = |x: &f64| format!("{:.5}", (x * 1e5).round() / 1e5 + 0.0);
    let shown: Vec<String> = values.iter().take(SHOWN).map(number).collect();
    let more = if values.len() > SHOWN { " ..." } else { "" };
    format!("{}{more}", shown.join(" "))
}

fn agreement(backend: &str, found: &Finished, expected: &Finished) -> Result<String, String> {
    if order(&found.account) != order(&expected.account) {
        return Err(format!("{backend} ran {}", order(&found.account)));
    }
    for (name, tensor) in expected.results.iter() {
        let found = found.results.get(name).ok_or_else(|| format!("{backend}: `{name}` is missing"))?;
        if let Some(what) = difference(found, tensor, NARROW, NARROW * 1e-2) {
            return Err(format!("{backend}: `{name}` {what}"));
        }
    }
    Ok(format!("agrees to {NARROW:e}"))
}
