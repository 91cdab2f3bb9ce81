//! Dense float64 arrays of rank 0, 1 or 2 and the plain loops over them.

use crate::trouble::{Made, Trouble};
use miras_term::Reduce;

/// A dense float64 array, rows first. Truth values are 1 and 0.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Array {
    pub shape: Vec<usize>,
    pub data: Vec<f64>,
}

impl Array {
    pub fn new(shape: Vec<usize>, data: Vec<f64>) -> Made<Array> {
        if shape.len() > 2 || shape.iter().product::<usize>() != data.len() {
            return Err(Trouble::bug(format!("{} entries for the shape {shape:?}", data.len())));
        }
        Ok(Array { shape, data })
    }

    pub fn scalar(x: f64) -> Array {
        Array { shape: Vec::new(), data: vec![x] }
    }

    pub fn filled(shape: &[usize], x: f64) -> Array {
        Array { shape: shape.to_vec(), data: vec![x; shape.iter().product()] }
    }

    pub fn eye(n: usize) -> Array {
        let mut array = Array::filled(&[n, n], 0.0);
        for i in 0..n {
            array.data[i * n + i] = 1.0;
        }
        array
    }

    /// Rows and columns, a vector counting as one row.
    pub fn grid(&self) -> (usize, usize) {
        grid(&self.shape)
    }

    pub fn map(&self, f: impl Fn(f64) -> f64) -> Array {
        Array { shape: self.shape.clone(), data: self.data.iter().map(|x| f(*x)).collect() }
    }

    /// Entry by entry, with repetition of scalars and size-1 axes.
    pub fn zip(&self, other: &Array, f: impl Fn(f64, f64) -> f64) -> Made<Array> {
        if self.shape == other.shape {
            let data = self.data.iter().zip(&other.data).map(|(a, b)| f(*a, *b)).collect();
            return Ok(Array { shape: self.shape.clone(), data });
        }
        let shape = joined(&self.shape, &other.shape)?;
        let (rows, cols) = grid(&shape);
        let (sa, sb) = (strides(&self.shape), strides(&other.shape));
        let mut data = Vec::with_capacity(rows * cols);
        for i in 0..rows {
            for j in 0..cols {
                data.push(f(self.data[i * sa.0 + j * sa.1], other.data[i * sb.0 + j * sb.1]));
            }
        }
        Ok(Array { shape, data })
    }

    /// `self` where it is not 0 chooses `yes`, else `no`. Both are only selected, never multiplied.
    pub fn select(&self, yes: &Array, no: &Array) -> Made<Array> {
        let shape = joined(&joined(&yes.shape, &no.shape)?, &self.shape)?;
        let (rows, cols) = grid(&shape);
        let (sc, sy, sn) = (strides(&self.shape), strides(&yes.shape), strides(&no.shape));
        let mut data = Vec::with_capacity(rows * cols);
        for i in 0..rows {
            for j in 0..cols {
                let chosen = self.data[i * sc.0 + j * sc.1] != 0.0;
                data.push(if chosen { yes.data[i * sy.0 + j * sy.1] } else { no.data[i * sn.0 + j * sn.1] });
            }
        }
        Ok(Array { shape, data })
    }

    /// [m, n] @ [n] or [m, n] @ [n, p].
    pub fn matmul(&self, other: &Array) -> Made<Array> {
        let ([m, n], Some(inner)) = (self.shape.as_slice(), other.shape.first()) else {
            return Err(misfit("@", self, other));
        };
        if n != inner {
            return Err(misfit("@", self, other));
        }
        let p = other.shape.get(1).copied().unwrap_or(1);
        let mut data = vec![0.0; m * p];
        for i in 0..*m {
            for l in 0..*n {
                let a = self.data[i * n + l];
                for j in 0..p {
                    data[i * p + j] += a * other.data[l * p + j];
                }
            }
        }
        let shape = if other.shape.len() == 2 { vec![*m, p] } else { vec![*m] };
        Ok(Array { shape, data })
    }

    pub fn outer(&self, other: &Array) -> Made<Array> {
        if self.shape.len() != 1 || other.shape.len() != 1 {
            return Err(misfit("outer", self, other));
        }
        let data = self.data.iter().flat_map(|x| other.data.iter().map(move |y| x * y)).collect();
        Ok(Array { shape: vec![self.data.len(), other.data.len()], data })
    }

    pub fn transpose(&self) -> Array {
        let (m, n) = self.grid();
        let mut data = Vec::with_capacity(m * n);
        for j in 0..n {
            data.extend((0..m).map(|i| self.data[i * n + j]));
        }
        Array { shape: vec![n, m], data }
    }

    pub fn reshape(&self, shape: &[usize]) -> Made<Array> {
        Array::new(shape.to_vec(), self.data.clone())
    }

    pub fn spread(&self, shape: &[usize]) -> Made<Array> {
        if joined(&self.shape, shape)? != shape {
            return Err(Trouble::bug(format!("{:?} does not spread to {shape:?}", self.shape)));
        }
        let (rows, cols) = grid(shape);
        let s = strides(&self.shape);
        let mut data = Vec::with_capacity(rows * cols);
        for i in 0..rows {
            data.extend((0..cols).map(|j| self.data[i * s.0 + j * s.1]));
        }
        Ok(Array { shape: shape.to_vec(), data })
    }

    /// The reduction over every axis that `shape` lacks or has with size 1.
    pub fn reduce_to(&self, op: Reduce, shape: &[usize]) -> Made<Array> {
        if joined(shape, &self.shape)? != self.shape {
            return Err(Trouble::bug(format!("{:?} does not reduce to {shape:?}", self.shape)));
        }
        let (start, fold): (f64, fn(f64, f64) -> f64) = match op {
            Reduce::Sum => (0.0, |a, b| a + b),
            Reduce::Max => (f64::NEG_INFINITY, f64::max),
            Reduce::Min => (f64::INFINITY, f64::min),
        };
        let mut result = Array::filled(shape, start);
        let (rows, cols) = self.grid();
        let s = strides(shape);
        for i in 0..rows {
            for j in 0..cols {
                let slot = &mut result.data[i * s.0 + j * s.1];
                *slot = fold(*slot, self.data[i * cols + j]);
            }
        }
        Ok(result)
    }

    /// (sum |x|^p)^(1/p), scaled by the largest entry so that no power over- or underflows.
    pub fn norm(&self, p: f64) -> f64 {
        let largest = self.data.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
        if largest == 0.0 {
            return 0.0;
        }
        largest * self.data.iter().map(|x| (x.abs() / largest).powf(p)).sum::<f64>().powf(1.0 / p)
    }

    /// Equal arrays as the rows of one with an axis more.
    pub fn stack(items: &[&Array]) -> Made<Array> {
        let inner = items.first().map(|a| a.shape.clone()).unwrap_or_default();
        if items.iter().any(|a| a.shape != inner) {
            return Err(Trouble::bug("arrays of different shapes do not stack"));
        }
        let shape = [vec![items.len()], inner].concat();
        Array::new(shape, items.iter().flat_map(|a| a.data.iter().copied()).collect())
    }

    /// The n-th entry along the first axis.
    pub fn pick(&self, n: usize) -> Made<Array> {
        let outside = || Trouble::bug(format!("no entry {n} in the shape {:?}", self.shape));
        let inner = self.shape.get(1..).ok_or_else(outside)?.to_vec();
        let size: usize = inner.iter().product();
        let data = self.data.get(n * size..(n + 1) * size).ok_or_else(outside)?.to_vec();
        Ok(Array { shape: inner, data })
    }

    /// Zeros with this array as the n-th of `count` entries along a new first axis.
    pub fn scatter(&self, n: usize, count: usize) -> Made<Array> {
        let size = self.data.len();
        let mut data = vec![0.0; count * size];
        let slot = data
            .get_mut(n * size..(n + 1) * size)
            .ok_or_else(|| Trouble::bug(format!("no entry {n} of {count}")))?;
        slot.copy_from_slice(&self.data);
        Array::new([vec![count], self.shape.clone()].concat(), data)
    }
}

fn grid(shape: &[usize]) -> (usize, usize) {
    match shape {
        [] => (1, 1),
        [n] => (1, *n),
        [m, n, ..] => (*m, *n),
    }
}

/// Steps along rows and columns; 0 along repeated axes.
fn strides(shape: &[usize]) -> (usize, usize) {
    match shape {
        [] => (0, 0),
        [n] => (0, usize::from(*n != 1)),
        [m, n, ..] => (if *m == 1 { 0 } else { *n }, usize::from(*n != 1)),
    }
}

/// The shape in which two operands meet.
fn joined(a: &[usize], b: &[usize]) -> Made<Vec<usize>> {
    if a.is_empty() || b.is_empty() {
        return Ok(if a.is_empty() { b.to_vec() } else { a.to_vec() });
    }
    if a.len() != b.len() || a.iter().zip(b).any(|(x, y)| x != y && *x != 1 && *y != 1) {
        return Err(Trouble::bug(format!("the shapes {a:?} and {b:?} do not meet")));
    }
    Ok(a.iter().zip(b).map(|(x, y)| if *x == 1 { *y } else { *x }).collect())
}

fn misfit(what: &str, a: &Array, b: &Array) -> Trouble {
    Trouble::bug(format!("{what}: the shapes {:?} and {:?} do not fit", a.shape, b.shape))
}
