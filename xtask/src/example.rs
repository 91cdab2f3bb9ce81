//! Explains and runs a shipped example: what the README's first command does.

use std::path::Path;
use std::process::{Command, ExitCode};

/// Builds `miras`, explains `examples/<name>/layer.miras`, and runs it on the tensors beside it. Results go to
/// `target/<name>.safetensors`.
pub fn run(root: &Path, name: &str) -> ExitCode {
    let folder = Path::new("examples").join(name);
    if !root.join(&folder).join("layer.miras").is_file() {
        eprintln!("there is no example `{name}`; examples/README.md lists them");
        return ExitCode::FAILURE;
    }
    let place = |file: &str| folder.join(file).display().to_string();
    // It may not be there: builds can go elsewhere.
    if let Err(error) = std::fs::create_dir_all(root.join("target")) {
        eprintln!("cannot make the folder `target`: {error}");
        return ExitCode::FAILURE;
    }
    let out = Path::new("target").join(format!("{name}.safetensors")).display().to_string();
    let (layer, inputs) = (place("layer.miras"), place("inputs.safetensors"));
    let explain = ["explain", &layer];
    let run = ["run", &layer, "--inputs", &inputs, "--out", &out];
    for arguments in [&explain[..], &run[..]] {
        if !miras(root, arguments) {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn miras(root: &Path, arguments: &[&str]) -> bool {
    let mut command = Command::new("cargo");
    command.args(["run", "--quiet", "--package", "miras-cli", "--"]).args(arguments).current_dir(root);
    match command.status() {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("cargo could not be started: {error}");
            false
        }
    }
}
