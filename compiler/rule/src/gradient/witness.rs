//! Numeric witnesses: gradients of whole layers against differences of loss(read(k; W), v), and the
//! slopes of docs/mathematics.md as they print.

use super::{gradients, slope};
use crate::algebra::Facts;
use crate::calculus::witness::{bind, differences};
use crate::rule::Gradient;
use crate::sample::{Kept, Sample};
use miras_base::DimEnv;
use miras_base::scalar::{Cmp, Fn1, Fn2};
use miras_spec as spec;
use miras_spec::{Kind, Per};
use miras_term::{Env, PrintOptions, TermId, print};
use std::collections::HashMap;

pub(crate) fn derived(layer: &mut spec::Layer) -> (TermId, Vec<Gradient>) {
    let facts = Facts::of_params(&layer.params);
    let slope = slope(layer, &facts).expect("a slope").terms[0];
    let spec::Algo::Step(step) = layer.algo.clone() else { panic!("a step") };
    let gradients = gradients(layer, &step, slope, &facts).expect("gradients");
    (slope, gradients)
}

/// The largest relative difference between the layer's gradients and differences of the loss at the
/// points' variables.
pub(crate) fn layer_error(
    layer: &mut spec::Layer,
    values: &dyn Fn(&spec::Layer, u64) -> Env,
    seed: u64,
) -> f64 {
    let (_, gradients) = derived(layer);
    let env = &values(layer, seed);
    let mut worst = 0.0_f64;
    for g in &gradients {
        let loss = HashMap::from([(layer.bias.answer, g.answer)]);
        let loss = layer.terms.substitute_one(layer.bias.loss, &loss).expect("the loss");
        for (var, sum) in g.at_vars.iter().zip(&g.by_weight) {
            let whole = layer.terms.eval_one(sum.whole.expect("a gradient"), env).expect("a value");
            for (a, b) in whole.data.iter().zip(differences(&layer.terms, loss, *var, env)) {
                worst = worst.max((a - b).abs() / b.abs().max(1.0));
            }
        }
    }
    worst
}

fn square(layer: &spec::Layer) -> Env {
    let mut env = bind(&layer.terms, 0.1, 0.9);
    env.dims = DimEnv::from([("dk".into(), 4), ("dv".into(), 4)]);
    rebound(layer, env)
}

/// Values again for other sizes.
fn rebound(layer: &spec::Layer, mut env: Env) -> Env {
    for (id, var) in layer.terms.vars() {
        let shape = layer.terms.sizes(&var.shape, &env).expect("sizes");
        let count = shape.iter().product();
        let data = crate::calculus::witness::spread_numbers(u64::from(id.0) + 11, count);
        env.vars.insert(id, miras_term::Tensor { shape, data });
    }
    for p in layer.params.iter().filter(|p| p.kind != Kind::Real) {
        if let Some(x) = env.vars.get_mut(&p.var) {
            x.data.iter_mut().for_each(|x| *x = 0.2 + 0.6 * x.abs());
        }
    }
    env
}

fn text(sample: &Sample, id: TermId, names: &Gradient) -> String {
    let names = names.named.iter().map(|n| (n.term, n.name.clone())).collect();
    print(&sample.layer.terms, id, &PrintOptions { names })
}

fn slope_text(sample: &mut Sample) -> String {
    let (slope, _) = derived(&mut sample.layer);
    print(&sample.layer.terms, slope, &PrintOptions::default())
}

fn norm(t: &mut miras_term::Terms, e: TermId) -> TermId {
    let two = t.num(2.0);
    t.norm(e, two).unwrap()
}

#[test]
fn a_linear_memory_has_the_gradient_error_times_key() {
    let mut s = Sample::new(Kept::Matrix);
    let (_, gradients) = derived(&mut s.layer);
    let sum = &gradients[0].by_weight[0];
    assert_eq!(sum.products.len(), 1);
    assert_eq!(sum.rest, None);
    let names = PrintOptions::default();
    assert_eq!(print(&s.layer.terms, sum.products[0].0, &names), "W @ k - v");
    assert_eq!(print(&s.layer.terms, sum.products[0].1, &names), "k");
    assert_eq!(text(&s, sum.products[0].0, &gradients[0]), "e");
    assert!(layer_error(&mut s.layer, &|l, _| bind(&l.terms, -1.0, 1.0), 0) < 1e-7);
}

#[test]
fn a_perceptron_has_one_outer_product_for_each_weight() {
    let mut s = Sample::new(Kept::Mlp);
    s.huber(Per::Channel);
    let (_, gradients) = derived(&mut s.layer);
    let g = &gradients[0];
    for sum in &g.by_weight {
        assert_eq!((sum.products.len(), sum.rest), (1, None));
    }
    let named: Vec<&str> = g.named.iter().map(|n| n.name.as_str()).collect();
    assert_eq!(named, ["z[1]", "h[1]", "z[2]", "y", "e", "s", "delta[2]", "gelu'(z[1])", "delta[1]"]);
    let h = text(&s, g.by_weight[1].products[0].1, g);
    assert_eq!(h, "h[1]");
    assert!(layer_error(&mut s.layer, &|l, _| square(l), 0) < 1e-7);
}

#[test]
fn a_vector_memory_has_a_gradient_that_is_no_outer_product() {
    let mut s = Sample::new(Kept::Vector);
    assert!(layer_error(&mut s.layer, &|l, _| square(l), 0) < 1e-7);
    let (_, gradients) = derived(&mut s.layer);
    let sum = &gradients[0].by_weight[0];
    assert!(sum.products.is_empty() && sum.rest == sum.whole);
}

#[test]
fn slopes_print_as_the_table_writes_them() {
    let mut s = Sample::new(Kept::Matrix);
    assert_eq!(slope_text(&mut s), "y - v");
    s.huber(Per::Channel);
    assert_eq!(slope_text(&mut s), "max(min(y - v, delta), -delta)");
    s.loss(|t, e| {
        let (magnitude, three) = (t.fn1(Fn1::Abs, e).unwrap(), t.num(3.0));
        let cube = t.fn2(Fn2::Pow, magnitude, three).unwrap();
        let sum = t.sum(cube).unwrap();
        t.div(sum, three).unwrap()
    });
    assert_eq!(slope_text(&mut s), "(y - v)^2 * sign(y - v)");
    s.loss(|t, e| {
        let (eps, power, three, two) = (t.num(0.25), t.num(1.5), t.num(3.0), t.num(2.0));
        let square = t.fn2(Fn2::Pow, e, two).unwrap();
        let inner = t.add(square, eps).unwrap();
        let outer = t.fn2(Fn2::Pow, inner, power).unwrap();
        let sum = t.sum(outer).unwrap();
        t.div(sum, three).unwrap()
    });
    assert_eq!(slope_text(&mut s), "((y - v)^2 + 0.25)^0.5 * (y - v)");
}

#[test]
fn slopes_of_lengths_print_as_the_table_writes_them() {
    let mut s = Sample::new(Kept::Matrix);
    let radius = s.gate("bias.radius", Kind::Positive, Per::Token);
    s.loss(|t, e| {
        let (length, two) = (norm(t, e), t.num(2.0));
        let square = t.fn2(Fn2::Pow, length, two).unwrap();
        let half = t.div(square, two).unwrap();
        let linear = t.mul(radius, length).unwrap();
        t.add(half, linear).unwrap()
    });
    assert_eq!(slope_text(&mut s), "y - v + radius * ((y - v) / max(norm(y - v, 2), 1e-12))");
    let clip = |t: &mut miras_term::Terms, e: TermId, by_norm: bool| {
        let (length, two) = (norm(t, e), t.num(2.0));
        let base = if by_norm { length } else { e };
        let square = t.fn2(Fn2::Pow, base, two).unwrap();
        let square = t.sum(square).unwrap();
        let inside = t.div(square, two).unwrap();
        let half = t.div(radius, two).unwrap();
        let beyond = t.sub(length, half).unwrap();
        let outside = t.mul(radius, beyond).unwrap();
        let short = t.compare(Cmp::Le, length, radius).unwrap();
        t.select(short, inside, outside).unwrap()
    };
    let expected = "(y - v) * (radius / max(radius, norm(y - v, 2)))";
    s.loss(|t, e| clip(t, e, false));
    assert_eq!(slope_text(&mut s), expected);
    s.loss(|t, e| clip(t, e, true));
    assert_eq!(slope_text(&mut s), expected);
}

#[test]
fn the_divergence_of_softmaxes_has_their_difference_for_a_slope() {
    let mut s = Sample::new(Kept::Matrix);
    let (y, v) = (s.layer.terms.use_var(s.layer.bias.answer), s.layer.terms.use_var(s.layer.value));
    s.loss(|t, _| {
        let axis = miras_term::Axis::Row;
        let (p, lp, lq) =
            (t.softmax(axis, v).unwrap(), t.log_softmax(axis, v).unwrap(), t.log_softmax(axis, y).unwrap());
        let difference = t.sub(lp, lq).unwrap();
        t.dot(p, difference).unwrap()
    });
    assert_eq!(slope_text(&mut s), "softmax_row(y) - softmax_row(v)");
}

#[test]
fn a_gradient_at_the_retained_weights_has_variables_of_its_own() {
    let mut s = Sample::new(Kept::Matrix);
    let eta = s.gate("algo.eta", Kind::Positive, Per::Value);
    s.descend_retained(eta);
    let (_, gradients) = derived(&mut s.layer);
    assert_ne!(gradients[0].at_vars[0], s.layer.memory.weights[0].var);
    assert_eq!(print(&s.layer.terms, gradients[0].answer, &PrintOptions::default()), "retained(W) @ k");
}
