//! Rebuilds the command when a page of `docs/errors` is added, changed or removed.

fn main() {
    println!("cargo::rerun-if-changed=../docs/errors");
}
