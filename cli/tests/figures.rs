//! `verify` and `bench`, whose figures differ from machine to machine.

use miras_cli::{Console, main_with};

/// Sizes at which everything takes a moment.
const SMALL: [&str; 10] = ["--backend", "cpu", "--chunk", "4", "--tokens", "9", "--dk", "4", "--dv", "4"];

/// Exit status, output and error output of a command.
fn miras(arguments: &[&str]) -> (u8, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let arguments = std::iter::once("miras").chain(arguments.iter().copied()).map(Into::into);
    let status = main_with(arguments, &mut Console::new(&mut out, &mut err));
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (status, text(out), text(err))
}

#[test]
fn verify_finds_the_promises_of_library_layers_kept() {
    for name in ["gated_deltanet", "memora", "softmax_attention"] {
        let (status, out, err) = miras(&[&["verify", name][..], &SMALL].concat());
        assert_eq!(status, 0, "{out}{err}");
        assert!(out.contains("promises hold."), "{out}");
        assert!(out.contains("cpu, chunked(4): outputs and states"), "{out}");
    }
}

/// Newton steps that have arrived stay there, so that gradients are those at the root.
#[test]
fn verify_finds_newton_steps_as_good_as_roots() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("newton.miras");
    for objective in [
        "sum((W - P)^2) / 2 + alpha * sum(W^4) / 4",
        "sum((W - P)^2) / 2 + alpha * sum(sqrt(1 + W^2))",
        "sum(W * log(W / P) - W + P) + alpha * sum(W^2) / 2",
    ] {
        let text = format!(
            "retention mine(alpha: unit = learned) {{ local(W, P) = {objective}; solve: newton(10); }}\n\
             memory: matrix; bias: l2; retention: mine; algo: gd;\n"
        );
        std::fs::write(&file, text).unwrap();
        let file = file.to_str().unwrap();
        let (status, out, err) = miras(&[&["verify", file][..], &SMALL].concat());
        assert_eq!(status, 0, "{objective}\n{out}{err}");
        assert!(out.contains("cpu, recurrent: gradients"), "{out}");
    }
}

#[test]
fn verify_plots_what_it_measured() {
    let folder = tempfile::tempdir().unwrap();
    let plot = folder.path().join("error.svg");
    let plotted = |path| [&["verify", "titans_lmm"][..], &SMALL, &["--plot", path]].concat();
    let (status, out, err) = miras(&plotted(plot.to_str().unwrap()));
    assert_eq!(status, 0, "{out}{err}");
    let svg = std::fs::read_to_string(&plot).unwrap();
    assert!(svg.starts_with("<svg ") && svg.matches("<circle").count() == 5, "{svg}");
    let nowhere = folder.path().join("no").join("such.svg");
    let (status, _, err) = miras(&plotted(nowhere.to_str().unwrap()));
    assert_eq!(status, 1);
    assert!(err.contains("E0508"), "{err}");
}

#[test]
fn verify_refuses_what_cannot_be() {
    let (status, _, err) = miras(&["verify", "yaad", "--backend", "cpu", "--dk", "4", "--dv", "5"]);
    assert_eq!(status, 1, "{err}");
    assert!(err.contains("dk"), "{err}");
    let (status, ..) = miras(&["verify", "yaad", "--inputs", "x.safetensors", "--tokens", "3"]);
    assert_eq!(status, 2);
    let (status, ..) = miras(&["verify", "yaad", "--inputs", "no such file"]);
    assert_eq!(status, 1);
}

#[test]
fn bench_times_both_schedules() {
    let (status, out, err) = miras(&["bench", "delta_net_of_nobody", "--backend", "cpu"]);
    assert_eq!((status, out.as_str()), (1, ""), "{err}");
    let sizes = ["--tokens", "5", "--dk", "4", "--dv", "4", "--heads", "1", "--runs", "2"];
    let (status, out, err) = miras(&[&["bench", "deltanet", "--backend", "cpu"][..], &sizes].concat());
    assert_eq!(status, 0, "{err}");
    assert!(out.lines().any(|l| l.starts_with("recurrent ")), "{out}");
    assert!(out.lines().any(|l| l.starts_with("chunked(64) ")), "{out}");
}
