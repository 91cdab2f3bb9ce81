//! Every definition of the library elaborates.

mod common;

use common::load;

#[test]
fn every_library_layer_elaborates() {
    let mut loaded = load("");
    let names: Vec<String> = loaded.program.library_layers().into_iter().map(|l| l.name).collect();
    assert!(names.len() > 20);
    let mut wrong = String::new();
    for name in names {
        if let Err(problems) = loaded.elaborate(Some(&name), &[]) {
            wrong += &format!("{name}\n{}\n", loaded.show(&problems));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
