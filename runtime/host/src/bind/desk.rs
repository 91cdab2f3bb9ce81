//! The desk at which tensors are asked for by name and checked one by one.

use super::bound::BindOptions;
use crate::bundle::Bundle;
use crate::tensor::{Data, Tensor, Width};
use miras_base::diagnostic::{Code, code};
use miras_base::{Diagnostic, Span};
use miras_rule as rule;
use miras_spec as spec;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// Collects what binding finds out.
pub(crate) struct Desk<'a> {
    pub rule: &'a rule::UpdateRule,
    pub bundle: &'a Bundle,
    pub options: &'a BindOptions,
    pub problems: Vec<Diagnostic>,
    pub notes: Vec<Diagnostic>,
    /// Floating inputs that were found sound.
    pub given: Vec<(String, Vec<usize>)>,
    /// Every name that was asked for.
    pub known: BTreeSet<String>,
    /// Given tensors that were proposed in place of a missing one: each is proposed once.
    proposed: BTreeSet<String>,
}

/// One axis: its symbol and its size.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    pub symbol: String,
    pub size: usize,
}

/// A request for a float tensor.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub name: String,
    pub axes: Vec<Axis>,
    pub kind: spec::Kind,
    /// The clause or rule that needs it.
    pub who: String,
    pub span: Option<Span>,
}

/// The answer to a request.
pub(crate) enum Found {
    Good(Arc<Tensor>),
    Missing,
    /// There, but wrong; the problem is noted.
    Bad,
}

impl<'a> Desk<'a> {
    pub fn new(rule: &'a rule::UpdateRule, bundle: &'a Bundle, options: &'a BindOptions) -> Desk<'a> {
        let (problems, notes, given, known, proposed) = Default::default();
        Desk { rule, bundle, options, problems, notes, given, known, proposed }
    }

    /// A tensor that must be there.
    pub fn required(&mut self, ask: &Ask) -> Option<Arc<Tensor>> {
        match self.optional(ask) {
            Found::Good(tensor) => Some(tensor),
            Found::Bad => None,
            Found::Missing => {
                self.missing(ask);
                None
            }
        }
    }

    /// A tensor that may be there: checked for element type, shape, finite values and its kind.
    pub fn optional(&mut self, ask: &Ask) -> Found {
        match self.raw(&ask.name, &ask.shape(), &ask.who, ask.span) {
            Found::Good(tensor) => match self.sound(ask, tensor) {
                Ok(tensor) => Found::Good(tensor),
                Err(problem) => {
                    self.problems.push(problem);
                    Found::Bad
                }
            },
            Found::Missing => Found::Missing,
            Found::Bad => Found::Bad,
        }
    }

    /// A float tensor of whatever shape and values; `shape` is only for messages.
    pub fn raw(&mut self, name: &str, shape: &str, who: &str, span: Option<Span>) -> Found {
        self.known.insert(name.to_string());
        let element = match (self.bundle.get(name), self.bundle.foreign(name)) {
            (Some(tensor), _) if tensor.width().is_some() => return Found::Good(tensor.clone()),
            (Some(tensor), _) => tensor.data.type_name().to_string(),
            (None, Some(foreign)) => foreign.element.clone(),
            (None, None) => return Found::Missing,
        };
        let message =
            format!("`{name}` has elements of type {element}, but {who} asks for floats of shape {shape}");
        let help = format!("store `{name}` as float32 or float64");
        self.problems.push(Diagnostic::new(code::TENSOR_TYPE, message).at_opt(span, ASKED).with_help(help));
        Found::Bad
    }

    /// An int64 tensor of rank 1; any length where `length` is None.
    pub fn integers(
        &mut self,
        name: &str,
        symbol: &str,
        length: Option<usize>,
        why: &str,
    ) -> Option<&'a [i64]> {
        self.known.insert(name.to_string());
        let element = match (self.bundle.get(name), self.bundle.foreign(name)) {
            (None, None) => return None,
            (None, Some(foreign)) => foreign.element.clone(),
            (Some(tensor), _) => match tensor.i64s() {
                Some(values) if tensor.shape.len() == 1 && length.is_none_or(|n| n == values.len()) => {
                    return Some(values);
                }
                Some(_) => {
                    let size = length.map_or(String::new(), |n| format!(" = [{n}]"));
                    let message =
                        format!("`{name}` has shape {:?}, but {why} needs [{symbol}]{size}", tensor.shape);
                    let help = format!("give `{name}` as an int64 tensor of that shape");
                    self.problems.push(Diagnostic::new(code::TENSOR_SHAPE, message).with_help(help));
                    return None;
                }
                None => tensor.data.type_name().to_string(),
            },
        };
        let message = format!("`{name}` has elements of type {element}, but {why} needs int64");
        let help = format!("store `{name}` as int64");
        self.problems.push(Diagnostic::new(code::TENSOR_TYPE, message).with_help(help));
        None
    }

    /// Notes that a tensor is missing.
    pub fn missing(&mut self, ask: &Ask) {
        let message = format!("`{}` is missing: {} needs it, of shape {}", ask.name, ask.who, ask.shape());
        let help = match self.meant(ask) {
            Some(near) => {
                self.proposed.insert(near.to_string());
                format!("the data has `{near}`; did you mean `{}`?", ask.name)
            }
            None => format!("add a float32 or float64 tensor `{}` of that shape", ask.name),
        };
        self.problems.push(ask.problem(code::MISSING_TENSOR, message).with_help(help));
    }

    /// A given tensor that a missing one may have been meant by: of its shape, an input under no name of its own, and
    /// not proposed before.
    fn meant(&self, ask: &Ask) -> Option<&'a str> {
        let layer = &self.rule.layer;
        let owned = |name: &str| {
            let weight = name.strip_prefix("memory.").or(name.strip_prefix("state.memory."));
            self.known.contains(name)
                || layer.params.iter().any(|p| p.tensor == name)
                || layer.memory.weights.iter().any(|w| Some(w.name.as_str()) == weight)
        };
        let fits = |name: &str| self.bundle.get(name).is_some_and(|t| t.shape == ask.sizes());
        let free = |name: &&str| !self.proposed.contains(*name) && !owned(name) && fits(name);
        nearest(&ask.name, self.bundle.names().filter(free))
    }

    /// The tensor in the width of the run, or what is wrong with its shape or values.
    fn sound(&mut self, ask: &Ask, tensor: Arc<Tensor>) -> Result<Arc<Tensor>, Diagnostic> {
        let sizes = ask.sizes();
        if tensor.shape != sizes {
            let message =
                format!("`{}` has shape {:?}, but {} needs {}", ask.name, tensor.shape, ask.who, ask.shape());
            let help = format!("give `{}` in that shape{}", ask.name, reshaped(&tensor.shape, &sizes));
            return Err(ask.problem(code::TENSOR_SHAPE, message).with_help(help));
        }
        if !all_in_kind(ask.kind, &tensor) {
            finite(ask, &tensor)?;
            // As given: rounding to float32 can carry a value from outside onto the edge.
            in_kind(ask, &tensor)?;
        }
        let narrowed = tensor.width() != Some(self.options.width);
        let tensor = in_width(tensor, self.options.width);
        if narrowed {
            finite(ask, &tensor).map_err(|_| too_wide(ask, self.bundle))?;
        }
        self.given.push((ask.name.clone(), sizes));
        Ok(tensor)
    }
}

/// Which values a kind allows, and how a message says it after "outside". Infinities are in none.
pub(super) fn kind_range(kind: spec::Kind) -> (fn(f64) -> bool, &'static str) {
    match kind {
        spec::Kind::Real => (f64::is_finite, "(-inf, inf): its kind is `real`"),
        spec::Kind::Positive => (|x| x >= 0.0 && x.is_finite(), "[0, inf): its kind is `positive`"),
        spec::Kind::Unit => (|x| (0.0..=1.0).contains(&x), "[0, 1]: its kind is `unit`"),
    }
}

/// The label at the place of a request.
const ASKED: &str = "asked for here";

impl Ask {
    pub fn sizes(&self) -> Vec<usize> {
        self.axes.iter().map(|a| a.size).collect()
    }

    /// `[B, H, T] = [1, 2, 16]`.
    pub fn shape(&self) -> String {
        shape_text(&self.axes)
    }

    pub fn problem(&self, code: Code, message: String) -> Diagnostic {
        Diagnostic::new(code, message).at_opt(self.span, ASKED)
    }
}

impl Axis {
    pub fn new(symbol: impl fmt::Display, size: usize) -> Axis {
        Axis { symbol: symbol.to_string(), size }
    }
}

/// Symbols, and sizes beside them.
pub(super) fn shape_text(axes: &[Axis]) -> String {
    let symbols: Vec<&str> = axes.iter().map(|a| a.symbol.as_str()).collect();
    let sizes: Vec<usize> = axes.iter().map(|a| a.size).collect();
    format!("[{}] = {sizes:?}", symbols.join(", "))
}

/// The name among `names` that `name` is most likely a slip of.
pub(super) fn nearest<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let distance = |n: &str| strsim::damerau_levenshtein(&n.to_lowercase(), &name.to_lowercase());
    let near = names.filter(|n| *n != name && n.len() < 256).map(|n| (distance(n), n)).min();
    // Names of one or two letters are all near each other.
    near.filter(|(d, n)| *d <= n.len().min(name.len()) / 3).map(|(_, n)| n)
}

/// A hint where the sizes are right and only their order or grouping is not.
fn reshaped(have: &[usize], want: &[usize]) -> &'static str {
    let sorted = |s: &[usize]| {
        let mut s: Vec<usize> = s.iter().copied().filter(|n| *n != 1).collect();
        s.sort_unstable();
        s
    };
    if sorted(have) == sorted(want) {
        " (the sizes are right, their order or the axes of size 1 are not)"
    } else {
        ""
    }
}

/// The tensor itself where it has the width, else a rounded or widened copy.
pub(super) fn in_width(tensor: Arc<Tensor>, width: Width) -> Arc<Tensor> {
    let data = match (&tensor.data, width) {
        (Data::F32(_), Width::F32) | (Data::F64(_), Width::F64) | (Data::I64(_), _) => return tensor,
        (Data::F64(x), Width::F32) => Data::F32(x.iter().map(|x| *x as f32).collect()),
        (Data::F32(x), Width::F64) => Data::F64(x.iter().map(|x| f64::from(*x)).collect()),
    };
    Arc::new(Tensor { shape: tensor.shape.clone(), data })
}

/// Flat index of the first entry that fails, and how many do.
pub(super) fn failing(tensor: &Tensor, good: impl Fn(f64) -> bool) -> Option<(usize, usize)> {
    fn scan<T: Copy>(x: &[T], good: impl Fn(T) -> bool) -> Option<(usize, usize)> {
        let first = x.iter().position(|x| !good(*x))?;
        Some((first, x[first..].iter().filter(|x| !good(**x)).count()))
    }
    match &tensor.data {
        Data::F32(x) => scan(x, |x| good(f64::from(x))),
        Data::F64(x) => scan(x, good),
        Data::I64(_) => None,
    }
}

/// Whether every entry is finite and of the kind: the usual case, found without a branch for each entry.
fn all_in_kind(kind: spec::Kind, tensor: &Tensor) -> bool {
    match kind {
        spec::Kind::Real => tensor.all_between(f64::MIN, f64::MAX),
        spec::Kind::Positive => tensor.all_between(0.0, f64::MAX),
        spec::Kind::Unit => tensor.all_between(0.0, 1.0),
    }
}

/// `-0.25 at [0, 3, 2]`, and how many more there are.
pub(super) fn entry_text(tensor: &Tensor, (first, count): (usize, usize)) -> String {
    let value = tensor.at(first).unwrap_or(f64::NAN);
    let more = if count > 1 { format!(" (and {} more such entries)", count - 1) } else { String::new() };
    format!("{} at {:?}{more}", number(value), tensor.index_of(first))
}

/// A number without endless zeros.
fn number(x: f64) -> String {
    if x == 0.0 || !x.is_finite() || (1e-4..1e9).contains(&x.abs()) {
        x.to_string()
    } else {
        format!("{x:e}")
    }
}

fn finite(ask: &Ask, tensor: &Tensor) -> Result<(), Diagnostic> {
    let Some(found) = failing(tensor, f64::is_finite) else { return Ok(()) };
    let message =
        format!("`{}` holds {}; {} needs finite values", ask.name, entry_text(tensor, found), ask.who);
    let help = "find where the value comes from; a NaN or infinity would spread through the whole memory";
    Err(ask.problem(code::NOT_FINITE, message).with_help(help))
}

/// A finite float64 that float32 cannot hold.
fn too_wide(ask: &Ask, bundle: &Bundle) -> Diagnostic {
    let place =
        bundle.get(&ask.name).and_then(|t| Some((t, failing(t, |x| Width::F32.round(x).is_finite())?)));
    let place = place.map_or(String::new(), |(t, found)| format!(" {}", entry_text(t, found)));
    let message = format!("`{}` holds{place}, beyond what float32 can represent", ask.name);
    ask.problem(code::NOT_FINITE, message)
        .with_help("scale the data, or use `--backend reference`, which runs in float64")
}

pub(super) fn in_kind(ask: &Ask, tensor: &Tensor) -> Result<(), Diagnostic> {
    let (good, rule) = kind_range(ask.kind);
    let Some(found) = failing(tensor, good) else { return Ok(()) };
    let message = format!("`{}` holds {}, outside {rule}", ask.name, entry_text(tensor, found));
    let help = match ask.kind {
        spec::Kind::Unit => "make it with a sigmoid or clamp it; the closed ends 0 and 1 are legal",
        spec::Kind::Positive | spec::Kind::Real => "make it with a softplus or exp, or clamp it; 0 is legal",
    };
    Err(ask
        .problem(code::OUT_OF_DOMAIN, message)
        .with_help(help)
        .with_note(format!("{} asks for it", ask.who)))
}
