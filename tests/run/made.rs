//! Tensors that are made, not collected: the inputs of examples and of transcripts. With `MIRAS_BLESS=1` they are
//! written anew.

use miras_driver::Choice;
use miras_host as host;
use miras_tests::{Verdict, bless, pipeline, text};
use std::path::Path;

/// Sizes of the inputs that examples ship: B, H, T, dk, dv.
const EXAMPLES: [(&str, [usize; 5]); 5] = [
    ("01_first_memory", [1, 2, 12, 4, 3]),
    ("02_delta_rule", [1, 2, 12, 4, 4]),
    ("03_titans", [1, 1, 20, 8, 8]),
    ("04_short_form", [1, 1, 20, 8, 8]),
    ("05_browser", [1, 2, 20, 8, 8]),
];

/// What is done to valid inputs.
pub(crate) type Change = fn(&mut host::Bundle);

/// The inputs that transcripts read: valid ones, and one file for each fault.
pub(crate) const FILES: [(&str, Change); 10] = [
    ("good", |_| {}),
    ("no_value", |data| drop(data.remove("v"))),
    ("misshapen", |data| data.insert("algo.eta", host::Tensor::f32([1, 2, 6], vec![0.1; 12]))),
    ("not_a_number", |data| spoil(data, "k", f32::NAN)),
    ("outside", |data| spoil(data, "retention.alpha", 1.5)),
    ("unknown", |data| data.insert("retention.alfa", host::Tensor::f32([1], vec![0.5]))),
    ("segments", |data| data.insert("segments", host::Tensor::i64([3], vec![0, 3, 4]))),
    ("integers", |data| data.insert("algo.eta", host::Tensor::i64([1, 2, 5], vec![1; 10]))),
    ("huge", |data| {
        spoil(data, "k", 1e30);
        spoil(data, "v", 1e30);
    }),
    ("continued", |data| data.insert("state.memory.W", host::Tensor::f32([1, 2, 2, 3], vec![0.5; 12]))),
];

/// The file that continues a stream inside a chunk of four tokens.
pub(crate) const HALFWAY: &str = "halfway";

/// The file that ends too early.
pub(crate) const TRUNCATED: &str = "truncated";

fn spoil(data: &mut host::Bundle, name: &str, value: f32) {
    if let Some(tensor) = data.get(name) {
        let mut values = tensor.f32s().unwrap_or_default().into_owned();
        values[3] = value;
        let spoilt = host::Tensor::f32(tensor.shape.clone(), values);
        data.insert(name, spoilt);
    }
}

/// Inputs of an example, made from its layer.
pub(crate) fn example(path: &Path) -> Verdict {
    let folder = path.parent().ok_or("no folder")?;
    let sizes = EXAMPLES.iter().find(|(name, _)| folder.ends_with(name));
    let (_, sizes) = sizes.ok_or("its sizes are not in the table")?;
    hold(path, &made(&folder.join("layer.miras"), *sizes)?)
}

/// Inputs of the transcripts.
pub(crate) fn file(path: &Path, change: Change) -> Verdict {
    let folder = path.parent().ok_or("no folder")?;
    let mut data = made(&folder.join("delta.miras"), [1, 2, 5, 3, 2])?;
    change(&mut data);
    hold(path, &data)
}

/// Inputs beside the state that an earlier run of `frozen.miras` left, one token into its second chunk.
pub(crate) fn halfway(path: &Path) -> Verdict {
    let folder = path.parent().ok_or("no folder")?;
    let layer = folder.join("frozen.miras");
    let mut data = made(&layer, [1, 2, 5, 3, 2])?;
    let mut loaded =
        pipeline::load("frozen.miras", &text(&layer)?, &Choice::default()).map_err(|e| pipeline::told(&e))?;
    let asked = miras_cli::Asked { chunk: Some(4), ..pipeline::asked(miras_cli::Backend::Reference) };
    let finished = loaded.run(&data, &asked).map_err(|e| pipeline::told(&e))?;
    data.remove("memory.W");
    for (name, tensor) in finished.results.iter().filter(|(name, _)| name.starts_with("state.")) {
        data.insert(name, tensor.clone());
    }
    hold(path, &data)
}

/// The first half of the valid inputs.
pub(crate) fn truncated(path: &Path) -> Verdict {
    let whole = path.with_file_name("good.safetensors");
    let bytes = std::fs::read(&whole).map_err(|e| format!("{}: {e}", whole.display()))?;
    let half = &bytes[..bytes.len() / 2];
    if std::fs::read(path).is_ok_and(|found| found == half) {
        return Ok(());
    }
    match bless() {
        true => std::fs::write(path, half).map_err(|e| format!("{}: {e}", path.display())),
        false => Err("it is not the first half of good.safetensors".into()),
    }
}

fn made(layer: &Path, [batch, heads, tokens, dk, dv]: [usize; 5]) -> Result<host::Bundle, String> {
    let loaded =
        pipeline::load("layer.miras", &text(layer)?, &Choice::default()).map_err(|e| pipeline::told(&e))?;
    let wanted = host::Synthetic { seed: 1, batch, heads, tokens, dk, dv, grad: false };
    host::synthetic(&loaded.rule, &wanted).map_err(|d| d.to_string())
}

fn hold(path: &Path, made: &host::Bundle) -> Verdict {
    if let Ok(found) = host::read(path)
        && same(&found, made)
    {
        return Ok(());
    }
    match bless() {
        true => host::write(path, made).map_err(|d| d.to_string()),
        false => {
            Err("these are not the tensors that its layer and sizes give (MIRAS_BLESS=1 makes them anew)"
                .into())
        }
    }
}

/// Equal to the bit, NaN included.
fn same(a: &host::Bundle, b: &host::Bundle) -> bool {
    let bits =
        |t: &host::Tensor| -> Vec<u64> { t.f64s().unwrap_or_default().iter().map(|x| x.to_bits()).collect() };
    let equal = |(name, x): (&str, &std::sync::Arc<host::Tensor>)| {
        b.get(name).is_some_and(|y| x.shape == y.shape && bits(x) == bits(y) && x.i64s() == y.i64s())
    };
    a.len() == b.len() && a.iter().all(equal)
}
