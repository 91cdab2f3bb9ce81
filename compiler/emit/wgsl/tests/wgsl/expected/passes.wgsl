// passes: one workgroup of 256 invocations for each task, a (stream, head) pair

// the numbers of this launch; below, where each array begins in its arena
struct Run {
    tasks: u32,
    groups: u32,
    first: u32,
    stop: u32,
    skip: u32,
    q: u32, // given: q [T, 4]: query
    past_k: u32, // given: past.k [K + T, 4]: keys of the past
    past_v: u32, // given: past.v [K + T, 4]: values of the past
    score: u32, // work: score [T]: q . k
    sum: u32, // work: sum [T, 4]
    o: u32, // work: o [T, 4]
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

// div of the table
fn f_quotient(x: f32, y: f32) -> f32 {
    return select(x / y, 0.0f, x == 0.0f);
}

@compute @workgroup_size(256)
fn part_of_each_t(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let index = group.x + group.y * run.groups;
    if (index >= run.tasks) {
        return;
    }
    let task = tasks[index];
    let t = run.skip + group.z * 256 + lane;
    if (t >= task.tokens) {
        return;
    }
    let sum_at = run.sum + (task.token + t) * 4;

    // sum = 0
    for (var p = 0u; p < 4; p += 1u) {
        let j = p;
        work[sum_at + j] = 0.0f;
    }
}

@compute @workgroup_size(256)
fn each_i_of_each_t(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let index = group.x + group.y * run.groups;
    if (index >= run.tasks) {
        return;
    }
    let task = tasks[index];
    let t = run.skip + group.z * 256 + lane;
    if (t >= task.tokens) {
        return;
    }
    let q_at = run.q + task.token * 4;
    let past_k_at = run.past_k + task.past * 4;
    let past_v_at = run.past_v + task.past * 4;
    let score_at = run.score + (task.token + t) * 1;
    let sum_at = run.sum + (task.token + t) * 4;

    let stop = min(run.stop, (task.kept + task.tokens));
    for (var turn = run.first; turn < stop; turn++) {
        let i = turn;
        // score = q . k, 0 for tokens to come
        {
            var sum = 0.0f;
            for (var j = 0u; j < 4; j++) {
                sum += given[q_at + t * 4 + j] * given[past_k_at + i * 4 + j];
            }
            work[score_at] = select(0.0f, sum, f32(i) <= f32(t) + f32(task.kept));
        }
        // sum = sum + score v
        for (var p = 0u; p < 4; p += 1u) {
            let j = p;
            let sum_0 = work[sum_at + j];
            work[sum_at + j] = sum_0 + work[score_at] * given[past_v_at + i * 4 + j];
        }
    }
}

@compute @workgroup_size(256)
fn part_of_each_t_1(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let index = group.x + group.y * run.groups;
    if (index >= run.tasks) {
        return;
    }
    let task = tasks[index];
    let t = run.skip + group.z * 256 + lane;
    if (t >= task.tokens) {
        return;
    }
    let sum_at = run.sum + (task.token + t) * 4;
    let o_at = run.o + task.token * 4;

    // o = sum / (kept + 1)
    for (var p = 0u; p < 4; p += 1u) {
        let j = p;
        work[o_at + t * 4 + j] = f_quotient(work[sum_at + j], f32(task.kept) + 1.0f);
    }
}
