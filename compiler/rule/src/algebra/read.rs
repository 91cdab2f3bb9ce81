//! From terms to sums of products: one arm per operation.

use super::poly::{Coefficient, Exponent, Monomial, Poly};
use super::product::primitive;
use super::relabel::Relabel;
use super::ring::{Halt, Out, Ring};
use super::rules;
use miras_base::scalar::{Fn1, Fn2, Parity, row};
use miras_term::{Op, TermId};

impl Ring<'_> {
    /// One term, its operands being read already.
    pub(super) fn read(&mut self, id: TermId) -> Out<Poly> {
        self.spend(1)?;
        let op = self.terms.op(id).clone();
        match op {
            Op::Const(n) if n.0.is_finite() => Ok(Poly::number(n.0)),
            Op::Const(_) | Op::Size(_) | Op::Place(_) | Op::Var(_) | Op::Eye(_) | Op::Root(_) => {
                Ok(Poly::atom(id))
            }
            Op::Fn1(f, a) => {
                let a = self.poly(a)?;
                self.fn1(f, &a)
            }
            Op::Fn2(f, a, b) => self.read_fn2(f, a, b),
            Op::Spread(a, _) => Ok((*self.poly(a)?).clone()),
            Op::Stop(a) => {
                let a = self.written(a)?;
                Ok(Poly::atom(self.terms.stop(a)?))
            }
            Op::Compare(c, a, b) => {
                let (a, b) = (self.written(a)?, self.written(b)?);
                Ok(Poly::atom(self.terms.compare(c, a, b)?))
            }
            Op::Select(c, a, b) => {
                let c = self.condition(c)?;
                let (a, b) = (self.written(a)?, self.written(b)?);
                let chosen = self.terms.select(c, a, b)?;
                self.opaque(chosen)
            }
            Op::Transpose(a) => self.relabel(a, Relabel::Transpose),
            Op::Row(a) => self.relabel(a, Relabel::Row),
            Op::Col(a) => self.relabel(a, Relabel::Col),
            Op::Flat(a) => self.relabel(a, Relabel::Flat),
            Op::MatMul(..)
            | Op::Outer(..)
            | Op::Reduce(..)
            | Op::Norm(..)
            | Op::Softmax(..)
            | Op::LogSoftmax(..)
            | Op::LayerNorm(_)
            | Op::InverseDeviation(_) => {
                let rebuilt = self.structural(&op)?;
                self.opaque(rebuilt)
            }
        }
    }

    /// A term that was built of simplified operands: an atom, unless a rule or the builder made it
    /// something else.
    fn opaque(&mut self, id: TermId) -> Out<Poly> {
        if let Some(x) = self.terms.as_num(id) {
            return Ok(Poly::number(x));
        }
        if let Some(better) = rules::apply(self, id)? {
            return Ok((*self.poly(better)?).clone());
        }
        if matches!(self.terms.op(id), Op::Var(_) | Op::Spread(..) | Op::Fn1(Fn1::Neg, _)) {
            return Ok((*self.poly(id)?).clone());
        }
        Ok(Poly::atom(id))
    }

    /// A term in simplest form, in the shape that its parts have.
    pub(super) fn written(&mut self, id: TermId) -> Out<TermId> {
        let p = self.poly(id)?;
        self.write(&p)
    }

    /// A term in simplest form, in its own shape.
    fn fitted(&mut self, id: TermId) -> Out<TermId> {
        let shape = self.terms.shape(id).clone();
        let written = self.written(id)?;
        Ok(self.terms.spread(written, &shape)?)
    }

    fn condition(&mut self, id: TermId) -> Out<TermId> {
        let Op::Compare(c, a, b) = *self.terms.op(id) else { return Ok(id) };
        let (a, b) = (self.written(a)?, self.written(b)?);
        Ok(self.terms.compare(c, a, b)?)
    }

    fn structural(&mut self, op: &Op) -> Out<TermId> {
        let mut fit = |t: TermId| self.fitted(t);
        Ok(match op {
            Op::MatMul(a, b) => {
                let (a, b) = (fit(*a)?, fit(*b)?);
                self.terms.matmul(a, b)?
            }
            Op::Outer(a, b) => {
                let (a, b) = (fit(*a)?, fit(*b)?);
                self.terms.outer(a, b)?
            }
            Op::Norm(x, p) => {
                let (x, p) = (fit(*x)?, fit(*p)?);
                self.terms.norm(x, p)?
            }
            Op::Reduce(op, axis, a) => {
                let a = fit(*a)?;
                self.terms.reduce(*op, *axis, a)?
            }
            Op::Softmax(axis, a) => {
                let a = fit(*a)?;
                self.terms.softmax(*axis, a)?
            }
            Op::LogSoftmax(axis, a) => {
                let a = fit(*a)?;
                self.terms.log_softmax(*axis, a)?
            }
            Op::LayerNorm(a) => {
                let a = fit(*a)?;
                self.terms.layer_norm(a)?
            }
            Op::InverseDeviation(a) => {
                let a = fit(*a)?;
                self.terms.inverse_deviation(a)?
            }
            Op::Const(_)
            | Op::Size(_)
            | Op::Place(_)
            | Op::Var(_)
            | Op::Fn1(..)
            | Op::Fn2(..)
            | Op::Compare(..)
            | Op::Select(..)
            | Op::Spread(..)
            | Op::Transpose(_)
            | Op::Row(_)
            | Op::Col(_)
            | Op::Flat(_)
            | Op::Eye(_)
            | Op::Stop(_)
            | Op::Root(_) => return Err(Halt::Work),
        })
    }

    fn read_fn2(&mut self, f: Fn2, a: TermId, b: TermId) -> Out<Poly> {
        let (p, q) = (self.poly(a)?, self.poly(b)?);
        let opaque = |ring: &mut Self| {
            let (a, b) = (ring.write(&p)?, ring.write(&q)?);
            let built = ring.terms.fn2(f, a, b)?;
            ring.opaque(built)
        };
        match f {
            Fn2::Add => self.reduce(p.add(&q)),
            Fn2::Sub => self.reduce(p.sub(&q)),
            Fn2::Mul => {
                self.note_factor(&p);
                self.note_factor(&q);
                self.mul(&p, &q)
            }
            Fn2::Div if q.is_zero() => opaque(self),
            Fn2::Div => {
                self.note_factor(&p);
                let below = self.reciprocal(&q)?;
                self.mul(&p, &below)
            }
            Fn2::Pow => match self.power_of(&p, &q) {
                Err(Halt::Work) => opaque(self),
                done => done,
            },
            Fn2::Min | Fn2::Max => opaque(self),
        }
    }

    /// p^y as a program writes it: a negative power is 0 at 0.
    fn power_of(&mut self, p: &Poly, y: &Poly) -> Out<Poly> {
        if p.is_zero() && y.as_number() != Some(0.0) {
            return y.as_number().map_or(Err(Halt::Work), |_| Ok(Poly::zero()));
        }
        let power = self.power(p, y)?;
        if y.as_number().is_some_and(|n| n < 0.0) {
            let below: Vec<TermId> = power
                .monomials
                .keys()
                .flat_map(|m| &m.0)
                .filter(|(_, e)| e.as_number().is_some_and(|n| n < 0.0))
                .map(|(t, _)| *t)
                .collect();
            self.reciprocals.extend(below);
        }
        Ok(power)
    }

    /// `f(p)`.
    pub fn fn1(&mut self, f: Fn1, p: &Poly) -> Out<Poly> {
        match f {
            Fn1::Neg => Ok(p.scale(-1.0)),
            Fn1::Exp => self.exp(p),
            Fn1::Log => self.log(p),
            Fn1::Sqrt => match self.power(p, &Poly::number(0.5)) {
                Err(Halt::Work) => self.apply(f, p),
                done => done,
            },
            Fn1::Abs => self.abs(p),
            Fn1::Sign => self.sign(p),
            _ => self.by_parity(f, p),
        }
    }

    fn apply(&mut self, f: Fn1, p: &Poly) -> Out<Poly> {
        let a = self.write(p)?;
        let built = self.terms.fn1(f, a)?;
        self.opaque(built)
    }

    /// f(-x) = f(x) or -f(x): the argument's first coefficient is made positive.
    fn by_parity(&mut self, f: Fn1, p: &Poly) -> Out<Poly> {
        let negative = p.first().is_some_and(|(_, c)| c.value < 0.0);
        match (row(f).parity, negative) {
            (Parity::Odd, true) => Ok(self.apply(f, &p.scale(-1.0))?.scale(-1.0)),
            (Parity::Even, true) => self.apply(f, &p.scale(-1.0)),
            _ => self.apply(f, p),
        }
    }

    /// e^(a + n log x) = e^a x^n where x > 0.
    pub(super) fn exp(&mut self, p: &Poly) -> Out<Poly> {
        let (mut rest, mut product) = (Poly::zero(), Poly::number(1.0));
        for (m, c) in &p.monomials {
            let log = m.0.iter().find_map(|(t, e)| {
                let x = self.argument_of(Fn1::Log, *t)?;
                (*e == Exponent::one()).then_some((*t, x))
            });
            let positive = match log {
                Some((_, x)) => self.bounds(x).positive(),
                None => false,
            };
            match log {
                Some((t, x)) if positive => {
                    let factor = m.raw_mul(&Monomial::power(t, Exponent::number(-1.0)));
                    let x = self.poly(x)?;
                    let power = self.power(&x, &Poly::monomial(*c, factor))?;
                    product = self.mul(&product, &power)?;
                }
                _ => rest.put(m.clone(), *c),
            }
        }
        if rest.is_zero() {
            return Ok(product);
        }
        let exponential = self.apply(Fn1::Exp, &rest)?;
        if product.as_number() == Some(1.0) { Ok(exponential) } else { self.mul(&product, &exponential) }
    }

    /// log(c x^n y) = log c + n log x + log y where all are positive.
    fn log(&mut self, p: &Poly) -> Out<Poly> {
        let (c, content, base) = primitive(p, true);
        if c <= 0.0 {
            return self.apply(Fn1::Log, p);
        }
        let mut parts: Vec<(TermId, Exponent)> = content.0;
        if base.as_number() != Some(1.0) {
            parts.push((self.write(&base)?, Exponent::one()));
        }
        if !parts.iter().all(|(t, _)| self.bounds(*t).positive()) {
            return self.apply(Fn1::Log, p);
        }
        let mut sum = Poly::number(c.ln());
        for (t, e) in parts {
            let log = match self.argument_of(Fn1::Exp, t) {
                Some(a) => (*self.poly(a)?).clone(),
                None => Poly::atom(self.terms.fn1(Fn1::Log, t)?),
            };
            let e = self.exponent_poly(&e)?;
            sum = sum.add(&self.mul(&e, &log)?);
        }
        Ok(sum)
    }

    fn abs(&mut self, p: &Poly) -> Out<Poly> {
        if p.is_zero() {
            return Ok(Poly::zero());
        }
        let b = self.poly_bounds(p)?;
        if b.not_negative() {
            return Ok(p.clone());
        }
        if b.high <= 0.0 {
            return Ok(p.scale(-1.0));
        }
        let (c, _, _) = primitive(p, true);
        let a = self.write(&p.scale(1.0 / c))?;
        let built = self.terms.fn1(Fn1::Abs, a)?;
        Ok(Poly::monomial(Coefficient::new(c.abs()), Monomial::power(built, Exponent::one())))
    }

    fn sign(&mut self, p: &Poly) -> Out<Poly> {
        if p.is_zero() {
            return Ok(Poly::zero());
        }
        let b = self.poly_bounds(p)?;
        if b.positive() {
            return Ok(Poly::number(1.0));
        }
        if b.negative() {
            return Ok(Poly::number(-1.0));
        }
        let (c, _, _) = primitive(p, true);
        let a = self.write(&p.scale(1.0 / c))?;
        let built = self.terms.fn1(Fn1::Sign, a)?;
        Ok(Poly::monomial(Coefficient::new(c.signum()), Monomial::power(built, Exponent::one())))
    }
}
