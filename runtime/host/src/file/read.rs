//! Reading: bytes of any kind in, tensors or one diagnostic out.

use crate::bundle::{Bundle, Foreign};
use crate::tensor::{Data, Tensor};
use miras_base::Diagnostic;
use miras_base::diagnostic::code;
use safetensors::tensor::{Dtype, SafeTensorError, SafeTensors, TensorView};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The tensors of a safetensors file.
///
/// float16 and bfloat16 become float32 (exactly), int32 becomes int64; other element types are kept as
/// [`Foreign`]. Errors (E0507) say what is wrong with the path or the bytes. Memory is bounded by the
/// file's length.
pub fn read(path: &Path) -> Result<Bundle, Diagnostic> {
    let bytes = read_bytes(path)?;
    parse(&bytes).map_err(|why| {
        let message = format!("`{}` is not a sound safetensors file: {why}", path.display());
        Diagnostic::new(code::READ_FILE, message)
            .with_help("write it again with a safetensors library; a copy that was cut short shows this too")
    })
}

/// The tensors in the bytes of a safetensors file, or what is wrong with them.
pub fn parse(bytes: &[u8]) -> Result<Bundle, String> {
    let tensors = SafeTensors::deserialize(bytes).map_err(|e| explain(&e, bytes))?;
    let mut bundle = Bundle::new();
    for (name, view) in tensors.iter() {
        match tensor(&view) {
            Some(tensor) => bundle.insert(name, tensor),
            None => bundle.insert_foreign(
                name,
                Foreign { shape: view.shape().to_vec(), element: view.dtype().to_string() },
            ),
        }
    }
    Ok(bundle)
}

fn read_bytes(path: &Path) -> Result<Vec<u8>, Diagnostic> {
    let fail = |why: String, help: &str| {
        Diagnostic::new(code::READ_FILE, format!("cannot read `{}`: {why}", path.display())).with_help(help)
    };
    let io = |e: std::io::Error| fail(reason(&e), "check the path and that you may read the file");
    // Asked before opening: opening a pipe would wait for its writer.
    let kind = std::fs::metadata(path).map_err(io)?;
    if kind.is_dir() {
        return Err(fail("it is a folder".into(), "give the path of a .safetensors file"));
    }
    if !kind.is_file() {
        return Err(fail("it is not a regular file".into(), "copy the data to a file first"));
    }
    let mut bytes = Vec::new();
    let length = usize::try_from(kind.len()).unwrap_or(usize::MAX);
    let too_large = || {
        fail(format!("its {} bytes do not fit into memory", kind.len()), "split the data into smaller files")
    };
    // The bytes and the numbers made of them are there at once.
    if kind.len().saturating_mul(2) > crate::limit::memory() {
        return Err(too_large());
    }
    bytes.try_reserve_exact(length).map_err(|_| too_large())?;
    let file = File::open(path).map_err(io)?;
    file.take(kind.len()).read_to_end(&mut bytes).map_err(io)?;
    Ok(bytes)
}

/// The reason of an i/o error without the operating system's number.
pub(crate) fn reason(e: &std::io::Error) -> String {
    let text = e.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_lowercase(),
        None => text,
    }
}

fn explain(e: &SafeTensorError, bytes: &[u8]) -> String {
    match e {
        SafeTensorError::HeaderTooSmall => format!("it has {} bytes, fewer than the 8 of the header's length", bytes.len()),
        SafeTensorError::HeaderTooLarge => "its header claims more than 100 MB; the first 8 bytes are no header length".into(),
        SafeTensorError::InvalidHeaderLength => {
            format!("its header claims to be longer than the file's {} bytes", bytes.len())
        }
        SafeTensorError::InvalidHeader(_) => "its header is not UTF-8 text".into(),
        SafeTensorError::InvalidHeaderDeserialization(e) | SafeTensorError::JsonError(e) => {
            format!("its header is not the JSON it should be ({e})")
        }
        SafeTensorError::InvalidOffset(name) => format!("the bytes of `{name}` overlap others or leave a gap"),
        SafeTensorError::TensorInvalidInfo => "a tensor's shape and element type do not fit its number of bytes".into(),
        SafeTensorError::MetadataIncompleteBuffer => {
            "its header accounts for another number of bytes than the file has (cut short, or with something appended)".into()
        }
        SafeTensorError::ValidationOverflow => "the size of a tensor is beyond any memory".into(),
        SafeTensorError::MisalignedSlice => "a tensor ends within a byte".into(),
        SafeTensorError::TensorNotFound(_) | SafeTensorError::IoError(_) | SafeTensorError::InvalidTensorView(..) => {
            e.to_string()
        }
    }
}

fn tensor(view: &TensorView<'_>) -> Option<Tensor> {
    let bytes = view.data();
    let data = match view.dtype() {
        Dtype::F32 => Data::F32(numbers(bytes, f32::from_le_bytes)),
        Dtype::F64 => Data::F64(numbers(bytes, f64::from_le_bytes)),
        Dtype::F16 => Data::F32(numbers(bytes, |b| half::f16::from_le_bytes(b).to_f32())),
        Dtype::BF16 => Data::F32(numbers(bytes, |b| half::bf16::from_le_bytes(b).to_f32())),
        Dtype::I64 => Data::I64(numbers(bytes, i64::from_le_bytes)),
        Dtype::I32 => Data::I64(numbers(bytes, |b| i64::from(i32::from_le_bytes(b)))),
        // The list of element types is open; all others are foreign.
        _ => return None,
    };
    Some(Tensor { shape: view.shape().to_vec(), data })
}

fn numbers<const N: usize, T>(bytes: &[u8], from: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks::<N>().0.iter().map(|b| from(*b)).collect()
}
