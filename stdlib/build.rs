//! Rebuilds the crate when a file of the library is added or removed.

fn main() {
    for folder in ["bias", "retention", "memory", "algo", "layer"] {
        println!("cargo::rerun-if-changed={folder}");
    }
}
