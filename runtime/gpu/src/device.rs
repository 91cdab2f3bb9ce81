//! A device: opened with the limits asked for, checked once, watched for errors and loss.

use crate::adapter::Adapter;
use crate::fault;
use crate::pipeline::Pipelines;
use crate::startup;
use miras_base::Diagnostic;
use miras_base::diagnostic::code;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wgpu::{DeviceDescriptor, ErrorFilter, Limits, PollType};

/// Which limits to ask a device for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// WebGPU's defaults, whatever the adapter has.
    Default,
    /// Larger buffers where the adapter has them, otherwise the defaults.
    Most,
    /// The defaults, but for bindings of at most so many bytes.
    Bindings(u64),
}

/// An open device that has shown that it computes.
pub struct Device {
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    pub(crate) limits: Limits,
    /// Turns of loops after which it stops an invocation silently, if it does.
    pub(crate) turns: Option<u64>,
    /// Pipelines by the text they were made from.
    pub(crate) pipelines: Mutex<HashMap<String, Arc<Pipelines>>>,
    adapter: Adapter,
    troubles: Arc<Mutex<Troubles>>,
}

/// What was reported besides the answers to calls.
#[derive(Debug, Default)]
struct Troubles {
    lost: Option<String>,
    errors: Vec<String>,
}

impl Device {
    /// Opens an adapter and runs a small computation whose result is known.
    ///
    /// # Errors
    /// E0601 where the adapter cannot be opened or computes wrongly; E0603 where it is lost in the process.
    pub fn open(adapter: &Adapter, ask: Ask) -> Result<Arc<Device>, Diagnostic> {
        let limits = limits(adapter, ask);
        let descriptor = DeviceDescriptor {
            label: Some("miras"),
            required_limits: limits.clone(),
            ..DeviceDescriptor::default()
        };
        let opened = pollster::block_on(adapter.handle.request_device(&descriptor));
        let (device, queue) = opened.map_err(|e| unopened(adapter, &e))?;
        let troubles = Arc::new(Mutex::new(Troubles::default()));
        watch(&device, &troubles);
        let mut device = Device {
            device,
            queue,
            limits,
            turns: None,
            pipelines: Mutex::default(),
            adapter: adapter.clone(),
            troubles,
        };
        device.turns = startup::turns(&device)?;
        let device = Arc::new(device);
        startup::check(&device)?;
        Ok(device)
    }

    /// The adapter it was opened on.
    pub fn adapter(&self) -> &Adapter {
        &self.adapter
    }

    /// Which limits the device was given, and which it was found to have, in one line.
    pub fn description(&self) -> String {
        let binding = self.limits.max_storage_buffer_binding_size >> 20;
        let loops = match self.turns {
            Some(n) => format!(", loops of at most {n} turns"),
            None => String::new(),
        };
        format!("{}, buffers up to {binding} MiB{loops}", self.adapter.description())
    }

    /// Does something, and gives the errors that it caused.
    pub(crate) fn guarded<R>(&self, what: &str, action: impl FnOnce() -> R) -> Result<R, Diagnostic> {
        let validation = self.device.push_error_scope(ErrorFilter::Validation);
        let memory = self.device.push_error_scope(ErrorFilter::OutOfMemory);
        let internal = self.device.push_error_scope(ErrorFilter::Internal);
        let result = action();
        let [internal, memory, validation] =
            [internal.pop(), memory.pop(), validation.pop()].map(pollster::block_on);
        // Loss is told to a callback, which is called from here at the latest.
        let _ = self.device.poll(PollType::Poll);
        self.alive()?;
        match memory.or(internal).or(validation) {
            None => Ok(result),
            Some(error) => Err(fault::of(&error, what, &self.name())),
        }
    }

    /// Waits until everything submitted is done.
    pub(crate) fn wait(&self) -> Result<(), Diagnostic> {
        let waited = self.device.poll(PollType::wait_indefinitely());
        self.alive()?;
        waited.map(|_| ()).map_err(|e| fault::lost(&e.to_string(), &self.name()))
    }

    /// Refuses to go on with a device that is lost, or that has reported an error to nobody.
    pub(crate) fn alive(&self) -> Result<(), Diagnostic> {
        let mut troubles = self.troubles();
        if let Some(why) = &troubles.lost {
            return Err(fault::lost(why, &self.name()));
        }
        match troubles.errors.pop() {
            Some(error) => Err(fault::refused("something", &error)),
            None => Ok(()),
        }
    }

    pub(crate) fn name(&self) -> String {
        self.adapter.description()
    }

    fn troubles(&self) -> MutexGuard<'_, Troubles> {
        // What was noted before a panic is still true.
        self.troubles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the device up, as if it had been lost.
    pub fn destroy(&self) {
        self.device.destroy();
    }
}

fn limits(adapter: &Adapter, ask: Ask) -> Limits {
    let mut limits = Limits::default();
    match ask {
        Ask::Default => {}
        Ask::Bindings(bytes) => limits.max_storage_buffer_binding_size = bytes,
        Ask::Most => {
            let most = adapter.handle.limits();
            limits.max_buffer_size = limits.max_buffer_size.max(most.max_buffer_size);
            let binding = &mut limits.max_storage_buffer_binding_size;
            *binding = (*binding).max(most.max_storage_buffer_binding_size);
        }
    }
    limits
}

fn watch(device: &wgpu::Device, troubles: &Arc<Mutex<Troubles>>) {
    let note = |troubles: &Mutex<Troubles>, f: &dyn Fn(&mut Troubles)| {
        f(&mut troubles.lock().unwrap_or_else(PoisonError::into_inner));
    };
    let of_loss = Arc::clone(troubles);
    device.set_device_lost_callback(move |reason, message| {
        note(&of_loss, &|t| t.lost = Some(format!("{message} ({reason:?})").trim().to_string()));
    });
    let of_errors = Arc::clone(troubles);
    device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
        note(&of_errors, &|t| t.errors.push(error.to_string()));
    }));
}

fn unopened(adapter: &Adapter, error: &dyn std::fmt::Display) -> Diagnostic {
    let what = format!("{} cannot be opened: {error}", adapter.description());
    Diagnostic::new(code::NO_DEVICE, what).with_help("use another adapter, or the cpu backend")
}
