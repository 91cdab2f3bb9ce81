//! Named tensors.

use crate::tensor::Tensor;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A tensor of a file whose element type is none of ours; its values were not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// Sizes of the axes.
    pub shape: Vec<usize>,
    /// The element type as the file names it, e.g. `U8`.
    pub element: String,
}

/// Tensors by name, in order of their names. Cloning shares the entries.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bundle {
    tensors: BTreeMap<String, Arc<Tensor>>,
    foreign: BTreeMap<String, Foreign>,
}

impl Bundle {
    /// No tensors.
    pub fn new() -> Bundle {
        Bundle::default()
    }

    /// Adds a tensor in place of any of that name.
    pub fn insert(&mut self, name: impl Into<String>, tensor: impl Into<Arc<Tensor>>) {
        self.tensors.insert(name.into(), tensor.into());
    }

    /// Notes a tensor of an element type that cannot be used.
    pub fn insert_foreign(&mut self, name: impl Into<String>, foreign: Foreign) {
        self.foreign.insert(name.into(), foreign);
    }

    /// Takes a tensor out.
    pub fn remove(&mut self, name: &str) -> Option<Arc<Tensor>> {
        self.tensors.remove(name)
    }

    /// The tensor of a name.
    pub fn get(&self, name: &str) -> Option<&Arc<Tensor>> {
        self.tensors.get(name)
    }

    /// What is known of a tensor whose element type cannot be used.
    pub fn foreign(&self, name: &str) -> Option<&Foreign> {
        self.foreign.get(name)
    }

    /// Whether the file had a tensor of that name, of whatever type.
    pub fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(name) || self.foreign.contains_key(name)
    }

    /// All tensors that can be used.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Arc<Tensor>)> {
        self.tensors.iter().map(|(n, t)| (n.as_str(), t))
    }

    /// All names, those of unusable element types last.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().chain(self.foreign.keys()).map(String::as_str)
    }

    /// Number of usable tensors.
    pub fn len(&self) -> usize {
        self.tensors.len()
    }

    /// Whether there are no usable tensors.
    pub fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }
}

impl<N: Into<String>> FromIterator<(N, Tensor)> for Bundle {
    fn from_iter<I: IntoIterator<Item = (N, Tensor)>>(items: I) -> Bundle {
        let mut bundle = Bundle::new();
        for (name, tensor) in items {
            bundle.insert(name, tensor);
        }
        bundle
    }
}
