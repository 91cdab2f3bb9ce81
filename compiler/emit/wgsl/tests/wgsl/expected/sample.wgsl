// sample: one workgroup of 256 invocations for each task, a (stream, head) pair

// the numbers of this launch; below, where each array begins in its arena
struct Run {
    tasks: u32,
    groups: u32,
    first: u32,
    stop: u32,
    skip: u32,
    x: u32, // given: x [T, 2]: input
    memory_W: u32, // given: memory.W [2, 2]
    state_W: u32, // work: state.W [2, 2]: W
    e: u32, // work: e [2]: exp(x)
    y: u32, // work: y [2]: W e
    o: u32, // work: o [T, 2]
}

// one task: its first token among those of all tasks, its number of tokens, the same of its past and of
// that the tokens kept from before, its row of given arrays
struct Task {
    token: u32,
    tokens: u32,
    past: u32,
    kept: u32,
    inputs: u32,
    position: f32,
    head: f32,
    heads: f32,
    layer: f32,
    layers: f32,
}

@group(0) @binding(0) var<storage, read> given: array<f32>;
@group(0) @binding(1) var<storage, read_write> work: array<f32>;
@group(0) @binding(2) var<uniform> run: Run;
@group(0) @binding(3) var<storage, read> tasks: array<Task>;

// exp
fn f_exp(x: f32) -> f32 {
    let r6 = min(max(x, -87.6f), 88.72283f);
    let r9 = round(r6 * 1.442695f);
    let r16 = r6 - r9 * 0.6933594f - r9 * (-0.00021219444f) + 0.0f;
    let r25 = ((0.0013926376f * r16 + 0.008363333f) * r16 + 0.041666552f) * r16;
    let r32 = r16 + r16 * r16 * ((r25 + 0.16666576f) * r16 + 0.5f);
    let r33 = r32 + 1.0f;
    let r40 = bitcast<f32>(bitcast<i32>(r9 - 1.0f + 12583039.0f) << 23u);
    return (r33 + r33) * r40;
}

// div of the table
fn f_quotient(x: f32, y: f32) -> f32 {
    return select(x / y, 0.0f, x == 0.0f);
}

@compute @workgroup_size(256)
fn begin(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let index = group.x + group.y * run.groups;
    if (index >= run.tasks) {
        return;
    }
    let task = tasks[index];
    let memory_W_at = run.memory_W + task.inputs * 4;
    let state_W_at = run.state_W + index * 4;

    // W = W_0
    if (lane < 4) {
        work[state_W_at + lane] = given[memory_W_at + lane];
    }
}

@compute @workgroup_size(256)
fn each_t(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let index = group.x + group.y * run.groups;
    if (index >= run.tasks) {
        return;
    }
    let task = tasks[index];
    let x_at = run.x + task.token * 2;
    let state_W_at = run.state_W + index * 4;
    let e_at = run.e + index * 2;
    let y_at = run.y + index * 2;
    let o_at = run.o + task.token * 2;

    let stop = min(run.stop, task.tokens);
    for (var turn = run.first; turn < stop; turn++) {
        let t = turn;
        // e = exp(x)
        if (lane < 2) {
            work[e_at + lane] = f_exp(given[x_at + t * 2 + lane]);
        }
        storageBarrier();
        // y = W e
        if (lane < 2) {
            let row = lane;
            let column = 0u;
            var sum = 0.0f;
            for (var inner = 0u; inner < 2; inner += 1u) {
                sum += work[state_W_at + row * 2 + inner] * work[e_at + inner + column];
            }
            work[y_at + row + column] = sum;
        }
        storageBarrier();
        // o = |y - max y| / (head + 1)
        if (lane < 2) {
            let i = lane;
            var largest = -3.4028234663852886e38f;
            for (var j = 0u; j < 2; j++) {
                largest = max(largest, work[y_at + j]);
            }
            let r_0 = f_quotient(work[y_at + i] - largest, task.head + 1.0f);
            work[o_at + t * 2 + i] = select(r_0, -r_0, r_0 < 0.0f);
        }
        for (var half = 2u; half > 0; ) {
            half -= 1u;
            // W = 2 W
            if (lane < 2) {
                let k = lane;
                let state_W_0 = work[state_W_at + half * 2 + k];
                work[state_W_at + half * 2 + k] = 2.0f * state_W_0;
            }
            storageBarrier();
        }
    }
}
