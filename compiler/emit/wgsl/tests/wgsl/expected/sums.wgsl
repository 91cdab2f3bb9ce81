// sums: one workgroup of 256 invocations for each task, a (stream, head) pair

// the numbers of this launch; below, where each array begins in its arena
struct Run {
    tasks: u32,
    groups: u32,
    first: u32,
    stop: u32,
    skip: u32,
    x: u32, // given: x [T, 3, 40]
    top: u32, // work: top []
    y: u32, // work: y [3, 40]
    o: u32, // work: o [T, 3]
    c: u32, // work: c [T, 3, 3]: c = y y^T
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

// parts of the sums that lanes share
var<workgroup> partial: array<f32, 256>;

// div of the table
fn f_quotient(x: f32, y: f32) -> f32 {
    return select(x / y, 0.0f, x == 0.0f);
}

@compute @workgroup_size(256)
fn each_t(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let index = group.x + group.y * run.groups;
    if (index >= run.tasks) {
        return;
    }
    let task = tasks[index];
    let x_at = run.x + task.token * 120;
    let top_at = run.top + index * 1;
    let y_at = run.y + index * 120;
    let o_at = run.o + task.token * 3;
    let c_at = run.c + task.token * 9;

    let stop = min(run.stop, task.tokens);
    for (var turn = run.first; turn < stop; turn++) {
        let t = turn;
        // top = max |x|
        {
            let part = lane;
            var largest = -3.4028234663852886e38f;
            for (var turn = part; turn < 120; turn += 8u) {
                let i = turn / 40;
                let j = turn % 40;
                largest = max(largest, abs(given[x_at + t * 120 + i * 40 + j]));
            }
            partial[lane] = largest;
            workgroupBarrier();
            if (part == 0) {
                for (var other = 1u; other < 8; other++) {
                    largest = max(largest, partial[lane - part + other]);
                }
                work[top_at] = largest;
            }
        }
        workgroupBarrier();
        storageBarrier();
        // y = x / top
        if (lane < 120) {
            let i = lane / 40;
            let j = lane % 40;
            work[y_at + i * 40 + j] = f_quotient(given[x_at + t * 120 + i * 40 + j], work[top_at]);
        }
        storageBarrier();
        // o = sum (y - mean y)^2
        {
            let point = min(lane / 4, 2u);
            let part = lane - point * 4;
            let i = point;
            var sum = 0.0f;
            for (var j = part; j < 40; j += 4u) {
                sum += work[y_at + i * 40 + j];
            }
            partial[lane] = sum;
            workgroupBarrier();
            sum = partial[lane - part];
            for (var other = 1u; other < 4; other++) {
                sum += partial[lane - part + other];
            }
            workgroupBarrier();
            let r_0 = sum / 40.0f;
            var sum_1 = 0.0f;
            for (var j = part; j < 40; j += 4u) {
                let r_0_1 = work[y_at + i * 40 + j] - r_0;
                sum_1 += r_0_1 * r_0_1;
            }
            partial[lane] = sum_1;
            workgroupBarrier();
            if (part == 0) {
                for (var other = 1u; other < 4; other++) {
                    sum_1 += partial[lane - part + other];
                }
                work[o_at + t * 3 + i] = sum_1;
            }
        }
        workgroupBarrier();
        // c = y y^T / 2
        {
            let point = min(lane / 4, 8u);
            let part = lane - point * 4;
            let row = point / 3;
            let column = point % 3;
            var sum = 0.0f;
            for (var inner = part; inner < 40; inner += 4u) {
                sum += work[y_at + row * 40 + inner] * work[y_at + inner + column * 40];
            }
            partial[lane] = sum;
            workgroupBarrier();
            if (part == 0) {
                for (var other = 1u; other < 4; other++) {
                    sum += partial[lane - part + other];
                }
                work[c_at + t * 9 + row * 3 + column] = 0.5f * sum;
            }
        }
        workgroupBarrier();
        storageBarrier();
    }
}
