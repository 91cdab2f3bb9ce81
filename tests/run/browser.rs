//! The page of `examples/05_browser` in a headless Chromium: an emitted plan through WebGPU, by JavaScript that knows
//! `plan.json` only, against the reference's numbers.
//!
//! Without Chromium the trial is listed as ignored; with `MIRAS_REQUIRE_BROWSER=1` that is a failure. Chromium computes
//! in software (SwiftShader) here.

use libtest_mimic::{Arguments, Failed, Trial};
use miras_tests::{Verdict, entries, root};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// The command, built from the sources of `cli/`.
const MIRAS: &str = env!("CARGO_BIN_EXE_miras-under-test");

/// How long the browser may take.
const PATIENCE: Duration = Duration::from_secs(120);

fn main() -> ExitCode {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let browser = names.into_iter().find(|n| Command::new(n).arg("--version").output().is_ok());
    let required = std::env::var_os("MIRAS_REQUIRE_BROWSER").is_some_and(|v| v == "1");
    if browser.is_none() {
        eprintln!("not run: the browser's trials, as Chromium is not installed");
    }
    let trial = Trial::test("examples/05_browser", move || {
        let browser = browser.ok_or("Chromium is required, and not installed")?;
        page(browser).map_err(Failed::from)
    });
    let trials = vec![trial.with_ignored_flag(browser.is_none() && !required)];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn page(browser: &str) -> Verdict {
    let io = |e: std::io::Error| e.to_string();
    let place = tempfile::tempdir().map_err(io)?;
    for file in entries(&root().join("examples/05_browser"))? {
        std::fs::copy(&file, place.path().join(file.file_name().unwrap_or_default())).map_err(io)?;
    }
    miras(
        place.path(),
        &["build", "layer.miras", "--emit", "wgsl", "--dk", "8", "--dv", "8", "-o", "kernels"],
    )?;
    let reference =
        ["run", "layer.miras", "--inputs", "inputs.safetensors", "--out", "reference.safetensors"];
    miras(place.path(), &[&reference[..], &["--backend", "reference"]].concat())?;
    let listener = TcpListener::bind("127.0.0.1:0").map_err(io)?;
    let address = format!("http://localhost:{}/index.html?report", listener.local_addr().map_err(io)?.port());
    let (tell, told) = mpsc::channel();
    let folder = place.path().to_path_buf();
    // Ends with the process; the trial does not wait for it.
    std::thread::spawn(move || listener.incoming().flatten().for_each(|s| drop(serve(s, &folder, &tell))));
    let profile = tempfile::tempdir().map_err(io)?;
    let mut running = start(browser, profile.path(), &address)?;
    let report = told.recv_timeout(PATIENCE);
    // It may have ended by itself.
    let _ = running.kill();
    let _ = running.wait();
    judge(&report.map_err(|_| format!("the page has not reported within {} s", PATIENCE.as_secs()))?)
}

fn miras(place: &Path, arguments: &[&str]) -> Verdict {
    let ran =
        Command::new(MIRAS).args(arguments).args(["--schedule", "recurrent"]).current_dir(place).output();
    let ran = ran.map_err(|e| e.to_string())?;
    match ran.status.success() {
        true => Ok(()),
        false => Err(format!("miras {}: {}", arguments.join(" "), String::from_utf8_lossy(&ran.stderr))),
    }
}

fn start(browser: &str, profile: &Path, address: &str) -> Result<Child, String> {
    let options = [
        "--headless",
        "--no-sandbox",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--enable-unsafe-webgpu",
        "--use-webgpu-adapter=swiftshader",
    ];
    let mut command = Command::new(browser);
    command.args(options).arg(format!("--user-data-dir={}", profile.display())).arg(address);
    command.stdout(Stdio::null()).stderr(Stdio::null()).stdin(Stdio::null());
    command.spawn().map_err(|e| format!("{browser}: {e}"))
}

/// What the page says of itself.
fn judge(report: &str) -> Verdict {
    let told: serde_json::Value = serde_json::from_str(report).map_err(|e| format!("{e}: {report}"))?;
    eprintln!("{report}");
    let compared = told["found"].as_array().map_or(0, Vec::len);
    // The outputs and the two weights.
    match told["ok"].as_bool() == Some(true) && compared == 3 {
        true => Ok(()),
        false => Err(format!("the page reports {report}")),
    }
}

/// Answers one request: a file of the folder, or a report taken.
fn serve(stream: TcpStream, folder: &Path, tell: &mpsc::Sender<String>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default().to_string());
    let posted = method == "POST";
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        if let Some(n) = header.to_lowercase().strip_prefix("content-length:") {
            length = n.trim().parse().unwrap_or(0);
        }
        if header.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    if posted {
        // Nobody listens any more where the trial has given up.
        let _ = tell.send(String::from_utf8_lossy(&body).into_owned());
        return answer(stream, "200 OK", "text/plain", b"");
    }
    let name = path.split('?').next().unwrap_or_default().trim_start_matches('/');
    match std::fs::read(folder.join(name)) {
        Ok(bytes) => answer(stream, "200 OK", kind(name), &bytes),
        Err(_) => answer(stream, "404 Not Found", "text/plain", b""),
    }
}

fn kind(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("html") => "text/html",
        Some("js") => "text/javascript",
        Some("json") => "application/json",
        Some(_) | None => "application/octet-stream",
    }
}

fn answer(mut stream: TcpStream, status: &str, kind: &str, body: &[u8]) -> std::io::Result<()> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)
}
