//! How much memory a run may take.

/// Bytes that this process can hope for: the machine's memory, or the share of it that the process's
/// group may use, where the system tells; else 64 GiB.
pub(crate) fn memory() -> u64 {
    const UNKNOWN: u64 = 64 << 30;
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let machine = read("/proc/meminfo");
    let line = machine.lines().find_map(|l| l.strip_prefix("MemTotal:"));
    let kilobytes = line.and_then(|l| l.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    let machine = kilobytes.and_then(|k| k.checked_mul(1024)).unwrap_or(UNKNOWN);
    let group = read("/sys/fs/cgroup/memory.max").trim().parse::<u64>().unwrap_or(u64::MAX);
    machine.min(group)
}

/// A number of bytes for people.
pub(crate) fn human(bytes: u128) -> String {
    const UNITS: [&str; 7] = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    match unit {
        0 => format!("{bytes} bytes"),
        _ => format!("{value:.1} {}", UNITS[unit]),
    }
}
