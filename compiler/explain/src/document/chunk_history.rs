//! Chunks of a memory that keeps its history: a mean in blocks, with a running maximum.

use super::carried::last;
use super::product::at;
use super::steps::scope;
use super::{Part, Step};
use crate::math::{Big, Formula, Math, difference, named, over, scaled, sum, word};
use miras_base::scalar::Fn1;
use miras_rule::UpdateRule;
use miras_spec::Algo;

/// The answer over the history in blocks.
pub(super) fn history(rule: &UpdateRule) -> Part {
    let Some(answer) = &rule.answer else { return Part { summary: String::new(), steps: Vec::new() } };
    let scope = scope(rule);
    let pair = scope.at("i", "0", "i").asked("t");
    let (window, refinements) = match &rule.layer.algo {
        Algo::Weigh(weigh) => (weigh.window, weigh.refinements),
        Algo::Step(_) => (None, 0),
    };
    let range = window.map_or("i<=t".to_string(), |n| format!("t-{n}<i<=t"));
    let exp = |a: Math| Math::Function(Fn1::Exp, Box::new(a));
    let (score, top) = (|| at("a", "t,i"), |time: &str| at("m", time));
    let value = pair.math(answer.averaged);
    let weight = exp(difference(score(), top("t")));
    let mean = Math::Fraction(
        Box::new(over(&range, scaled(weight.clone(), value.clone()))),
        Box::new(over(&range, weight)),
    );
    let scores = Step {
        title: "Scores".into(),
        choice: "algo",
        formulas: vec![
            Formula::new(score(), pair.math(answer.log_kernel)),
            Formula::new(top("t"), Math::Over(Big::Max, Box::new(word(&range)), Box::new(score()))),
        ],
        reason: "The logarithm of the kernel of a query and a kept key, and the largest of them: a mask leaves out the \
                 keys that the token does not see."
            .into(),
    };
    let answers = Step {
        title: "What every token reads".into(),
        choice: "",
        formulas: vec![Formula::new(at("o", "t"), mean)],
        reason: "A mean with normalised kernel weights; no exponential is larger than 1.".into(),
    };
    let mut steps = vec![scores, answers, blocks(&value)];
    if refinements > 0 {
        steps[0].reason +=
            &format!(" The query is replaced by the mean of the keys {refinements} times before.");
    }
    let reads = match window {
        None => "Every token reads the whole history, which is kept".into(),
        Some(n) => {
            let before = n.saturating_sub(1);
            format!(
                "Every token reads itself and at most {before} before it, and what is kept is {}",
                last(n)
            )
        }
    };
    let summary = format!(
        "{reads}; blocks of what is read are taken one after the other with a running maximum, so that no T by T matrix \
         is stored and the result is exact."
    );
    Part { summary, steps }
}

/// How a further block B changes the running sums.
fn blocks(value: &Math) -> Step {
    let exp = |a: Math| Math::Function(Fn1::Exp, Box::new(a));
    let max = Math::Call(
        "max".into(),
        "",
        vec![named("m"), Math::Over(Big::Max, Box::new(word("i in B")), Box::new(at("a", "t,i")))],
    );
    let fade = exp(difference(named("m"), named("m'")));
    let weight = exp(difference(at("a", "t,i"), named("m'")));
    let block = |body: Math| over("i in B", body);
    Step {
        title: "One more block of keys".into(),
        choice: "",
        formulas: vec![
            Formula::new(named("m'"), max),
            Formula::new(named("n'"), sum([scaled(fade.clone(), named("n")), block(scaled(weight.clone(), value.clone()))])),
            Formula::new(named("s'"), sum([scaled(fade, named("s")), block(weight)])),
        ],
        reason: "The running numerator n and denominator s of token t are brought to the new maximum; o is n / s at the end."
            .into(),
    }
}
