//! What a token of the library's layers costs, counted by hand.

mod common;

use common::{document, library, names, plan};
use miras_explain::{json, text};
use miras_schedule::Request;
use serde_json::Value;

fn multiply_adds(layer: &str) -> String {
    plan(layer, Request::Recurrent).cost.multiply_adds.formula()
}

/// The same of a layer with parameters set.
fn multiply_adds_with(layer: &str, name: &str, value: &str) -> String {
    let (program, mut sources) = library();
    let set = [(name.to_string(), value.to_string())];
    let (layer, _) = program.elaborate(&mut sources, Some(layer), &set).unwrap();
    let plan = miras_schedule::plan(miras_rule::derive(layer).unwrap(), Request::Recurrent).unwrap();
    plan.cost.multiply_adds.formula()
}

fn document_json(name: &str) -> Value {
    serde_json::from_str::<Value>(&json(&[document(name)])).unwrap()["layers"][0].clone()
}

#[test]
fn products_of_the_recurrence_are_counted_once_each() {
    // v k^T and W q; the loss -v . y needs no answer.
    assert_eq!(multiply_adds("linear_attention"), "2*dk*dv");
    // W k, e k^T and W q; at the retained memory the same.
    assert_eq!(multiply_adds("deltanet"), "3*dk*dv");
    assert_eq!(multiply_adds("gated_deltanet"), "3*dk*dv");
    // W k and e k^T for each of two steps, and W q.
    assert_eq!(multiply_adds("deltaproduct"), "5*dk*dv");
    assert_eq!(multiply_adds_with("deltaproduct", "n", "3"), "7*dk*dv");
    // W kappa, two outer products, W q; the gradient of the bias takes no part.
    assert_eq!(multiply_adds("rwkv7"), "4*dk*dv");
}

#[test]
fn a_perceptron_of_two_layers() {
    // W[1] k and W[2] h, back through W[2], two outer products and the two products of the read, each of 4 dk dk
    // multiply-adds (this memory needs dk = dv); back through the layernorm one inner product of dv entries.
    let forward = document_json("ttt_mlp")["cost"][0]["forward_at_64"].clone();
    assert_eq!(forward, 7 * 4 * 64 * 64 + 64);
}

#[test]
fn no_layer_is_said_to_cost_nothing() {
    for name in names() {
        assert_ne!(multiply_adds(&name), "0", "{name}");
    }
}

#[test]
fn a_history_costs_what_its_tokens_cost() {
    assert_eq!(multiply_adds("softmax_attention"), "T*dv + T*dk");
    assert_eq!(multiply_adds("sliding_window"), "64*dv + 64*dk");
    // Two refinements: a score and a mean of keys each, then a score and the mean of values.
    assert_eq!(multiply_adds_with("hopfield", "n", "3"), "T*dv + 5*T*dk");
    assert_eq!(multiply_adds_with("sliding_window", "n", "1"), "dv + dk");
    let (all, window) = (document_json("softmax_attention"), document_json("sliding_window"));
    assert_eq!(all["cost"][0]["forward_at_64"], Value::Null);
    assert_eq!(window["cost"][0]["forward_at_64"], 8192);
    assert_eq!(window["cost"][0]["backward_at_64"], 3 * 8192);
    for layer in [&all, &window] {
        assert_eq!(layer["outer_gradients"]["memory"]["every"], Value::Null);
    }
    assert_eq!(all["state"][0]["entries"], "grows with T");
    assert_eq!(window["state"][0]["entries"], "at most 63*dk entries");
}

#[test]
fn a_window_is_told_to_be_one() {
    let page = text(&document("sliding_window"));
    for wrong in ["grows with T", "whole history, which is kept", "linear in T"] {
        assert!(!page.contains(wrong), "{page}");
    }
    assert!(page.contains("the last 63 tokens"), "{page}");
}
