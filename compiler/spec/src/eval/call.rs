//! Calls: functions of the texts, of the language, and the two that only an algorithm has.

use super::{Callable, Eval, Operand, Scope, Tensor, Value, budget, builtin, fail_help};
use crate::elaborate::Builder;
use crate::layer::Point;
use crate::program::Origin;
use base::diagnostic::code;
use base::{Diagnostic, Span};
use miras_base as base;
use miras_syntax::ast::{Arg, Expr, ExprKind, Function, Ident};
use miras_term::{Axis, Role, TermId};
use std::rc::Rc;

impl Builder<'_> {
    pub(super) fn call(
        &mut self,
        scope: &mut Scope,
        callee: &Ident,
        args: &[Arg],
        span: Span,
    ) -> Eval<Value> {
        let Some(callable) = self.called(scope, &callee.text) else {
            return Err(self.unknown_function(scope, callee));
        };
        if let Some(named) = args.iter().find_map(|a| a.name.as_ref()) {
            let message = format!("`{}` takes its arguments by position", callee.text);
            return fail_help(code::BAD_ARGUMENT, named.span, message, "named here", "leave the name out");
        }
        let (args, axis) = match (&callable, args) {
            (Callable::Builtin(f), [x, word]) if f.takes_axis() => {
                (std::slice::from_ref(x), Some(axis_word(&word.value)?))
            }
            _ => (args, None),
        };
        let mut values = Vec::new();
        for arg in args {
            values.push(self.operand(scope, &arg.value)?);
        }
        match callable {
            Callable::Builtin(f) => self.apply_builtin(f, values, axis, span),
            Callable::User(f, origin) => self.apply_user(&f, origin, values, span),
        }
    }

    /// A function applied to values.
    pub(crate) fn apply(&mut self, f: &Callable, values: Vec<Operand>, span: Span) -> Eval<Value> {
        match f {
            Callable::Builtin(f) => self.apply_builtin(*f, values, None, span),
            Callable::User(f, origin) => self.apply_user(f, *origin, values, span),
        }
    }

    /// What a name means where it is called: a bound function, else one of the texts, else the language's.
    fn called(&self, scope: &Scope, name: &str) -> Option<Callable> {
        match scope.get(name) {
            Some(Value::Function(f)) => Some(f.clone()),
            _ => self.callable(scope, name),
        }
    }

    /// The function of a name that no value hides.
    pub(crate) fn callable(&self, scope: &Scope, name: &str) -> Option<Callable> {
        let user =
            self.program.find_function(name, scope.origin).map(|(f, origin)| Callable::User(f, origin));
        user.or_else(|| builtin::from_name(name).map(Callable::Builtin))
    }

    fn apply_user(&mut self, f: &Function, origin: Origin, args: Vec<Operand>, span: Span) -> Eval<Value> {
        if args.len() != f.params.len() {
            let message =
                format!("`{}` takes {} arguments, found {}", f.name.text, f.params.len(), args.len());
            let diagnostic = Diagnostic::new(code::BAD_ARGUMENT, message)
                .at(span, "called here")
                .at(f.name.span, "defined here")
                .with_help("give it as many arguments as it has parameters");
            return Err(Box::new(diagnostic));
        }
        let key = (f.name.text.clone(), origin);
        if self.calls.contains(&key) {
            let message = format!("the function `{}` calls itself", f.name.text);
            let diagnostic = Diagnostic::new(code::RECURSION, message)
                .at(f.name.span, "this function")
                .at(span, "called again here")
                .with_help("write the repetition as a `for` in a block");
            return Err(Box::new(diagnostic));
        }
        let mut scope = self.base_scope(origin);
        for (param, arg) in f.params.iter().zip(args) {
            scope.bind(param.text.clone(), arg.value);
        }
        self.calls.push(key);
        let value = self.eval(&mut scope, &f.body);
        self.calls.pop();
        value
    }

    fn unknown_function(&self, scope: &Scope, callee: &Ident) -> Box<Diagnostic> {
        if let Some(value) = scope.get(&callee.text) {
            let message = format!("`{}` is {}, not a function", callee.text, self.describe(value));
            return Box::new(
                Diagnostic::new(code::TYPE, message)
                    .at(callee.span, "called here")
                    .with_help("call a function, or write `*` for a product"),
            );
        }
        if matches!(callee.text.as_str(), "learned" | "trained") {
            return self.unknown_name(scope, callee);
        }
        let mut known = self.program.function_names(scope.origin);
        known.extend(builtin::names().map(String::from));
        let near = crate::program::did_you_mean(&callee.text, known.iter().map(String::as_str));
        let help = near.unwrap_or_else(|| format!("define it: `fn {}(x) = ...;`", callee.text));
        let message = format!("there is no function called `{}`", callee.text);
        Box::new(
            Diagnostic::new(code::UNKNOWN_NAME, message)
                .at(callee.span, "not defined")
                .with_help(help)
                .with_note(format!(
                    "the language's own functions are {}",
                    builtin::names().collect::<Vec<_>>().join(", ")
                )),
        )
    }

    /// `grad(X)`: the gradient of the bias by every weight, at weights X.
    pub(super) fn grad(&mut self, at: Operand, span: Span) -> Eval<Value> {
        let weights = self.algo_weights("grad", span)?;
        let tensors: Vec<Tensor> = match &at.value {
            Value::Each(list) => list.to_vec(),
            _ if weights.len() == 1 => vec![self.tensor(&at)?],
            other => {
                let message = format!("`grad` needs a tensor for each of the {} weights", weights.len());
                let label = format!("this is {}", self.describe(other));
                return fail_help(
                    code::TYPE,
                    at.span,
                    message,
                    label,
                    "write `grad(W)`, `grad(retained(W))` or an expression of these",
                );
            }
        };
        let mut terms = Vec::new();
        for (tensor, weight) in tensors.iter().zip(weights.iter()) {
            let shape = self.terms.shape(weight.term).clone();
            terms.push(self.fit(*tensor, &shape, at.span, "the point of a gradient")?);
        }
        let gradients = self.gradient_vars(terms, span)?;
        Ok(Value::Each(Rc::from(gradients)))
    }

    /// The variables for the gradients at a point, new ones for a new point.
    fn gradient_vars(&mut self, at: Vec<TermId>, span: Span) -> Eval<Vec<Tensor>> {
        let count = self.algo.as_ref().map_or(0, |a| a.points.len());
        let known =
            self.algo.iter().flat_map(|a| &a.points).find(|p| p.at == at).map(|p| p.gradients.clone());
        let vars = match known {
            Some(vars) => vars,
            None if count == budget::MAX_POINTS => {
                let message = format!("an algo takes gradients at most at {count} points");
                return fail_help(code::UNROLL, span, message, "one more here", "use fewer points");
            }
            None => {
                let mut vars = Vec::new();
                for (i, term) in at.iter().enumerate() {
                    let name =
                        self.weight_label(if count == 0 { "g".into() } else { format!("g{}", count + 1) }, i);
                    let role = Role::Gradient { point: count as u32, weight: i as u32 };
                    let shape = self.terms.shape(*term).clone();
                    vars.push(self.terms.add_var(name, role, shape, Some(span)));
                }
                if let Some(algo) = &mut self.algo {
                    algo.points.push(Point { at, gradients: vars.clone() });
                }
                vars
            }
        };
        Ok(vars.into_iter().map(|v| Tensor::plain(self.terms.use_var(v))).collect())
    }

    /// `retained(W)`: what retention makes of the weights when u = 0.
    pub(super) fn retained(&mut self, at: Operand, span: Span) -> Eval<Value> {
        let weights = self.algo_weights("retained", span)?;
        let is_weights = match &at.value {
            Value::Each(list) => list.iter().map(|t| t.term).eq(weights.iter().map(|t| t.term)),
            _ => false,
        };
        if !is_weights {
            let message = "`retained` is known for the weights themselves only";
            return fail_help(code::TYPE, at.span, message, "not `W`", "write `retained(W)`");
        }
        let vars = self.algo.as_ref().map(|a| a.retained.clone()).unwrap_or_default();
        let tensors: Vec<Tensor> = vars.into_iter().map(|v| Tensor::plain(self.terms.use_var(v))).collect();
        Ok(Value::Each(Rc::from(tensors)))
    }

    fn algo_weights(&self, what: &str, span: Span) -> Eval<Rc<[Tensor]>> {
        match &self.algo {
            Some(algo) if !algo.weights.is_empty() => Ok(algo.weights.clone()),
            Some(_) => {
                let message = format!("the memory has no weights, so `{what}` has no meaning");
                fail_help(
                    code::REFUSED_PAIR,
                    span,
                    message,
                    "needs weights",
                    "choose a memory with weights, e.g. `memory: matrix`",
                )
            }
            None => {
                let message = format!("`{what}` has a meaning in an algo only");
                fail_help(
                    code::TYPE,
                    span,
                    message,
                    "used here",
                    "write an algo: `algo name { direction = ...; }`",
                )
            }
        }
    }
}

/// The axis that a word names.
pub(crate) fn axis_word(e: &Expr) -> Eval<Axis> {
    let word = match &e.kind {
        ExprKind::Name(name) => name.text.as_str(),
        _ => "",
    };
    match word {
        "row" => Ok(Axis::Row),
        "column" => Ok(Axis::Column),
        "all" => Ok(Axis::All),
        _ => fail_help(
            code::BAD_ARGUMENT,
            e.span,
            "expected an axis",
            "not an axis",
            "write `row` (each row sums up), `column` or `all`",
        ),
    }
}
