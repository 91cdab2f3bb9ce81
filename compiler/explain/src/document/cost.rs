//! What a token costs, forward and back, and what going back must remember.

use super::carried::{last, window};
use miras_base::{Dim, DimEnv};
use miras_schedule::{Plan, Schedule, StatePart, stretch};

/// Operations per token and head, of one kind.
#[derive(Clone, Debug)]
pub(crate) struct Count {
    pub what: &'static str,
    pub forward: String,
    /// At dk = dv = 64.
    pub forward_at_64: Option<u64>,
    pub backward: String,
    pub backward_at_64: Option<u64>,
}

/// What the program of a chunk takes, counted in the program itself at dk = dv = 64.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    /// Tokens that are computed together.
    pub tokens: u32,
    /// Multiply-adds of all of them.
    pub multiply_adds: u64,
    /// Other operations of all of them.
    pub element_wise: u64,
    /// Floats of scratch memory of one stream and head.
    pub scratch: u64,
}

impl Counted {
    /// Multiply-adds and other operations for each token, rounded up.
    pub(crate) fn each(&self) -> [u64; 2] {
        [self.multiply_adds, self.element_wise].map(|n| n.div_ceil(u64::from(self.tokens.max(1))))
    }

    /// As a sentence.
    pub(crate) fn text(&self) -> String {
        let [products, others] = self.each();
        format!(
            "What runs is the program of a block of {} tokens. At dk = dv = 64 it takes {products} multiply-adds and {others} \
             element-wise operations for each token, counted in the program, and {} floats of scratch memory for one \
             stream and head. It carries the same state.",
            self.tokens, self.scratch
        )
    }
}

/// What the backward pass remembers.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    /// Entries of what is carried; None: there is no carry of a fixed size.
    pub carry: Option<String>,
    pub carry_at_64: Option<u64>,
    /// How many tokens lie between two kept carries: of a block, or for the stream that is shown; None as for `carry`.
    pub every: Option<usize>,
    pub text: String,
}

/// What the backward counts are.
const BACKWARD: &str = "Backward counts are what reverse mode makes of the forward step: two products for each product, and \
                        the step once more to have its operands again.";
/// The size at which numbers are shown.
const SHOWN: u64 = 64;
/// The length of a stream at which memory is shown.
const TOKENS: u64 = 4096;

fn at_64(dim: &Dim) -> Option<u64> {
    dim.eval(&DimEnv::from([("dk".into(), SHOWN), ("dv".into(), SHOWN)]))
}

/// Operations forward and back. Reverse mode makes two products of every product and passes each operation once
/// more to have its operands again.
pub(super) fn counts(plan: &Plan) -> Vec<Count> {
    let row = |what, dim: &Dim, times: i64| {
        let back = dim.mul(&Dim::constant(times));
        Count {
            what,
            forward: dim.formula(),
            forward_at_64: at_64(dim),
            backward: back.as_ref().map_or_else(String::new, Dim::formula),
            backward_at_64: back.as_ref().and_then(at_64),
        }
    };
    vec![row("multiply-adds", &plan.cost.multiply_adds, 3), row("element-wise", &plan.cost.element_wise, 3)]
}

/// Memory of the backward pass: what is carried before each block; or carries at some tokens, and the tape of the
/// stretch at hand.
pub(super) fn memory(plan: &Plan) -> Memory {
    let every = match plan.blocks.together() {
        true => plan.blocks.tokens as usize,
        false => stretch(TOKENS as usize),
    };
    // At a block's border a chunk's start is the carried value.
    let kept = |p: &&StatePart| !plan.blocks.together() || !p.tensor.starts_with("state.anchor.");
    let mut own = plan.state.iter().filter(kept).filter_map(|p| p.entries.clone());
    let carry = own.try_fold(Dim::constant(0), |sum, e| sum.add(&e));
    let carry = carry.filter(|_| !plan.rule.layer.memory.history);
    let Some(carry) = carry else {
        return Memory { carry: None, carry_at_64: None, every: None, text: of_history(plan) };
    };
    let text = match plan.blocks.together() {
        true => of_blocks(&carry, every as u64),
        false => of_tokens(&carry, every as u64),
    };
    Memory { carry_at_64: at_64(&carry), carry: Some(carry.formula()), every: Some(every), text }
}

/// What going back block by block needs.
fn of_blocks(carry: &Dim, every: u64) -> String {
    let kept = TOKENS / every;
    let example = at_64(carry).map(|n| {
        let all = kept.saturating_mul(n);
        format!(" At dk = dv = 64 and T = {TOKENS}: {kept} x {n} = {all} entries.")
    });
    format!(
        "What is carried, {} entries, is kept before each block of {every} tokens; a block is computed once more where it \
         is gone back through. Beyond 2^24 entries the blocks go back in stretches that hold so many, with what is \
         carried kept between them.{}",
        carry.formula(),
        example.unwrap_or_default()
    )
}

/// What going back token by token needs.
fn of_tokens(carry: &Dim, every: u64) -> String {
    let kept = TOKENS.div_ceil(every) + every;
    let example = at_64(carry).map(|n| {
        let all = kept.saturating_mul(n);
        format!(" At dk = dv = 64 and T = {TOKENS}: s = {every}, {kept} x {n} = {all} entries.")
    });
    format!(
        "What is carried, {} entries, is kept every s tokens, with s about the root of T. Going back, the s tokens between \
         two of these are computed once more, with what is carried before each of them written down: T / s + s carries in \
         all, where T would be needed to keep each.{}",
        carry.formula(),
        example.unwrap_or_default()
    )
}

/// What going back through a history needs.
fn of_history(plan: &Plan) -> String {
    let held = match window(&plan.rule.layer) {
        None => "The keys and values of the stream are the memory of the backward pass: linear in T".into(),
        Some(0 | 1) => "Going back needs the keys and values that the data give, and no others".into(),
        Some(n) => {
            format!(
                "Beside the keys and values that the data give, going back needs what is carried, {}",
                last(n)
            )
        }
    };
    format!("{held}; nothing is kept for every pair of tokens.")
}

/// What the counts are of.
pub(super) fn remark(plan: &Plan) -> String {
    let of = match (plan.rule.layer.memory.history, window(&plan.rule.layer), plan.schedule) {
        (true, None, _) => "T is the number of tokens so far, this one among them. ".into(),
        (true, Some(0 | 1), _) => "A token sees itself alone. ".into(),
        (true, Some(n), _) => {
            format!("The counts are those of a token that sees {n} tokens; the first of a stream see fewer. ")
        }
        (false, _, Schedule::Recurrent) => String::new(),
        (false, _, Schedule::ChunkedExact(_) | Schedule::ChunkedFrozen(_)) => {
            "The table counts the recurrence, token by token. ".into()
        }
    };
    format!("{of}{BACKWARD}")
}
