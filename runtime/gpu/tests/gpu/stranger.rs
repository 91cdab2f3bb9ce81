//! A stranger's program: knows `plan.json`, the text of the kernels and wgpu, nothing of Miras; its results are
//! those of the runtime.

use crate::{arrays, device, programs, task, verified};
use miras_emit_wgsl::{emit, plan};
use miras_gpu::{Choice, Compiled, choose};
use miras_kernel::interpret::Scalars;
use miras_kernel::{Program, Role, Verified};
use serde_json::Value;
use std::collections::HashMap;

/// Streams, heads, tokens.
const SIZES: [usize; 3] = [2, 3, 5];

#[test]
fn a_plan_is_all_that_a_stranger_needs() {
    let Some(device) = device() else { return };
    for program in [programs::delta(5, 3), programs::backwards(), programs::sample(), programs::turns(4)] {
        let program = verified(program);
        let module = emit(&program).unwrap();
        let text = plan::json(&plan::plan(&program, &module)).unwrap();
        let [streams, heads, tokens] = SIZES;
        let mut tasks = Vec::new();
        for stream in 0..streams {
            for head in 0..heads {
                let mut data = arrays(&program, tokens, (stream * heads + head + 1) as u64);
                share(&program, &mut data, head);
                tasks.push(data);
            }
        }
        let found = stranger(&text, &module.wgsl, &given(&program, &tasks));
        let compiled = Compiled::new(&device, &program).unwrap();
        let scalars = |at: usize| Scalars {
            tokens,
            first: 0,
            head: (at % heads) as u64,
            heads: heads as u64,
            layer: 0,
            layers: 1,
        };
        let mut own: Vec<_> =
            tasks.iter_mut().enumerate().map(|(at, d)| task(&program, scalars(at), d)).collect();
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
            Role::TokenInput { .. } | Role::StateIn => tasks.len(),
            Role::HeadInput => SIZES[1],
            Role::StateOut | Role::TokenOutput { .. } | Role::Scratch => continue,
        };
        tensors.insert(array.name.clone(), tasks[..count].iter().flat_map(|d| d[at].clone()).collect());
    }
    tensors
}

/// Runs the plan and gives the tensors that were written.
fn stranger(plan: &str, wgsl: &str, given: &HashMap<String, Vec<f32>>) -> HashMap<String, Vec<f32>> {
    let plan: Value = serde_json::from_str(plan).unwrap();
    assert_eq!(plan["format"], "miras-plan-1");
    let names = |b: usize, h: usize| {
        let sizes = ["B", "H", "T", "b", "h"].into_iter().zip(SIZES.into_iter().chain([b, h]));
        sizes.map(|(name, n)| (name, n as f64)).collect::<HashMap<_, _>>()
    };
    let value = |formula: &Value| evaluate(formula.as_str().unwrap(), &names(0, 0)) as u64;

    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    let adapters = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::PRIMARY));
    let adapter = adapters.iter().find(|a| a.get_info().name == choose(&Choice::Any).unwrap().name).unwrap();
    let (device, queue) = pollster::block_on(adapter.request_device(&Default::default())).unwrap();
    use wgpu::BufferUsages as Usage;
    let mut buffers = HashMap::new();
    for binding in plan["bindings"].as_array().unwrap() {
        let usage = match binding["kind"].as_str().unwrap() {
            "uniform" => Usage::UNIFORM,
            _ => Usage::STORAGE,
        };
        let descriptor = wgpu::BufferDescriptor {
            label: None,
            size: value(&binding["size"]).max(4),
            usage: usage | Usage::COPY_DST | Usage::COPY_SRC,
            mapped_at_creation: false,
        };
        buffers.insert(binding["binding"].as_u64().unwrap(), device.create_buffer(&descriptor));
    }
    for tensor in plan["buffers"].as_array().unwrap() {
        if let Some(values) = given.get(tensor["name"].as_str().unwrap()) {
            let buffer = &buffers[&tensor["binding"].as_u64().unwrap()];
            queue.write_buffer(buffer, 4 * value(&tensor["offset"]), bytemuck::cast_slice(values));
        }
    }
    let mut table: Vec<u32> = Vec::new();
    for (b, h) in (0..SIZES[0]).flat_map(|b| (0..SIZES[1]).map(move |h| (b, h))) {
        for field in plan["tasks"].as_array().unwrap() {
            let number = match field["value"].as_str().unwrap() {
                "position of the stream's first token" | "number of the layer" => 0.0,
                "number of layers" => 1.0,
                formula => evaluate(formula, &names(b, h)),
            };
            table.push(if field["type"] == "u32" { number as u32 } else { (number as f32).to_bits() });
        }
    }
    let by_name = |name: &str| {
        let of = |b: &&Value| b["name"] == name;
        let binding = plan["bindings"].as_array().unwrap().iter().find(of).unwrap();
        &buffers[&binding["binding"].as_u64().unwrap()]
    };
    queue.write_buffer(by_name("tasks"), 0, bytemuck::cast_slice(&table));

    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: None,
        source: wgpu::ShaderSource::Wgsl(wgsl.into()),
    });
    let entries: Vec<_> = plan["bindings"].as_array().unwrap().iter().map(layout).collect();
    let layout =
        device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: None, entries: &entries });
    let bound: Vec<_> = buffers
        .iter()
        .map(|(at, b)| wgpu::BindGroupEntry { binding: *at as u32, resource: b.as_entire_binding() })
        .collect();
    let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout: &layout,
        entries: &bound,
    });
    let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: None,
        bind_group_layouts: &[Some(&layout)],
        immediate_size: 0,
    });
    for launch in plan["launches"].as_array().unwrap() {
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: Some(&pipeline_layout),
            module: &module,
            entry_point: launch["entry"].as_str(),
            compilation_options: Default::default(),
            cache: None,
        });
        let groups: Vec<u32> = launch["groups"].as_array().unwrap().iter().map(|g| value(g) as u32).collect();
        let turns = if launch["turns"].is_null() { 0 } else { value(&launch["turns"]) };
        let window = if launch["window"].is_null() { 1 } else { value(&launch["window"]) };
        let mut first = 0;
        loop {
            let stop = turns.min(first + window);
            let numbers: Vec<u32> = plan["uniforms"]
                .as_array()
                .unwrap()
                .iter()
                .map(|field| match field["value"].as_str().unwrap() {
                    "first turn" => first as u32,
                    "turn after the last" => stop as u32,
                    _ => value(&field["value"]) as u32,
                })
                .collect();
            queue.write_buffer(by_name("run"), 0, bytemuck::cast_slice(&numbers));
            let mut encoder = device.create_command_encoder(&Default::default());
            let mut pass = encoder.begin_compute_pass(&Default::default());
            pass.set_pipeline(&pipeline);
            pass.set_bind_group(0, &group, &[]);
            pass.dispatch_workgroups(groups[0], groups[1], groups[2]);
            drop(pass);
            queue.submit([encoder.finish()]);
            first = stop;
            if first == turns {
                break;
            }
        }
    }
    let written = plan["buffers"].as_array().unwrap().iter().filter(|t| t["binding"] == 1);
    written
        .map(|tensor| {
            let count: u64 = tensor["shape"].as_array().unwrap().iter().map(value).product();
            let from = &buffers[&1];
            let values = read(&device, &queue, from, 4 * value(&tensor["offset"]), 4 * count);
            (tensor["name"].as_str().unwrap().to_string(), values)
        })
        .collect()
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

fn read(device: &wgpu::Device, queue: &wgpu::Queue, from: &wgpu::Buffer, at: u64, size: u64) -> Vec<f32> {
    let staging = device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size,
        usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    let mut encoder = device.create_command_encoder(&Default::default());
    encoder.copy_buffer_to_buffer(from, at, &staging, 0, size);
    queue.submit([encoder.finish()]);
    staging.map_async(wgpu::MapMode::Read, .., |answer| answer.unwrap());
    device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
    let view = staging.get_mapped_range(..).unwrap();
    view.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
}

/// A formula's value: `+ - * /`, parentheses, `min`, `max`, `ceil`, `floor`, names and numbers.
fn evaluate(formula: &str, names: &HashMap<&str, f64>) -> f64 {
    let mut rest = formula.trim();
    let value = sum(&mut rest, names);
    assert!(rest.is_empty(), "`{formula}`: `{rest}` is left over");
    value
}

fn sum(rest: &mut &str, names: &HashMap<&str, f64>) -> f64 {
    let mut value = product(rest, names);
    loop {
        if eat(rest, "+") {
            value += product(rest, names);
        } else if eat(rest, "-") {
            value -= product(rest, names);
        } else {
            return value;
        }
    }
}

fn product(rest: &mut &str, names: &HashMap<&str, f64>) -> f64 {
    let mut value = atom(rest, names);
    loop {
        if eat(rest, "*") {
            value *= atom(rest, names);
        } else if eat(rest, "/") {
            value /= atom(rest, names);
        } else {
            return value;
        }
    }
}

fn atom(rest: &mut &str, names: &HashMap<&str, f64>) -> f64 {
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
    let (word, after) = rest.split_at(end);
    *rest = after.trim_start();
    if !word.is_empty() && !rest.starts_with('(') {
        return word.parse().unwrap_or_else(|_| names[word]);
    }
    assert!(eat(rest, "("), "`{word}` `{rest}`");
    let mut arguments = vec![sum(rest, names)];
    while eat(rest, ",") {
        arguments.push(sum(rest, names));
    }
    assert!(eat(rest, ")"), "`{rest}`");
    match (word, arguments.as_slice()) {
        ("", [a]) => *a,
        ("ceil", [a]) => a.ceil(),
        ("floor", [a]) => a.floor(),
        ("min", [a, b]) => a.min(*b),
        ("max", [a, b]) => a.max(*b),
        _ => panic!("`{word}` is no function of plans"),
    }
}

fn eat(rest: &mut &str, token: &str) -> bool {
    match rest.strip_prefix(token) {
        Some(after) => {
            *rest = after.trim_start();
            true
        }
        None => false,
    }
}
