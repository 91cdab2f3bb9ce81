//! Bounds: every access lies inside its array, for every number of tokens.

use super::footprint::{Footprint, stretch};
use super::{Check, refuse};
use crate::ir::Count;
use miras_base::Diagnostic;

impl Check<'_> {
    /// Refuses a footprint that may leave its array.
    ///
    /// An access to a token array names exactly one token by a token loop's variable with the coefficient
    /// of one token's part, and stays inside that part; no other array's access may mention such a variable.
    pub(super) fn place(&self, equation: &str, print: &Footprint) -> Result<(), Diagnostic> {
        let Some(array) = self.program.array(print.array) else {
            return Err(refuse(self.program, format!("`{equation}` names an array that does not exist")));
        };
        let outside = || {
            refuse(self.program, format!("`{equation}` reaches outside `{}` {:?}", array.name, array.shape))
        };
        let part = array.part().ok_or_else(outside)?;
        let mut range = print.range().ok_or_else(outside)?;
        let mut tokens = 0usize;
        for (var, &coefficient) in &print.outer {
            match self.scope.get(var) {
                None => {
                    return Err(refuse(
                        self.program,
                        format!("`{equation}` uses a loop variable outside its loop"),
                    ));
                }
                Some(Count::Const(n)) => range = stretch(range, coefficient, *n).ok_or_else(outside)?,
                Some(count)
                    if array.role.along() == Some(*count) && usize::try_from(coefficient) == Ok(part) =>
                {
                    tokens += 1;
                }
                Some(Count::Tokens | Count::Past) => return Err(outside()),
            }
        }
        let expected = usize::from(array.role.along().is_some());
        if tokens != expected || range.0 < 0 || range.1 >= part as i128 {
            return Err(outside());
        }
        Ok(())
    }
}
