//! Pipelines of a module, and the binding of its four buffers.

use crate::device::Device;
use miras_base::Diagnostic;
use miras_emit_wgsl as wgsl;
use std::sync::{Arc, PoisonError};
use wgpu::{
    BindGroup, BindGroupDescriptor, BindGroupEntry, BindGroupLayout, BindGroupLayoutDescriptor,
    BindGroupLayoutEntry, BindingResource, BindingType, Buffer, BufferBinding, BufferBindingType,
    CommandEncoderDescriptor, ComputePassDescriptor, ComputePipeline, ComputePipelineDescriptor,
    PipelineCompilationOptions, PipelineLayoutDescriptor, ShaderModuleDescriptor, ShaderSource, ShaderStages,
};

/// Entry points ready to be launched.
#[derive(Debug)]
pub(crate) struct Pipelines {
    layout: BindGroupLayout,
    /// In the order of the entry points given.
    stages: Vec<ComputePipeline>,
}

impl Pipelines {
    /// Pipelines for these entry points of a text, made once per text and device.
    pub(crate) fn of<'e>(
        device: &Device,
        text: &str,
        entries: impl Iterator<Item = &'e str>,
    ) -> Result<Arc<Pipelines>, Diagnostic> {
        let mut known = device.pipelines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = known.get(text) {
            return Ok(Arc::clone(made));
        }
        let made = Arc::new(Pipelines::new(device, text, entries)?);
        known.insert(text.to_string(), Arc::clone(&made));
        Ok(made)
    }

    fn new<'e>(
        device: &Device,
        text: &str,
        entries: impl Iterator<Item = &'e str>,
    ) -> Result<Pipelines, Diagnostic> {
        device.guarded("compiling a kernel", || {
            let wgpu = &device.device;
            let layout = wgpu.create_bind_group_layout(&BindGroupLayoutDescriptor {
                label: Some("miras"),
                entries: &[
                    entry(wgsl::GIVEN, BufferBindingType::Storage { read_only: true }, false),
                    entry(wgsl::WORK, BufferBindingType::Storage { read_only: false }, false),
                    entry(wgsl::RUN, BufferBindingType::Uniform, true),
                    entry(wgsl::TASKS, BufferBindingType::Storage { read_only: true }, false),
                ],
            });
            let pipeline_layout = wgpu.create_pipeline_layout(&PipelineLayoutDescriptor {
                label: Some("miras"),
                bind_group_layouts: &[Some(&layout)],
                immediate_size: 0,
            });
            let module = wgpu.create_shader_module(ShaderModuleDescriptor {
                label: Some("miras"),
                source: ShaderSource::Wgsl(text.into()),
            });
            let pipeline = |entry: &str| {
                wgpu.create_compute_pipeline(&ComputePipelineDescriptor {
                    label: Some(entry),
                    layout: Some(&pipeline_layout),
                    module: &module,
                    entry_point: Some(entry),
                    compilation_options: PipelineCompilationOptions::default(),
                    cache: None,
                })
            };
            let stages = entries.map(pipeline).collect();
            Pipelines { layout, stages }
        })
    }

    /// Binds buffers; of `run`, one slot of `slot` bytes at a time.
    pub(crate) fn bind(&self, device: &Device, buffers: &Buffers, slot: u64) -> BindGroup {
        let run = BufferBinding { buffer: &buffers.run, offset: 0, size: slot.try_into().ok() };
        let run = BindGroupEntry { binding: wgsl::RUN, resource: BindingResource::Buffer(run) };
        device.device.create_bind_group(&BindGroupDescriptor {
            label: Some("miras"),
            layout: &self.layout,
            entries: &[
                whole(wgsl::GIVEN, &buffers.given),
                whole(wgsl::WORK, &buffers.work),
                run,
                whole(wgsl::TASKS, &buffers.tasks),
            ],
        })
    }

    /// Submits launches as one: each is done before the next begins.
    pub(crate) fn launch(&self, device: &Device, group: &BindGroup, dispatches: &[Dispatch]) {
        let mut encoder = device.device.create_command_encoder(&CommandEncoderDescriptor::default());
        let mut pass = encoder.begin_compute_pass(&ComputePassDescriptor::default());
        for dispatch in dispatches {
            let Some(pipeline) = self.stages.get(dispatch.stage) else { continue };
            pass.set_pipeline(pipeline);
            pass.set_bind_group(0, group, &[dispatch.offset]);
            let (x, y, z) = dispatch.groups;
            pass.dispatch_workgroups(x, y, z);
        }
        drop(pass);
        device.queue.submit([encoder.finish()]);
    }
}

/// One launch as a pass makes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dispatch {
    pub stage: usize,
    /// Of its numbers in the buffer of all, in bytes.
    pub offset: u32,
    pub groups: (u32, u32, u32),
}

fn whole(binding: u32, buffer: &Buffer) -> BindGroupEntry<'_> {
    BindGroupEntry { binding, resource: buffer.as_entire_binding() }
}

/// The buffers behind the four bindings.
pub(crate) struct Buffers {
    pub given: Buffer,
    pub work: Buffer,
    pub run: Buffer,
    pub tasks: Buffer,
}

fn entry(binding: u32, ty: BufferBindingType, dynamic: bool) -> BindGroupLayoutEntry {
    BindGroupLayoutEntry {
        binding,
        visibility: ShaderStages::COMPUTE,
        ty: BindingType::Buffer { ty, has_dynamic_offset: dynamic, min_binding_size: None },
        count: None,
    }
}
