//! Float64 meaning of formulas, as printed: names are looked up, tokens are numbers.

use crate::math::{Big, Formula, Math, Symbol};
use miras_base::scalar::Fn1;
use miras_term::Tensor;
use std::collections::HashMap;

/// What formulas are evaluated in.
#[derive(Clone, Default)]
pub(super) struct World {
    /// Values by the text of what they belong to, tokens as numbers: `W`, `k_3`, `gelu'(z[1]_2)`.
    pub values: HashMap<String, Tensor>,
    /// The tokens that letters stand for.
    pub tokens: HashMap<String, i64>,
    /// Formulas of functions of tokens, such as `P(t, i)`.
    pub functions: Vec<Formula>,
    /// Whether a vector that meets a square matrix runs along its columns; else its length tells.
    pub along_columns: bool,
}

/// The key of a name at a token.
pub(super) fn key(name: &str, token: i64) -> String {
    crate::math::at(crate::math::named(name), &token.to_string()).text()
}

impl World {
    fn token(&self, text: &str) -> i64 {
        if let Ok(n) = text.parse() {
            return n;
        }
        match text.split_once('-') {
            Some((a, b)) => self.token(a) - self.token(b),
            None => *self.tokens.get(text).unwrap_or_else(|| panic!("no token {text}")),
        }
    }

    /// The key of a name: its text with numbers for tokens.
    pub fn key_of(&self, math: &Math) -> String {
        let numbered = crate::math::mapped(math.clone(), &|m| match m {
            Math::Symbol(s) if !s.time.is_empty() => {
                let time = self.token(&s.time).to_string();
                Math::Symbol(Symbol { time, ..s })
            }
            other => other,
        });
        numbered.text()
    }

    pub fn eval(&self, math: &Math) -> Tensor {
        match math {
            Math::Number(x) => Tensor::scalar(*x),
            Math::Symbol(s) if s.stem == "pi" => Tensor::scalar(std::f64::consts::PI),
            Math::Symbol(_) => {
                let key = self.key_of(math);
                self.values.get(&key).unwrap_or_else(|| panic!("{key} has no value")).clone()
            }
            Math::Word(w) => Tensor::scalar(w.split('*').map(|p| self.number(p)).product()),
            Math::Neg(a) => map(&self.eval(a), |x| -x),
            Math::Sum(parts) => {
                let signed = parts.iter().map(|(minus, p)| {
                    let value = self.eval(p);
                    if *minus { map(&value, |x| -x) } else { value }
                });
                signed.reduce(|a, b| self.zip(&a, &b, |x, y| x + y)).unwrap()
            }
            Math::Times(a, b, _) => self.zip(&self.eval(a), &self.eval(b), |x, y| x * y),
            Math::MatMul(a, b) => matmul(&self.eval(a), &self.eval(b)),
            Math::Outer(a, b) => {
                let (a, b) = (self.eval(a), self.eval(b));
                let data = a.data.iter().flat_map(|x| b.data.iter().map(move |y| x * y)).collect();
                Tensor::matrix(a.data.len(), b.data.len(), data)
            }
            Math::Inner(a, b) => total(&self.zip(&self.eval(a), &self.eval(b), |x, y| x * y)),
            Math::Transpose(a) => transpose(&self.eval(a)),
            Math::Fraction(a, b) => self.zip(&self.eval(a), &self.eval(b), |x, y| x / y),
            Math::Power(a, b) => self.zip(&self.eval(a), &self.eval(b), f64::powf),
            Math::Function(f, a) => map(&self.eval(a), |x| Fn1::eval(*f, x)),
            // A call may be the name of something that has a value of its own.
            Math::Call(..) if self.values.contains_key(&math.text()) => self.values[&math.text()].clone(),
            Math::Call(f, _, _) if f.ends_with('\'') => self.values[&self.key_of(math)].clone(),
            Math::Call(f, along, arguments) => self.call(f, along, arguments),
            Math::Cases(c, a, b) => {
                let (c, a, b) = (self.eval(c), self.eval(a), self.eval(b));
                let first = self.zip(&c, &a, |c, a| if c != 0.0 { a } else { 0.0 });
                let second = self.zip(&c, &b, |c, b| if c == 0.0 { b } else { 0.0 });
                self.zip(&first, &second, |x, y| x + y)
            }
            Math::Compare(c, a, b) => {
                self.zip(&self.eval(a), &self.eval(b), |x, y| if c.eval(x, y) { 1.0 } else { 0.0 })
            }
            Math::Norm(x, p) => {
                let p = self.eval(p).data[0];
                let sum: f64 = self.eval(x).data.iter().map(|x| x.abs().powf(p)).sum();
                Tensor::scalar(sum.powf(1.0 / p))
            }
            Math::Over(big, below, body) => self.over(*big, &below.text(), body),
            Math::Prefixed(_, a) | Math::Marked(a) => self.eval(a),
            Math::Root(..) | Math::Slope(..) | Math::Cotangent(_) => panic!("{} has no value", math.text()),
        }
    }

    fn number(&self, text: &str) -> f64 {
        text.trim().parse().unwrap_or_else(|_| {
            self.values.get(text.trim()).unwrap_or_else(|| panic!("{text} has no value")).data[0]
        })
    }

    /// A sum or product over tokens: `i<=t`, `i<j<=t`.
    fn over(&self, big: Big, range: &str, body: &Math) -> Tensor {
        let names: Vec<&str> = range.split('<').map(|p| p.trim_start_matches('=')).collect();
        let closed = |at: usize| range.split('<').nth(at).unwrap().starts_with('=');
        let (low, var, high, last) = match names.as_slice() {
            [var, high] => (1, *var, self.token(high), closed(1)),
            [low, var, high] => (self.token(low) + i64::from(!closed(1)), *var, self.token(high), closed(2)),
            _ => panic!("{range} is no range"),
        };
        let parts = (low..high + i64::from(last)).map(|n| {
            let mut inside = self.clone();
            inside.tokens.insert(var.into(), n);
            inside.eval(body)
        });
        let parts: Vec<Tensor> = parts.collect();
        let join = |f: fn(f64, f64) -> f64| parts.iter().cloned().reduce(|a, b| self.zip(&a, &b, f));
        match big {
            Big::Sum => join(|x, y| x + y).unwrap_or(Tensor::scalar(0.0)),
            Big::Max => join(f64::max).unwrap(),
            // An empty product has the shape of its factors.
            Big::Product => join(|x, y| x * y).unwrap_or_else(|| {
                let mut inside = self.clone();
                inside.tokens.insert(var.into(), 1);
                map(&inside.eval(body), |_| 1.0)
            }),
        }
    }

    fn call(&self, name: &str, along: &str, arguments: &[Math]) -> Tensor {
        let defined = self.functions.iter().find(|f| matches!(&f.left, Math::Call(n, ..) if n == name));
        if let Some(Formula { left: Math::Call(_, _, parameters), right, .. }) = defined {
            let mut inside = self.clone();
            for (p, a) in parameters.iter().zip(arguments) {
                inside.tokens.insert(p.text(), self.token(&a.text()));
            }
            return inside.eval(right);
        }
        let values: Vec<Tensor> = arguments.iter().map(|a| self.eval(a)).collect();
        let x = &values[0];
        let n = x.data.len();
        match (name, along) {
            ("sum", "") => total(x),
            ("largest", "") => Tensor::scalar(x.data.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
            ("sum", _) if x.shape.len() < 2 => total(x),
            ("min", _) => self.zip(x, &values[1], f64::min),
            ("max", _) => self.zip(x, &values[1], f64::max),
            ("row", _) => Tensor::matrix(1, n, x.data.clone()),
            ("col", _) => Tensor::matrix(n, 1, x.data.clone()),
            ("stop", _) => x.clone(),
            ("layernorm", _) => self.zip(&centred(x), &map(&deviation(x), |d| 1.0 / d), |a, b| a * b),
            ("inverse_deviation", _) => map(&deviation(x), |d| 1.0 / d),
            ("softmax", "row") => {
                let cols = *x.shape.last().unwrap();
                let rows = x.data.chunks(cols).flat_map(|row| {
                    let sum: f64 = row.iter().map(|v| v.exp()).sum();
                    row.iter().map(move |v| v.exp() / sum).collect::<Vec<_>>()
                });
                Tensor { shape: x.shape.clone(), data: rows.collect() }
            }
            _ => panic!("{name} along {along} has no value here"),
        }
    }

    fn zip(&self, a: &Tensor, b: &Tensor, f: impl Fn(f64, f64) -> f64) -> Tensor {
        let (x, y) = (self.laid(a, b), self.laid(b, a));
        let shape: Vec<usize> = match (x.shape.len(), y.shape.len()) {
            (0, _) => y.shape.clone(),
            (_, 0) => x.shape.clone(),
            _ => x.shape.iter().zip(&y.shape).map(|(m, n)| *m.max(n)).collect(),
        };
        let at = |t: &Tensor, flat: usize| match t.shape.as_slice() {
            [] => t.data[0],
            [_] => t.data[flat],
            [rows, cols] => {
                let (i, j) = (flat / shape[1], flat % shape[1]);
                t.data[(if *rows == 1 { 0 } else { i }) * cols + if *cols == 1 { 0 } else { j }]
            }
            _ => panic!("rank"),
        };
        let data = (0..shape.iter().product()).map(|n| f(at(&x, n), at(&y, n))).collect();
        Tensor { shape, data }
    }

    /// A vector laid along a matrix.
    fn laid(&self, a: &Tensor, beside: &Tensor) -> Tensor {
        match (a.shape.as_slice(), beside.shape.as_slice()) {
            ([n], [rows, cols]) if (n == cols && n != rows) || (rows == cols && self.along_columns) => {
                Tensor::matrix(1, *n, a.data.clone())
            }
            ([n], [_, _]) => Tensor::matrix(*n, 1, a.data.clone()),
            _ => a.clone(),
        }
    }
}

fn map(t: &Tensor, f: impl Fn(f64) -> f64) -> Tensor {
    Tensor { shape: t.shape.clone(), data: t.data.iter().map(|x| f(*x)).collect() }
}

fn total(t: &Tensor) -> Tensor {
    Tensor::scalar(t.data.iter().sum())
}

fn transpose(t: &Tensor) -> Tensor {
    let [rows, cols] = t.shape[..] else { panic!("a matrix") };
    let data = (0..rows * cols).map(|n| t.data[(n % rows) * cols + n / rows]).collect();
    Tensor::matrix(cols, rows, data)
}

fn matmul(a: &Tensor, b: &Tensor) -> Tensor {
    let [rows, inner] = a.shape[..] else { panic!("a matrix") };
    let cols = b.shape.get(1).copied().unwrap_or(1);
    let entry =
        |n: usize| (0..inner).map(|k| a.data[n / cols * inner + k] * b.data[k * cols + n % cols]).sum();
    let data: Vec<f64> = (0..rows * cols).map(entry).collect();
    if b.shape.len() == 1 { Tensor::vector(data) } else { Tensor::matrix(rows, cols, data) }
}

fn centred(t: &Tensor) -> Tensor {
    let mean = t.data.iter().sum::<f64>() / t.data.len() as f64;
    map(t, |x| x - mean)
}

fn deviation(t: &Tensor) -> Tensor {
    let variance = centred(t).data.iter().map(|x| x * x).sum::<f64>() / t.data.len() as f64;
    Tensor::scalar((variance + 1e-5).sqrt())
}
