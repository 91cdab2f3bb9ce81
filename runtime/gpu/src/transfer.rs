//! Buffers of a device, and what is read from them.

use crate::device::Device;
use crate::fault;
use miras_base::Diagnostic;
use std::sync::mpsc;
use wgpu::{Buffer, BufferDescriptor, BufferUsages, CommandEncoderDescriptor, MapMode};

/// Bytes of so many 4-byte numbers.
pub(crate) fn bytes(numbers: usize) -> u64 {
    (numbers as u64).saturating_mul(4)
}

impl Device {
    /// A buffer of so many bytes; at least one number, as empty bindings are refused.
    pub(crate) fn buffer(&self, label: &str, size: u64, usage: BufferUsages) -> Buffer {
        let descriptor =
            BufferDescriptor { label: Some(label), size: size.max(4), usage, mapped_at_creation: false };
        self.device.create_buffer(&descriptor)
    }

    /// The first `count` numbers of a buffer, once all work is done, by way of another one.
    pub(crate) fn read(&self, from: &Buffer, staging: &Buffer, count: usize) -> Result<Vec<u32>, Diagnostic> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let (tell, told) = mpsc::channel();
        self.guarded("reading results", || {
            let mut encoder = self.device.create_command_encoder(&CommandEncoderDescriptor::default());
            encoder.copy_buffer_to_buffer(from, 0, staging, 0, bytes(count));
            self.queue.submit([encoder.finish()]);
            // Nobody listens any more only where an error was returned before.
            staging.map_async(MapMode::Read, .., move |answer| drop(tell.send(answer)));
        })?;
        self.wait()?;
        let broken = |e: &dyn std::fmt::Display| fault::lost(&e.to_string(), &self.name());
        told.recv().map_err(|e| broken(&e))?.map_err(|e| broken(&e))?;
        let view = staging.get_mapped_range(..).map_err(|e| broken(&e))?;
        // Number by number: nothing promises that the mapping is aligned.
        let words = view.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        drop(view);
        staging.unmap();
        Ok(words)
    }
}
