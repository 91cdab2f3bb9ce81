//! A stranger's program: knows `plan.json`, the text of the kernels and wgpu, nothing of Miras; its results are
//! those of the runtime.

use crate::blocks::blocks;
use crate::formula::evaluate;
use crate::{arrays_after, device, programs, task, verified};
use miras_emit_wgsl::{Structure, emit, plan};
use miras_gpu::{Choice, Compiled, choose};
use miras_kernel::interpret::Scalars;
use miras_kernel::{Program, Role, Verified};
use serde_json::Value;
use std::collections::HashMap;
use wgpu::BufferUsages as Usage;

/// Streams, heads, tokens, tokens kept from before.
const SIZES: [usize; 4] = [2, 3, 5, 4];

#[test]
fn a_plan_is_all_that_a_stranger_needs() {
    for program in [
        programs::delta(5, 3),
        programs::backwards(),
        programs::sample(),
        programs::passes(4),
        programs::echoes(),
    ] {
        agrees(&verified(program), Structure::OneKernel, 1);
    }
}

#[test]
fn a_plan_of_repeated_launches_is_all_that_a_stranger_needs() {
    agrees(&verified(programs::delta(5, 3)), Structure::SeveralLaunches, 1);
    agrees(&verified(programs::backwards()), Structure::SeveralLaunches, 1);
    // Blocks in parts: repetitions inside a repetition.
    let channels =
        "memory: matrix; bias: huber(delta = 1); retention: l2(alpha = learned(per = channel)); algo: gd";
    for structure in Structure::ALL {
        agrees(&blocks(channels, 32, 20), structure, 32);
    }
}

/// A stranger finds what the runtime finds, to the bit.
fn agrees(program: &Verified<Program>, structure: Structure, block: usize) {
    let Some(device) = device() else { return };
    {
        let module = emit(program, structure).unwrap();
        let text = plan::json(&plan::plan(program, &module, block)).unwrap();
        let [streams, heads, tokens, kept] = SIZES;
        let mut tasks = Vec::new();
        for stream in 0..streams {
            for head in 0..heads {
                let mut data = arrays_after(program, tokens, kept, (stream * heads + head + 1) as u64);
                share(program, &mut data, head);
                tasks.push(data);
            }
        }
        let found = stranger(&text, &module.wgsl, &given(program, &tasks));
        let compiled = Compiled::new(&device, program, structure).unwrap();
        let scalars = |at: usize| Scalars {
            tokens,
            kept,
            first: 0,
            head: (at % heads) as u64,
            heads: heads as u64,
            layer: 0,
            layers: 1,
        };
        let mut own: Vec<_> =
            tasks.iter_mut().enumerate().map(|(at, d)| task(program, scalars(at), d)).collect();
        compiled.run(&mut own).unwrap();
        drop(own);
        for (at, array) in program.arrays.iter().enumerate() {
            if array.role.writable() && array.role != Role::Scratch {
                let wanted: Vec<f32> = tasks.iter().flat_map(|d| d[at].iter().copied()).collect();
                assert_eq!(found[&array.name], wanted, "{} `{}`", program.name, array.name);
            }
        }
    }
}

/// Gives tasks of one head the same per-head arrays.
fn share(program: &Program, data: &mut [Vec<f32>], head: usize) {
    for (at, array) in program.arrays.iter().enumerate().filter(|(_, a)| a.role == Role::HeadInput) {
        data[at] = (0..array.part().unwrap()).map(|i| (head as f32 + 0.1 * i as f32).cos()).collect();
    }
}

/// Whole tensors by name: per task, or per head.
fn given(program: &Verified<Program>, tasks: &[Vec<Vec<f32>>]) -> HashMap<String, Vec<f32>> {
    let mut tensors = HashMap::new();
    for (at, array) in program.arrays.iter().enumerate() {
        let count = match array.role {
            Role::TokenInput { .. } | Role::PastInput { .. } | Role::StateIn => tasks.len(),
            Role::HeadInput => SIZES[1],
            Role::StateOut | Role::TokenOutput { .. } | Role::Scratch => continue,
        };
        tensors.insert(array.name.clone(), tasks[..count].iter().flat_map(|d| d[at].clone()).collect());
    }
    tensors
}

/// Runs the plan and gives the tensors that were written.
fn stranger(plan: &str, wgsl: &str, given: &HashMap<String, Vec<f32>>) -> HashMap<String, Vec<f32>> {
    let stranger = Stranger::new(serde_json::from_str(plan).unwrap());
    for tensor in list(&stranger.plan["buffers"]) {
        if let Some(values) = given.get(text(&tensor["name"])) {
            let buffer = &stranger.buffers[&tensor["binding"].as_u64().unwrap()];
            stranger.queue.write_buffer(buffer, 4 * value(&tensor["offset"]), bytemuck::cast_slice(values));
        }
    }
    stranger.queue.write_buffer(stranger.named("tasks"), 0, bytemuck::cast_slice(&stranger.table()));
    stranger.launch(wgsl);
    let written = list(&stranger.plan["buffers"]).iter().filter(|t| t["binding"] == 1);
    written.map(|tensor| (text(&tensor["name"]).to_string(), stranger.read(tensor))).collect()
}

/// A plan, with a device and the buffers that it asks for.
struct Stranger {
    plan: Value,
    device: wgpu::Device,
    queue: wgpu::Queue,
    buffers: HashMap<u64, wgpu::Buffer>,
}

impl Stranger {
    fn new(plan: Value) -> Stranger {
        assert_eq!(plan["format"], "miras-plan-2");
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
        let adapters = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::PRIMARY));
        let name = choose(&Choice::Any).unwrap().name;
        let adapter = adapters.iter().find(|a| a.get_info().name == name).unwrap();
        let (device, queue) = pollster::block_on(adapter.request_device(&Default::default())).unwrap();
        let buffer = |binding: &Value| {
            let usage = match text(&binding["kind"]) {
                "uniform" => Usage::UNIFORM,
                _ => Usage::STORAGE,
            };
            let size = value(&binding["size"]).max(4);
            (
                binding["binding"].as_u64().unwrap(),
                make(&device, size, usage | Usage::COPY_DST | Usage::COPY_SRC),
            )
        };
        let buffers = list(&plan["bindings"]).iter().map(buffer).collect();
        Stranger { plan, device, queue, buffers }
    }

    /// The buffer of the binding of this name.
    fn named(&self, name: &str) -> &wgpu::Buffer {
        let binding = list(&self.plan["bindings"]).iter().find(|b| b["name"] == name).unwrap();
        &self.buffers[&binding["binding"].as_u64().unwrap()]
    }

    /// The table of tasks.
    fn table(&self) -> Vec<u32> {
        let mut table = Vec::new();
        for (b, h) in (0..SIZES[0]).flat_map(|b| (0..SIZES[1]).map(move |h| (b, h))) {
            for field in list(&self.plan["tasks"]) {
                let number = match text(&field["value"]) {
                    "position of the stream's first token" | "number of the layer" => 0.0,
                    "number of layers" => 1.0,
                    formula => evaluate(formula, &names(b, h)),
                };
                table.push(if field["type"] == "u32" { number as u32 } else { (number as f32).to_bits() });
            }
        }
        table
    }

    /// Makes every launch.
    fn launch(&self, wgsl: &str) {
        let source = wgpu::ShaderSource::Wgsl(wgsl.into());
        let module = self.device.create_shader_module(wgpu::ShaderModuleDescriptor { label: None, source });
        let (layout, group) = self.bind();
        let mut pipelines = HashMap::new();
        self.steps(&self.plan["launches"], &mut HashMap::new(), &mut |step, turns| {
            let entry = text(&step["entry"]).to_string();
            let pipeline = pipelines.entry(entry).or_insert_with_key(|entry| {
                self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                    label: None,
                    layout: Some(&layout),
                    module: &module,
                    entry_point: Some(entry),
                    compilation_options: Default::default(),
                    cache: None,
                })
            });
            self.windows(step, turns, pipeline, &group);
        });
    }

    /// Hands every launch on, repeated ones with their turns.
    fn steps(
        &self,
        steps: &Value,
        turns: &mut HashMap<String, u32>,
        take: &mut impl FnMut(&Value, &HashMap<String, u32>),
    ) {
        for step in list(steps) {
            let Some(name) = step["repeat"].as_str() else {
                take(step, turns);
                continue;
            };
            for turn in 0..value(&step["turns"]) {
                turns.insert(format!("turn of {name}"), turn as u32);
                self.steps(&step["launches"], turns, take);
            }
        }
    }

    /// A launch, window by window.
    fn windows(
        &self,
        launch: &Value,
        rounds: &HashMap<String, u32>,
        pipeline: &wgpu::ComputePipeline,
        group: &wgpu::BindGroup,
    ) {
        let groups: Vec<u32> = list(&launch["groups"]).iter().map(|g| value(g) as u32).collect();
        let turns = if launch["turns"].is_null() { 0 } else { value(&launch["turns"]) };
        let window = if launch["window"].is_null() { 1 } else { value(&launch["window"]) };
        let mut first = 0;
        loop {
            let stop = turns.min(first + window);
            let numbers = self.numbers(first, stop, rounds);
            self.queue.write_buffer(self.named("run"), 0, bytemuck::cast_slice(&numbers));
            let mut encoder = self.device.create_command_encoder(&Default::default());
            let mut pass = encoder.begin_compute_pass(&Default::default());
            pass.set_pipeline(pipeline);
            pass.set_bind_group(0, group, &[]);
            pass.dispatch_workgroups(groups[0], groups[1], groups[2]);
            drop(pass);
            self.queue.submit([encoder.finish()]);
            first = stop;
            if first == turns {
                break;
            }
        }
    }

    /// The uniform block of one window.
    fn numbers(&self, first: u64, stop: u64, rounds: &HashMap<String, u32>) -> Vec<u32> {
        let number = |field: &Value| match text(&field["value"]) {
            "first turn" => first as u32,
            "turn after the last" => stop as u32,
            turn if turn.starts_with("turn of ") => rounds.get(turn).copied().unwrap_or(u32::MAX),
            _ => value(&field["value"]) as u32,
        };
        list(&self.plan["uniforms"]).iter().map(number).collect()
    }

    fn bind(&self) -> (wgpu::PipelineLayout, wgpu::BindGroup) {
        let entries: Vec<_> = list(&self.plan["bindings"]).iter().map(layout).collect();
        let descriptor = wgpu::BindGroupLayoutDescriptor { label: None, entries: &entries };
        let layout = self.device.create_bind_group_layout(&descriptor);
        let bound = self.buffers.iter().map(|(at, buffer)| wgpu::BindGroupEntry {
            binding: *at as u32,
            resource: buffer.as_entire_binding(),
        });
        let bound: Vec<_> = bound.collect();
        let descriptor = wgpu::BindGroupDescriptor { label: None, layout: &layout, entries: &bound };
        let group = self.device.create_bind_group(&descriptor);
        let descriptor = wgpu::PipelineLayoutDescriptor {
            label: None,
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        };
        (self.device.create_pipeline_layout(&descriptor), group)
    }

    fn read(&self, tensor: &Value) -> Vec<f32> {
        let size = 4 * list(&tensor["shape"]).iter().map(value).product::<u64>();
        let staging = make(&self.device, size, Usage::MAP_READ | Usage::COPY_DST);
        let from = &self.buffers[&tensor["binding"].as_u64().unwrap()];
        let mut encoder = self.device.create_command_encoder(&Default::default());
        encoder.copy_buffer_to_buffer(from, 4 * value(&tensor["offset"]), &staging, 0, size);
        self.queue.submit([encoder.finish()]);
        staging.map_async(wgpu::MapMode::Read, .., |answer| answer.unwrap());
        self.device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
        let view = staging.get_mapped_range(..).unwrap();
        view.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
    }
}

fn make(device: &wgpu::Device, size: u64, usage: Usage) -> wgpu::Buffer {
    device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false })
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// The sizes by name, for one task.
fn names(b: usize, h: usize) -> HashMap<&'static str, f64> {
    let numbers = SIZES.into_iter().chain([b, h]).map(|n| n as f64);
    ["B", "H", "T", "K", "b", "h"].into_iter().zip(numbers).collect()
}

/// A formula's value, the same for all tasks.
fn value(formula: &Value) -> u64 {
    evaluate(text(formula), &names(0, 0)) as u64
}

fn layout(binding: &Value) -> wgpu::BindGroupLayoutEntry {
    let ty = match binding["kind"].as_str().unwrap() {
        "uniform" => wgpu::BufferBindingType::Uniform,
        "storage" => wgpu::BufferBindingType::Storage { read_only: false },
        _ => wgpu::BufferBindingType::Storage { read_only: true },
    };
    wgpu::BindGroupLayoutEntry {
        binding: binding["binding"].as_u64().unwrap() as u32,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset: false, min_binding_size: None },
        count: None,
    }
}
