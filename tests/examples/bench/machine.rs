//! The machine that was measured, in words.

use std::fs;
use std::path::Path;

/// Its parts: what each is called, and what it is.
pub fn machine(below: &Path) -> Vec<(&'static str, String)> {
    let cores = std::thread::available_parallelism().map_or(0, |count| count.get());
    let cpu = line("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".into());
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned();
    let memory = line("/proc/meminfo", "MemTotal").unwrap_or_default();
    let gib = memory.trim_end_matches(" kB").parse::<f64>().unwrap_or(0.0) / 1024.0 / 1024.0;
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').take(3).collect::<Vec<_>>().join(" ");
    vec![
        ("processor", format!("{cores} x {cpu}")),
        ("memory", format!("{gib:.0} GiB")),
        ("kernel", format!("Linux {kernel}")),
        ("file system", file_system(below).unwrap_or_else(|| "unknown".into())),
        ("load average at the beginning", load),
    ]
}

fn line(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// That of this directory: the mount whose path is the longest that leads to it.
fn file_system(below: &Path) -> Option<String> {
    let path = below.canonicalize().ok()?;
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let fields = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ');
        Some((fields.next()?, fields.next()?, fields.next()?))
    });
    let (_, _, kind) = fields.filter(|(_, at, _)| path.starts_with(at)).max_by_key(|(_, at, _)| at.len())?;
    Some(kind.to_owned())
}
