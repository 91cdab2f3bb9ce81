//! Documents of library layers and of texts.

use miras_base::SourceMap;
use miras_explain::{Document, Written};
use miras_schedule::{Plan, Request};
use miras_spec::{Library, Program};

/// The library as a program, with its texts.
pub fn library() -> (Program, SourceMap) {
    let mut sources = SourceMap::new();
    let (program, said) = Program::of_library(&mut sources, &Library::standard());
    assert!(said.iter().all(|d| !d.is_error()), "{said:?}");
    (program, sources)
}

/// The plan of a library layer.
pub fn plan(name: &str, request: Request) -> Plan {
    let (program, mut sources) = library();
    let (layer, _) = program.elaborate(&mut sources, Some(name), &[]).expect(name);
    let rule = miras_rule::derive(layer).expect(name);
    miras_schedule::plan(rule, request).expect(name)
}

/// A library layer as a document.
pub fn document(name: &str) -> Document {
    let (program, sources) = library();
    let found = program.written(Some(name));
    let source = found.spans.first().map_or("", |span| sources.text(*span));
    Document::new(&plan(name, Request::Default), &Written { source: source.into(), about: found.about })
}

/// Every layer of the library.
pub fn names() -> Vec<String> {
    library().0.library_layers().into_iter().map(|l| l.name).collect()
}

/// The only layer of a text as a document.
#[allow(dead_code)] // Not every test binary asks for texts.
pub fn written(text: &str) -> Document {
    let mut sources = SourceMap::new();
    let root = sources.add("test.miras", text);
    let mut reader = |path: &str| Err(format!("{path} is not there"));
    let (program, said) = Program::load(&mut sources, root, &Library::standard(), &mut reader);
    assert!(said.iter().all(|d| !d.is_error()), "{said:?}");
    let (layer, _) = program.elaborate(&mut sources, None, &[]).expect(text);
    let rule = miras_rule::derive(layer).expect(text);
    let plan = miras_schedule::plan(rule, Request::Default).expect(text);
    Document::new(&plan, &Written { source: text.into(), about: Vec::new() })
}
