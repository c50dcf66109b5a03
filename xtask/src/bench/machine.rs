//! What the figures were measured on, in one line.

/// Cores, processor and memory, as the kernel says.
pub(crate) fn line() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let (cpu, memory) = (read("/proc/cpuinfo"), read("/proc/meminfo"));
    let field = |text: &str, key: &str| {
        let line = text.lines().find(|line| line.starts_with(key));
        line.and_then(|line| line.split(':').nth(1)).unwrap_or("unknown").trim().to_owned()
    };
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    format!("{cores} cores, {}, memory {}", field(&cpu, "model name"), field(&memory, "MemTotal"))
}
