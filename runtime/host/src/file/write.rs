//! Writing safetensors files.

use super::place::Pending;
use crate::bundle::Bundle;
use crate::tensor::{Data, Tensor, count};
use miras_base::Diagnostic;
use safetensors::tensor::{Dtype, Metadata, TensorInfo};
use std::borrow::Cow;
use std::io::Write;
use std::path::Path;

/// Writes tensors to a safetensors file, whole or not at all. E0508 where it cannot.
pub fn write(path: &Path, bundle: &Bundle) -> Result<(), Diagnostic> {
    Pending::open(path)?.commit(bundle)
}

impl Pending {
    /// Writes tensors and moves the file to its place.
    ///
    /// # Errors
    /// E0508 where that cannot be done.
    pub fn commit(self, bundle: &Bundle) -> Result<(), Diagnostic> {
        for (name, tensor) in bundle.iter() {
            if count(&tensor.shape) != Some(tensor.len()) {
                let what = format!("`{name}` has {} entries in shape {:?}", tensor.len(), tensor.shape);
                return Err(Diagnostic::bug(what));
            }
        }
        let views = bundle.iter().map(|(n, t)| (n, Bytes(t))).collect();
        self.prepare(|out| write_views(views, out))?.place()
    }
}

/// The format: the header's length (8 bytes, little endian), the header, the entries in the header's order.
fn write_views(mut views: Vec<(&str, Bytes<'_>)>, out: &mut impl Write) -> std::io::Result<()> {
    // Widest elements first, so that every tensor is aligned to its element.
    views.sort_by(|a, b| b.1.dtype().cmp(&a.1.dtype()).then(a.0.cmp(b.0)));
    let header = Metadata::new(None, offsets(&views)).map_err(std::io::Error::other)?;
    let mut text = serde_json::to_vec(&header).map_err(std::io::Error::other)?;
    text.resize(text.len().next_multiple_of(8), b' ');
    out.write_all(&(text.len() as u64).to_le_bytes())?;
    out.write_all(&text)?;
    for (_, view) in &views {
        out.write_all(&view.bytes())?;
    }
    Ok(())
}

fn offsets(views: &[(&str, Bytes<'_>)]) -> Vec<(String, TensorInfo)> {
    let mut end = 0;
    let entry = |(name, view): &(&str, Bytes<'_>)| {
        let start = end;
        end += view.len();
        let info =
            TensorInfo { dtype: view.dtype(), shape: view.0.shape.clone(), data_offsets: (start, end) };
        ((*name).to_string(), info)
    };
    views.iter().map(entry).collect()
}

struct Bytes<'a>(&'a Tensor);

impl Bytes<'_> {
    fn dtype(&self) -> Dtype {
        match &self.0.data {
            Data::F32(_) => Dtype::F32,
            Data::F64(_) => Dtype::F64,
            Data::I64(_) => Dtype::I64,
        }
    }

    fn bytes(&self) -> Cow<'_, [u8]> {
        match &self.0.data {
            Data::F32(x) => little_endian(x, |x| x.to_le_bytes()),
            Data::F64(x) => little_endian(x, |x| x.to_le_bytes()),
            Data::I64(x) => little_endian(x, |x| x.to_le_bytes()),
        }
    }

    fn len(&self) -> usize {
        let width = match &self.0.data {
            Data::F32(_) => 4,
            Data::F64(_) | Data::I64(_) => 8,
        };
        self.0.len() * width
    }
}

fn little_endian<const N: usize, T: bytemuck::NoUninit>(
    x: &[T],
    bytes: impl Fn(&T) -> [u8; N],
) -> Cow<'_, [u8]> {
    if cfg!(target_endian = "little") {
        Cow::Borrowed(bytemuck::cast_slice(x))
    } else {
        Cow::Owned(x.iter().flat_map(bytes).collect())
    }
}
