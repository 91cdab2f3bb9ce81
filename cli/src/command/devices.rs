//! `miras devices`.

use crate::DONE;
use crate::console::Console;
use miras_gpu as gpu;

/// Lists adapters, what they allow, and which one `--backend auto` and `--backend gpu` take. Each one that can
/// be used is opened and made to run a small computation whose result is known.
pub(super) fn devices(console: &mut Console<'_>) -> u8 {
    let adapters = gpu::adapters();
    if adapters.is_empty() {
        console.say(
            "no adapter was found (on Debian, `mesa-vulkan-drivers` has one that computes on the CPU)\n",
        );
    }
    for adapter in &adapters {
        console.say(&format!("{}\n", adapter.description()));
        console.say(&format!(
            "  largest binding {} bytes, {} groups on an axis\n",
            adapter.max_binding, adapter.max_groups
        ));
        console.say(&format!("  {}\n", verdict(adapter)));
    }
    for (flag, choice) in [("auto", gpu::Choice::Auto), ("gpu", gpu::Choice::Any)] {
        let taken = match (gpu::choose(&choice), flag) {
            (Ok(adapter), _) => adapter.name,
            (Err(_), "auto") => "the cpu backend: there is no real GPU".into(),
            (Err(error), _) => error.message,
        };
        console.say(&format!("--backend {flag}: {taken}\n"));
    }
    DONE
}

fn verdict(adapter: &gpu::Adapter) -> String {
    if let Some(reason) = &adapter.unusable {
        return format!("not used: {reason}");
    }
    match gpu::Device::open(adapter, gpu::Ask::Default) {
        Ok(_) => "opened and checked: a known computation came out right".into(),
        Err(error) => format!("not used: {}", error.message),
    }
}
