// Runs kernels by their plan.json, which `miras build --emit wgsl` wrote. Everything is float32 or uint32.

/** The value of a formula: + - * / ( ) , numbers, names, and four functions. */
function value(formula, names) {
  if (!/^[\w\s+\-*\/(),]+$/.test(formula)) throw new Error(`no formula: ${formula}`);
  const all = { ...names, min: Math.min, max: Math.max, ceil: Math.ceil, floor: Math.floor };
  return Function(...Object.keys(all), `return ${formula};`)(...Object.values(all));
}

/** What the fields of the tables say in words: this page has one layer, and its streams begin here. */
const WORDS = {
  "position of the stream's first token": 0,
  "number of the layer": 0,
  "number of layers": 1,
};

/**
 * Runs a plan.
 *
 * @param device  a GPUDevice; WebGPU's default limits suffice
 * @param plan    plan.json
 * @param wgsl    the kernels' text
 * @param sizes   { B, H, T, K }: streams, heads, tokens of each, tokens kept from before
 * @param tensors Float32Array by name: all that the plan is given
 * @returns       Float32Array by name: states and outputs
 */
export async function run(device, plan, wgsl, sizes, tensors) {
  if (plan.format !== "miras-plan-2") throw new Error(`a plan of another kind: ${plan.format}`);
  const buffers = new Map();
  for (const binding of plan.bindings) buffers.set(binding.name, makeBuffer(device, binding, sizes));
  for (const tensor of plan.buffers) give(device, plan, buffers, tensor, sizes, tensors);
  device.queue.writeBuffer(buffers.get("tasks"), 0, table(plan, sizes));
  if (sizes.T > 0) await launchAll(device, plan, wgsl, sizes, buffers);
  const results = {};
  for (const tensor of plan.buffers) {
    if (tensor.role === "output" || tensor.role === "state-out") {
      results[tensor.name] = await read(device, buffers.get("work"), tensor, sizes);
    }
  }
  return results;
}

function makeBuffer(device, binding, sizes) {
  const kind = binding.kind === "uniform" ? GPUBufferUsage.UNIFORM : GPUBufferUsage.STORAGE;
  return device.createBuffer({
    size: Math.max(4, value(binding.size, sizes)),
    usage: kind | GPUBufferUsage.COPY_DST | GPUBufferUsage.COPY_SRC,
  });
}

/** Uploads a tensor, if it is one that is given. */
function give(device, plan, buffers, tensor, sizes, tensors) {
  const binding = plan.bindings.find((b) => b.binding === tensor.binding);
  if (binding.kind !== "read-only-storage") return;
  const data = tensors[tensor.name];
  const count = elements(tensor, sizes);
  if (data?.length !== count) throw new Error(`${tensor.name} needs ${count} numbers`);
  device.queue.writeBuffer(buffers.get(binding.name), 4 * value(tensor.offset, sizes), data);
}

function elements(tensor, sizes) {
  return tensor.shape.reduce((n, size) => n * value(size, sizes), 1);
}

/** A row for each stream and head. */
function table(plan, sizes) {
  const words = new DataView(new ArrayBuffer(4 * plan.tasks.length * sizes.B * sizes.H));
  let at = 0;
  for (let b = 0; b < sizes.B; b++) {
    for (let h = 0; h < sizes.H; h++) {
      for (const field of plan.tasks) {
        const number = WORDS[field.value] ?? value(field.value, { ...sizes, b, h });
        if (field.type === "u32") words.setUint32(at, number, true);
        else words.setFloat32(at, number, true);
        at += 4;
      }
    }
  }
  return words.buffer;
}

async function launchAll(device, plan, wgsl, sizes, buffers) {
  const module = device.createShaderModule({ code: wgsl });
  const info = await module.getCompilationInfo();
  const wrong = info.messages.filter((m) => m.type === "error");
  if (wrong.length > 0) throw new Error(wrong.map((m) => `line ${m.lineNum}: ${m.message}`).join("\n"));
  const group = device.createBindGroupLayout({
    entries: plan.bindings.map((b) => ({
      binding: b.binding,
      visibility: GPUShaderStage.COMPUTE,
      buffer: { type: b.kind },
    })),
  });
  const layout = device.createPipelineLayout({ bindGroupLayouts: [group] });
  const entries = plan.bindings.map((b) => ({ binding: b.binding, resource: { buffer: buffers.get(b.name) } }));
  const bound = device.createBindGroup({ layout: group, entries });
  const pipelines = new Map();
  const make = async (steps, rounds) => {
    for (const step of steps) {
      if (step.repeat !== undefined) {
        const turns = value(step.turns, sizes);
        for (let turn = 0; turn < turns; turn++) {
          await make(step.launches, { ...rounds, [`turn of ${step.repeat}`]: turn });
        }
        continue;
      }
      if (!pipelines.has(step.entry)) {
        const compute = { module, entryPoint: step.entry };
        pipelines.set(step.entry, await device.createComputePipelineAsync({ layout, compute }));
      }
      launch(device, plan, sizes, buffers, bound, pipelines.get(step.entry), step, rounds);
    }
  };
  await make(plan.launches, {});
}

/** One launch, window by window. */
function launch(device, plan, sizes, buffers, bound, pipeline, step, rounds) {
  const groups = step.groups.map((g) => value(g, sizes));
  const turns = step.turns === null ? 0 : value(step.turns, sizes);
  const window = step.window === null ? 1 : value(step.window, sizes);
  let first = 0;
  do {
    const stop = Math.min(turns, first + window);
    const words = { ...rounds, "first turn": first, "turn after the last": stop };
    device.queue.writeBuffer(buffers.get("run"), 0, numbers(plan, sizes, words));
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, bound);
    pass.dispatchWorkgroups(...groups);
    pass.end();
    device.queue.submit([encoder.finish()]);
    first = stop;
  } while (first < turns);
}

/** The numbers of a launch; turns of repetitions that it is not inside of may be any. */
function numbers(plan, sizes, words) {
  const turn = (field) => words[field.value] ?? (field.value.startsWith("turn of ") ? 0 : null);
  return new Uint32Array(plan.uniforms.map((field) => turn(field) ?? value(field.value, sizes)));
}

async function read(device, work, tensor, sizes) {
  const size = 4 * elements(tensor, sizes);
  const copy = device.createBuffer({
    size: Math.max(4, size),
    usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST,
  });
  const encoder = device.createCommandEncoder();
  encoder.copyBufferToBuffer(work, 4 * value(tensor.offset, sizes), copy, 0, size);
  device.queue.submit([encoder.finish()]);
  await copy.mapAsync(GPUMapMode.READ);
  return new Float32Array(copy.getMappedRange().slice(0, size));
}

/** The tensors of a safetensors file by name: { shape, data }, numbers as float64 or float32, integers left out. */
export function safetensors(file) {
  const length = Number(new DataView(file).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(file, 8, length)));
  const arrays = { F32: Float32Array, F64: Float64Array };
  const tensors = {};
  for (const [name, { dtype, shape, data_offsets: [first, end] }] of Object.entries(header)) {
    if (name === "__metadata__" || !(dtype in arrays)) continue;
    tensors[name] = { shape, data: new arrays[dtype](file.slice(8 + length + first, 8 + length + end)) };
  }
  return tensors;
}
