// block: workgroups of 256 invocations for each task, a (stream, head) pair

// the numbers of this launch; below, where each array begins in its arena
struct Run {
    tasks: u32,
    groups: u32,
    first: u32,
    stop: u32,
    skip: u32,
    block: u32, // the turn of this repetition
    x: u32, // given: x [T, 32, 32]: rows of the block
    keep: u32, // given: keep [T, 32]: what each row keeps
    state_W: u32, // given: state.W [32, 32]
    W: u32, // work: W [32, 32]: W
    y: u32, // work: y [32, 32]: x W
    z: u32, // work: z [32, 32]: tanh(x W)
    r: u32, // work: r [32]: running products of keep
    more: u32, // work: more [32, 32]: x^T o
    o: u32, // work: o [T, 32, 32]
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

// slabs of a product's operands, by rows and columns of each lane
var<workgroup> left_2: array<vec2<f32>, 256>;
var<workgroup> right_2: array<vec2<f32>, 256>;

// tanh
fn f_tanh(x: f32) -> f32 {
    let r3 = min(abs(x), 10.0f);
    let r4 = r3 + r3;
    let r9 = round(r4 * 1.442695f);
    let r16 = r4 - r9 * 0.6933594f - r9 * (-0.00021219444f) + 0.0f;
    let r25 = ((0.0013926376f * r16 + 0.008363333f) * r16 + 0.041666552f) * r16;
    let r32 = r16 + r16 * r16 * ((r25 + 0.16666576f) * r16 + 0.5f);
    let r39 = bitcast<i32>((-min(r9, 30.0f)) + 12583039.0f) << 23u;
    let r42 = r32 + (1.0f - bitcast<f32>(r39));
    let r49 = bitcast<f32>(bitcast<i32>(r9 - 2.0f + 12583039.0f) << 23u);
    let r50 = (r42 + r42) * r49;
    let r52 = r50 / (r50 + 1.0f);
    return select(r52, -r52, x < 0.0f);
}

fn make_W(index: u32, part: u32, lane: u32) {
    let task = tasks[index];
    let state_W_at = run.state_W + index * 1024;
    let W_at = run.W + index * 1024;
    // W = W_0
    for (var p = lane; p < 1024; p += 256u) {
        work[W_at + p] = given[state_W_at + p];
    }
}

@compute @workgroup_size(256)
fn begin_1(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let index = group.x + group.y * run.groups;
    if (index >= run.tasks) {
        return;
    }
    make_W(index, group.z, lane);
}

fn make_z_element(index: u32, row: u32, column: u32, sum: f32) {
    let task = tasks[index];
    let block = run.block;
    let y_at = run.y + index * 1024;
    let z_at = run.z + index * 1024;
    let point = row * 32 + column;
    let y_here = sum;
    // z = tanh(y)
    let z_here = f_tanh(y_here);
    work[z_at + point] = z_here;
}

// y = x W
// y = x @ W, [32, 32] in tiles of 32 by 32
fn make_z(index: u32, tile: u32, lane: u32) {
    let task = tasks[index];
    let block = run.block;
    let x_at = run.x + task.token * 1024;
    let W_at = run.W + index * 1024;
    let top = 0u;
    let edge = 0u;
    var total_0 = vec2<f32>(0.0f);
    var total_1 = vec2<f32>(0.0f);
    for (var slab = 0u; slab < 32; slab += 16u) {
        {
            let depth = slab + lane % 16;
            let at_0 = top + lane / 16 * 2;
            let at_1 = top + lane / 16 * 2 + 1;
            left_2[lane % 16 * 16 + lane / 16] = vec2<f32>(given[x_at + block * 1024 + at_0 * 32 + depth], given[x_at + block * 1024 + at_1 * 32 + depth]);
        }
        {
            let depth = slab + lane / 16;
            let at_0 = edge + lane % 16 * 2;
            let at_1 = edge + lane % 16 * 2 + 1;
            right_2[lane] = vec2<f32>(work[W_at + depth * 32 + at_0], work[W_at + depth * 32 + at_1]);
        }
        workgroupBarrier();
        for (var deep = 0u; deep < 16; deep++) {
            let rows = left_2[deep * 16 + lane / 16];
            let columns = right_2[deep * 16 + lane % 16];
            total_0 += rows.x * columns;
            total_1 += rows.y * columns;
        }
        workgroupBarrier();
    }
    var sums = array<f32, 4>(total_0.x, total_0.y, total_1.x, total_1.y);
    for (var own = 0u; own < 4; own++) {
        make_z_element(index, top + lane / 16 * 2 + own / 2, edge + lane % 16 * 2 + own % 2, sums[own]);
    }
}

@compute @workgroup_size(256)
fn block_2(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let index = group.x + group.y * run.groups;
    if (index >= run.tasks || run.block >= tasks[index].tokens) {
        return;
    }
    make_z(index, group.z, lane);
}

fn make_o(index: u32, part: u32, lane: u32) {
    let task = tasks[index];
    let block = run.block;
    let keep_at = run.keep + task.token * 32;
    let z_at = run.z + index * 1024;
    let r_at = run.r + index * 32;
    let o_at = run.o + task.token * 1024;
    // r = keep
    if (lane == 0) {
        work[r_at] = given[keep_at + block * 32];
    }
    storageBarrier();
    for (var t = 0u; t < 31u; t++) {
        // r_t = r_(t-1) * keep_t
        if (lane == 0) {
            let r_0 = work[r_at + t];
            work[r_at + t + 1] = r_0 * given[keep_at + block * 32 + t + 1];
        }
        storageBarrier();
    }
    // o = r z
    for (var p = lane; p < 1024; p += 256u) {
        let i = p / 32;
        let j = p % 32;
        work[o_at + block * 1024 + i * 32 + j] = work[r_at + i] * work[z_at + i * 32 + j];
    }
}

@compute @workgroup_size(256)
fn block_3(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let index = group.x + group.y * run.groups;
    if (index >= run.tasks || run.block >= tasks[index].tokens) {
        return;
    }
    make_o(index, group.z, lane);
}

fn make_W_1_element(index: u32, row: u32, column: u32, sum: f32) {
    let task = tasks[index];
    let block = run.block;
    let W_at = run.W + index * 1024;
    let more_at = run.more + index * 1024;
    let point = row * 32 + column;
    let more_here = sum;
    // W = W + x^T o
    let i = point / 32;
    let j = point % 32;
    let W_0 = work[W_at + i * 32 + j];
    let W_here = W_0 + more_here;
    work[W_at + i * 32 + j] = W_here;
}

// more = x @ o, [32, 32] in tiles of 32 by 32
fn make_W_1(index: u32, tile: u32, lane: u32) {
    let task = tasks[index];
    let block = run.block;
    let x_at = run.x + task.token * 1024;
    let o_at = run.o + task.token * 1024;
    let top = 0u;
    let edge = 0u;
    var total_0 = vec2<f32>(0.0f);
    var total_1 = vec2<f32>(0.0f);
    for (var slab = 0u; slab < 32; slab += 16u) {
        {
            let depth = slab + lane / 16;
            let at_0 = top + lane % 16 * 2;
            let at_1 = top + lane % 16 * 2 + 1;
            left_2[lane] = vec2<f32>(given[x_at + block * 1024 + at_0 + depth * 32], given[x_at + block * 1024 + at_1 + depth * 32]);
        }
        {
            let depth = slab + lane / 16;
            let at_0 = edge + lane % 16 * 2;
            let at_1 = edge + lane % 16 * 2 + 1;
            right_2[lane] = vec2<f32>(work[o_at + block * 1024 + depth * 32 + at_0], work[o_at + block * 1024 + depth * 32 + at_1]);
        }
        workgroupBarrier();
        for (var deep = 0u; deep < 16; deep++) {
            let rows = left_2[deep * 16 + lane / 16];
            let columns = right_2[deep * 16 + lane % 16];
            total_0 += rows.x * columns;
            total_1 += rows.y * columns;
        }
        workgroupBarrier();
    }
    var sums = array<f32, 4>(total_0.x, total_0.y, total_1.x, total_1.y);
    for (var own = 0u; own < 4; own++) {
        make_W_1_element(index, top + lane / 16 * 2 + own / 2, edge + lane % 16 * 2 + own % 2, sums[own]);
    }
}

@compute @workgroup_size(256)
fn block_4(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let index = group.x + group.y * run.groups;
    if (index >= run.tasks || run.block >= tasks[index].tokens) {
        return;
    }
    make_W_1(index, group.z, lane);
}
