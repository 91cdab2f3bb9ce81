//! Adapters: what there is, what can be used, and which one to take.

use miras_base::Diagnostic;
use miras_base::diagnostic::code;
use wgpu::{Backends, DeviceType, DownlevelFlags, Instance, InstanceDescriptor, Limits};

/// An adapter of this machine.
#[derive(Clone, Debug)]
pub struct Adapter {
    /// Its name, as the driver gives it.
    pub name: String,
    /// The driver and its version.
    pub driver: String,
    /// The interface it is reached through: Vulkan, Metal, DirectX 12.
    pub interface: String,
    /// Whether it computes on the CPU.
    pub software: bool,
    /// Why it cannot be used, if it cannot.
    pub unusable: Option<String>,
    /// Largest buffer that a kernel can see, in bytes.
    pub max_binding: u64,
    /// Largest number of workgroups along one axis.
    pub max_groups: u32,
    pub(crate) handle: wgpu::Adapter,
}

/// Which adapter to take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// A real GPU; never a software adapter.
    Auto,
    /// The best there is, a software adapter where there is nothing else.
    Any,
    /// One whose name contains this text, whatever the case of its letters.
    Named(String),
}

/// Every adapter of this machine, the preferred ones first.
pub fn adapters() -> Vec<Adapter> {
    let instance = Instance::new(InstanceDescriptor::new_without_display_handle());
    let found = pollster::block_on(instance.enumerate_adapters(Backends::PRIMARY));
    let mut all: Vec<(u8, Adapter)> = found.into_iter().map(|a| (rank(&a), describe(a))).collect();
    all.sort_by_key(|(rank, adapter)| (*rank, adapter.unusable.is_some()));
    all.into_iter().map(|(_, adapter)| adapter).collect()
}

/// The adapter to use.
///
/// # Errors
/// E0601, with a note for each adapter that says why it was not taken.
pub fn choose(choice: &Choice) -> Result<Adapter, Diagnostic> {
    choose_from(adapters(), choice)
}

fn choose_from(all: Vec<Adapter>, choice: &Choice) -> Result<Adapter, Diagnostic> {
    let mut notes = Vec::new();
    for adapter in all {
        match against(&adapter, choice) {
            None => return Ok(adapter),
            Some(reason) => notes.push(format!("{}: {reason}", adapter.description())),
        }
    }
    let message = match choice {
        Choice::Auto => "no GPU can be used".to_string(),
        Choice::Any => "no graphics adapter can be used".to_string(),
        Choice::Named(name) => format!("no graphics adapter that can be used is called `{name}`"),
    };
    if notes.is_empty() {
        notes.push("no adapter was found: is a Vulkan, Metal or DirectX 12 driver installed?".to_string());
    }
    let error =
        Diagnostic::new(code::NO_DEVICE, message).with_help("use the cpu backend, or install a driver");
    Err(notes.into_iter().fold(error, Diagnostic::with_note))
}

/// Why an adapter is not taken, if it is not.
fn against(adapter: &Adapter, choice: &Choice) -> Option<String> {
    let wanted = match choice {
        Choice::Auto if adapter.software => {
            return Some("computes in software, which the cpu backend does faster; name it to use it".into());
        }
        Choice::Auto | Choice::Any => true,
        Choice::Named(name) => adapter.name.to_lowercase().contains(&name.to_lowercase()),
    };
    if !wanted {
        return Some("has another name".into());
    }
    adapter.unusable.clone()
}

impl Adapter {
    /// One line that says what it is.
    pub fn description(&self) -> String {
        let kind = if self.software { ", in software" } else { "" };
        format!("{} ({}{kind})", self.name, self.interface)
    }
}

fn describe(handle: wgpu::Adapter) -> Adapter {
    let info = handle.get_info();
    let limits = handle.limits();
    Adapter {
        unusable: unusable(&handle, &limits),
        software: software(&info),
        driver: format!("{} {}", info.driver, info.driver_info).trim().to_string(),
        interface: interface(info.backend).to_string(),
        name: info.name,
        max_binding: limits.max_storage_buffer_binding_size,
        max_groups: limits.max_compute_workgroups_per_dimension,
        handle,
    }
}

fn unusable(adapter: &wgpu::Adapter, limits: &Limits) -> Option<String> {
    if !adapter.get_downlevel_capabilities().flags.contains(DownlevelFlags::COMPUTE_SHADERS) {
        return Some("has no compute shaders".to_string());
    }
    let mut below = None;
    Limits::default().check_limits_with_fail_fn(limits, false, |name, wanted, allowed| {
        below.get_or_insert_with(|| format!("its limit {name} is {allowed}, WebGPU's default is {wanted}"));
    });
    below
}

/// Whether an adapter computes on the CPU; some do not say so of themselves.
fn software(info: &wgpu::AdapterInfo) -> bool {
    let name = info.name.to_lowercase();
    info.device_type == DeviceType::Cpu
        || ["llvmpipe", "swiftshader", "softpipe"].iter().any(|n| name.contains(n))
}

fn rank(adapter: &wgpu::Adapter) -> u8 {
    let info = adapter.get_info();
    if software(&info) {
        return 4;
    }
    match info.device_type {
        DeviceType::DiscreteGpu => 0,
        DeviceType::IntegratedGpu => 1,
        DeviceType::VirtualGpu => 2,
        DeviceType::Other => 3,
        DeviceType::Cpu => 4,
    }
}

fn interface(backend: wgpu::Backend) -> &'static str {
    match backend {
        wgpu::Backend::Noop => "none",
        wgpu::Backend::Vulkan => "Vulkan",
        wgpu::Backend::Metal => "Metal",
        wgpu::Backend::Dx12 => "DirectX 12",
        wgpu::Backend::Gl => "OpenGL",
        wgpu::Backend::BrowserWebGpu => "WebGPU",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_adapters_the_reason_is_given() {
        let error = choose_from(Vec::new(), &Choice::Auto).unwrap_err();
        assert_eq!(error.code, code::NO_DEVICE);
        assert!(error.notes[0].contains("no adapter was found"));
    }
}
