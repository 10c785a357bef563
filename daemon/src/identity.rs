//! Who a process is: `/proc/PID/stat`, the boot id, and the marker that every worker carries in its environment.
//!
//! It does not know which processes matter, and it signals none.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use roost_proto::id::{Epoch, Incarnation};
use roost_proto::link::ProcessIdentity;

/// The three variables that are the marker of an incarnation, in the order of [`marker`].
pub const MARKER_VARIABLES: [&str; 3] = ["ROOST_EXECUTION", "ROOST_EPOCH", "ROOST_STATE_DIR"];

/// What `/proc/PID/stat` says of a process, as far as we care.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Which process.
    pub process: ProcessIdentity,
    /// Its parent's pid.
    pub parent: u32,
    /// Its process group.
    pub group: u32,
    /// Its session.
    pub session: u32,
    /// Whether anything of it still runs: a zombie does not, unless other threads outlived its main thread.
    pub alive: bool,
    /// Whether its main thread has ended and others go on.
    pub is_headless: bool,
    /// Whether it is a thread of the kernel: those have no environment.
    pub is_kernel: bool,
}

/// `PF_KTHREAD` of the kernel's `sched.h`, in field 9.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// How long the environment of a process in the middle of an `execve` is waited for, at most.
const EXEC_TRIES_MAX: u32 = 20;
const EXEC_TRY: Duration = Duration::from_micros(200);

/// Parses `/proc/PID/stat`. The name in parentheses may hold anything, so fields count from the last `)`.
pub fn parse_stat(text: &[u8]) -> Option<Stat> {
    let open = text.iter().position(|byte| *byte == b'(')?;
    let close = text.iter().rposition(|byte| *byte == b')')?;
    let pid = number(std::str::from_utf8(text.get(..open)?).ok()?.trim())?;
    let rest = std::str::from_utf8(text.get(close + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // Field N of proc(5) is index N - 3 here.
    let field = |number_of_field: usize| fields.get(number_of_field - 3).copied();
    let has_ended = matches!(field(3)?, "Z" | "X" | "x");
    let has_threads = number(field(20)?)? > 1;
    Some(Stat {
        process: ProcessIdentity { pid: u32::try_from(pid).ok()?, start_ticks: number(field(22)?)? },
        parent: small(field(4)?),
        group: small(field(5)?),
        session: small(field(6)?),
        alive: !has_ended || has_threads,
        is_headless: has_ended && has_threads,
        is_kernel: number(field(9)?)? & KERNEL_THREAD != 0,
    })
}

fn number(text: &str) -> Option<u64> {
    text.parse().ok()
}

/// A pid field; -1 and 0 (another pid namespace, a process in release) are 0, which no rule matches.
fn small(text: &str) -> u32 {
    text.parse().unwrap_or(0)
}

/// The process that has this pid now.
pub fn stat(pid: u32) -> Option<Stat> {
    parse_stat(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// Other processes that have this file open by this number.
pub fn holding(file: &File, descriptor: i32) -> std::io::Result<Vec<ProcessIdentity>> {
    let wanted = file.metadata()?;
    let is_it = |found: fs::Metadata| (found.dev(), found.ino()) == (wanted.dev(), wanted.ino());
    let pids = fs::read_dir("/proc")?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let others = pids.filter(|pid| *pid != std::process::id());
    let holders = others.filter(|pid| fs::metadata(format!("/proc/{pid}/fd/{descriptor}")).is_ok_and(is_it));
    Ok(holders.filter_map(|pid| Some(stat(pid)?.process)).collect())
}

/// Whether this very process exists and runs.
pub fn is_alive(process: ProcessIdentity) -> bool {
    stat(process.pid).is_some_and(|found| found.process == process && found.alive)
}

/// The kernel's boot id: with another one, all identities are of processes that are gone.
pub fn boot_id() -> std::io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// The marker of an incarnation: names and values.
pub fn marker(incarnation: Incarnation, state_dir: &[u8]) -> [(Vec<u8>, Vec<u8>); 3] {
    let [execution, epoch, state] = MARKER_VARIABLES.map(|name| name.as_bytes().to_vec());
    [
        (execution, incarnation.execution.to_string().into_bytes()),
        (epoch, incarnation.epoch.to_string().into_bytes()),
        (state, state_dir.to_vec()),
    ]
}

/// Which incarnation an environment block (`NAME=value\0...`) says it belongs to, if it is one of this state directory.
pub fn parse_marker(environ: &[u8], state_dir: &[u8]) -> Option<Incarnation> {
    let [mut execution, mut epoch, mut state] = [None; 3];
    for entry in environ.split(|byte| *byte == 0) {
        // Everything but our variables is passed over cheaply: a block may have megabytes.
        let Some(rest) = entry.strip_prefix(b"ROOST_") else { continue };
        let Some(equals) = rest.iter().position(|byte| *byte == b'=') else { continue };
        let (name, value) = (&rest[..equals], &rest[equals + 1..]);
        match name {
            b"EXECUTION" => execution = execution.or(Some(value)),
            b"EPOCH" => epoch = epoch.or(Some(value)),
            b"STATE_DIR" => state = state.or(Some(value)),
            _ => {}
        }
    }
    if state? != state_dir {
        return None;
    }
    let text = |bytes| std::str::from_utf8(bytes).ok();
    Some(Incarnation { execution: text(execution?)?.parse().ok()?, epoch: Epoch(text(epoch?)?.parse().ok()?) })
}

/// What the environment of a process says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marker {
    /// It belongs to this incarnation.
    Of(Incarnation),
    /// It carries no marker of this state directory, or none that we may read.
    None,
    /// It has no memory to look into: it is exiting, and its children are not ours before it is a zombie; or it is in the
    /// middle of an `execve` that takes long.
    Unclear,
}

impl Marker {
    /// The incarnation, if one is named.
    pub fn incarnation(self) -> Option<Incarnation> {
        match self {
            Self::Of(incarnation) => Some(incarnation),
            Self::None | Self::Unclear => None,
        }
    }
}

/// The marker that a process carries.
///
/// In the middle of an `execve` a process has neither arguments nor environment for a moment. To take that for "no marker"
/// would let it escape, so an empty environment is read again before it is believed.
pub fn marker_of(stat: &Stat, state_dir: &[u8]) -> Marker {
    if stat.is_kernel || !stat.alive {
        return Marker::None;
    }
    let read = |name| read_at_once(stat.process.pid, name);
    for tries in 0..EXEC_TRIES_MAX {
        // Looked at first: arguments that are there before the environment is found empty mean that it is empty.
        let has_arguments = read("cmdline").is_ok_and(|arguments| !arguments.is_empty());
        match read("environ") {
            Ok(environ) if environ.is_empty() => {}
            Ok(environ) => return parse_marker(&environ, state_dir).map_or(Marker::None, Marker::Of),
            // How kernels tell that there is no memory differs: by this, or by an empty file.
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return without_memory(stat, state_dir),
            Err(_) => return Marker::None,
        }
        if has_arguments && tries >= 2 {
            return Marker::None;
        }
        if !has_arguments && (stat.is_headless || !is_alive(stat.process)) {
            return without_memory(stat, state_dir);
        }
        std::thread::sleep(EXEC_TRY);
    }
    Marker::Unclear
}

/// A process without memory is exiting, unless it is only its main thread that has ended: then another thread knows.
fn without_memory(stat: &Stat, state_dir: &[u8]) -> Marker {
    let pid = stat.process.pid;
    if !stat.is_headless {
        return Marker::Unclear;
    }
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut environs = tasks.filter_map(|task| read_at_once(pid, &format!("task/{}/environ", task.file_name().to_str()?)).ok());
    environs.find_map(|environ| parse_marker(&environ, state_dir)).map_or(Marker::None, Marker::Of)
}

/// Reads a file of `/proc/PID` in one system call. Were it read in pieces and the process to `execve` in between, the rest would
/// be cut off silently.
fn read_at_once(pid: u32, name: &str) -> std::io::Result<Vec<u8>> {
    let path = format!("/proc/{pid}/{name}");
    let mut buffer = vec![0; 32 << 10];
    loop {
        let count = File::open(&path)?.read(&mut buffer)?;
        if count < buffer.len() {
            buffer.truncate(count);
            return Ok(buffer);
        }
        buffer.resize(buffer.len() * 4, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use roost_proto::id::ExecutionId;

    const STAT: &str = "42 (a) Z (x) S 7 42 41 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 0 0 184";

    #[test]
    fn a_name_with_parentheses_and_spaces_does_not_shift_the_fields() {
        let stat = parse_stat(STAT.as_bytes()).unwrap();
        assert_eq!(stat.process, ProcessIdentity { pid: 42, start_ticks: 12345 });
        assert_eq!((stat.parent, stat.group, stat.session, stat.alive), (7, 42, 41, true));
        // Not even UTF-8 is asked of it.
        let rest = STAT.split_once(')').unwrap().1.split_once(')').unwrap().1;
        for (name, session) in [(&b"a) R 9 (x"[..], 41), (b"\xff sh", 41)] {
            let stat = parse_stat(&[b"12 (", name, b")", rest.as_bytes()].concat()).unwrap();
            assert_eq!((stat.process.pid, stat.parent, stat.session), (12, 7, session));
        }
    }

    #[test]
    fn a_zombie_is_dead_unless_threads_outlived_its_main_thread() {
        let zombie = STAT.replace(") S ", ") Z ");
        assert!(!parse_stat(zombie.as_bytes()).unwrap().alive);
        assert!(parse_stat(zombie.replace(" 20 0 1 0 ", " 20 0 2 0 ").as_bytes()).unwrap().alive);
    }

    #[test]
    fn garbage_is_no_process() {
        for bad in ["", "42", "42 (a", "42 (a) S 1", ")(", "12 sh S 7", "12 (sh) S", "12 (sh) S x y z", ")"] {
            assert_eq!(parse_stat(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn a_marker_reads_back_and_counts_only_whole_and_for_this_state_directory() {
        let incarnation = Incarnation { execution: ExecutionId(12), epoch: Epoch(3) };
        let block = |state: &[u8]| {
            let parts = marker(incarnation, state);
            parts.iter().flat_map(|(name, value)| [name, b"=".as_slice(), value, b"\0"].concat()).collect::<Vec<u8>>()
        };
        assert_eq!(parse_marker(&block(b"/s\xff"), b"/s\xff"), Some(incarnation));
        assert_eq!(parse_marker(&block(b"/other"), b"/s"), None);
        assert_eq!(parse_marker(b"ROOST_EXECUTION=x1\0ROOST_STATE_DIR=/s\0", b"/s"), None);
        assert_eq!(parse_marker(b"A=ROOST_EPOCH=1\0ROOST_EXECUTION=x1\0ROOST_EPOCH\0ROOST_STATE_DIR=/s\0", b"/s"), None);
    }

    #[test]
    fn this_process_is_found_alive() {
        let me = stat(std::process::id()).unwrap();
        assert!(is_alive(me.process));
        assert!(!is_alive(ProcessIdentity { start_ticks: me.process.start_ticks + 1, ..me.process }));
        assert_eq!(boot_id().unwrap().len(), 36);
    }
}
