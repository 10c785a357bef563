//! What the supervisor and the broker say over their socket pair: length-prefixed bincode, the same link version on both ends.
//!
//! A frame is a little-endian u32 length and that many bytes. Types here carry no serde attribute that bincode cannot decode
//! (no internal tags, no `skip_serializing_if`): see `docs/adr/0001-foundations.md`.

use std::fmt;

use crate::limits::LINK_FRAME_BYTES_MAX;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::id::Incarnation;

/// The version of the link. The two ends may be of different builds (a restart takes the broker that is installed now); of different
/// versions of the link they may not be: each refuses another number.
pub const LINK_VERSION: u32 = 3;

/// Broker to supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToSupervisor {
    /// First frame of the broker.
    Hello {
        /// [`LINK_VERSION`].
        version: u32,
    },
    /// Start a process. Answered by `Spawned` or `SpawnFailed`; asked twice for one incarnation, it is started once.
    Spawn(Box<SpawnOrder>),
    /// Send a signal to all processes of an incarnation: its cgroup, its session, its group and what was re-parented from it.
    Signal {
        /// Whose processes.
        incarnation: Incarnation,
        /// Which signal.
        signal: Signal,
    },
    /// The end of this incarnation is in the journal: the supervisor may drop what it kept of it.
    Forget {
        /// Which one.
        incarnation: Incarnation,
    },
    /// A process that an earlier supervisor started: watch it, or find out whether it exists.
    Adopt {
        /// Which one.
        incarnation: Incarnation,
        /// What the journal knows of the process; `None` when it may have been started without a record.
        process: Option<ProcessIdentity>,
        /// The standard output file: whether it exists tells if a start without a record may have happened.
        stdout_path: Vec<u8>,
        /// As in its [`SpawnOrder`].
        leftovers_grace_ms: Option<u64>,
    },
    /// What systemd or `roost daemon status` may show of the daemon.
    Status {
        /// One line.
        line: String,
    },
    /// The broker serves connections now.
    Ready,
    /// The broker has nothing more to do: end the daemon. Live workers are left alone.
    Shutdown,
    /// Start the broker anew, with the binary that is installed now. Live workers are left alone.
    Restart,
    /// The broker's loop turns. Only where a service manager watches over that.
    Alive,
}

/// Supervisor to broker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToBroker {
    /// First frame of the supervisor: all children that it knows, live ones and ends that were not forgotten.
    Hello {
        /// [`LINK_VERSION`].
        version: u32,
        /// The supervisor's pid.
        supervisor_pid: u32,
        /// The kernel's boot id: processes of another boot are gone.
        boot_id: String,
        /// What it holds.
        children: Vec<ChildReport>,
        /// Who watches over the daemon, if anybody does.
        manager: Option<Manager>,
    },
    /// The process runs.
    Spawned {
        /// Which one.
        incarnation: Incarnation,
        /// Its identity, for adoption after a crash.
        process: ProcessIdentity,
    },
    /// The process could not be started; nothing of it is left.
    SpawnFailed {
        /// Which one.
        incarnation: Incarnation,
        /// Why, naming what was at fault.
        reason: String,
        /// Whether trying again later may help (no memory, no process slots).
        transient: bool,
    },
    /// The main process has ended. `leftovers` is empty when nothing of it is left alive.
    Exited {
        /// Which one.
        incarnation: Incarnation,
        /// How.
        status: ExitStatus,
        /// Processes that it left behind and that are still alive.
        leftovers: Vec<u32>,
    },
    /// The leftovers of an ended incarnation are gone too.
    Emptied {
        /// Which one.
        incarnation: Incarnation,
    },
    /// Answer to `Adopt`: it never was started; it may be started now.
    NeverStarted {
        /// Which one.
        incarnation: Incarnation,
    },
    /// The supervisor was told to end (SIGTERM, SIGINT): stop admissions and end workers in order, then `Shutdown`.
    Terminate,
}

/// A service manager that shows the daemon's [`ToSupervisor::Status`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manager {
    /// How often it is to hear [`ToSupervisor::Alive`], in milliseconds; `None` when it does not mind.
    pub beat_ms: Option<u64>,
}

/// A child that the supervisor holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildReport {
    /// Which one.
    pub incarnation: Incarnation,
    /// Its process.
    pub process: ProcessIdentity,
    /// Its end, when it has ended.
    pub exited: Option<ExitStatus>,
    /// Whether processes of it are alive (its main process, or leftovers).
    pub alive: bool,
}

/// What makes a process itself: a recycled pid has another start time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// The process id.
    pub pid: u32,
    /// Field 22 of `/proc/PID/stat`: clock ticks after boot.
    pub start_ticks: u64,
}

/// How a main process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ExitStatus {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// It is gone, and it was not ours to wait for.
    Unknown,
}

impl fmt::Display for ExitStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
            Self::Unknown => f.write_str("nobody saw how"),
        }
    }
}

/// What a worker reads on its standard input when it is to exit. An end without it is the death of a supervisor, and no order.
pub const EXIT_LINE: &[u8] = b"exit\n";

/// The signals that the broker may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Signal {
    /// [`EXIT_LINE`] on the standard input pipe, where the runner has one, and its end: the first rung of an orderly exit.
    CloseStdin,
    /// SIGTERM (and SIGCONT, so that a stopped process can take it).
    Term,
    /// SIGKILL.
    Kill,
}

/// Everything that is needed to start one process. Paths, arguments and environment are bytes: they need not be UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpawnOrder {
    /// Which one.
    pub incarnation: Incarnation,
    /// Program and arguments. The program is looked up on the `PATH` of `env`, relative to `cwd`.
    pub argv: Vec<Vec<u8>>,
    /// The whole environment, `NAME` and value.
    pub env: Vec<(Vec<u8>, Vec<u8>)>,
    /// Working directory.
    pub cwd: Vec<u8>,
    /// File mode creation mask.
    pub umask: u32,
    /// Where standard input comes from.
    pub stdin: Stdin,
    /// File for standard output, created (never truncated).
    pub stdout_path: Vec<u8>,
    /// File for standard error, created (never truncated).
    pub stderr_path: Vec<u8>,
    /// Processes that it leaves behind are ended: TERM, then KILL after so many milliseconds. `None`: listed and left alone.
    pub leftovers_grace_ms: Option<u64>,
}

/// Where a worker's standard input comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stdin {
    /// `/dev/null`.
    Null,
    /// This file, opened for reading.
    File(Vec<u8>),
    /// A pipe whose other end the supervisor holds open until `CloseStdin`.
    Pipe,
}

/// A frame that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The length prefix is over the limit.
    #[error("a link frame of {bytes} bytes is over the limit of {LINK_FRAME_BYTES_MAX}")]
    TooLong {
        /// What the prefix said.
        bytes: usize,
    },
    /// The bytes are not a message of this version.
    #[error("a link frame cannot be decoded: {0}")]
    Decode(#[from] bincode::error::DecodeError),
    /// The message cannot be written.
    #[error("a link frame cannot be encoded: {0}")]
    Encode(#[from] bincode::error::EncodeError),
    /// Bytes were left after the message.
    #[error("a link frame has {bytes} bytes too many")]
    Trailing {
        /// How many.
        bytes: usize,
    },
}

const CONFIG: bincode::config::Configuration<
    bincode::config::LittleEndian,
    bincode::config::Fixint,
    bincode::config::Limit<LINK_FRAME_BYTES_MAX>,
> = bincode::config::legacy().with_limit();

/// One message as a frame, its length in front.
pub fn encode<M: Serialize>(message: &M) -> Result<Vec<u8>, LinkError> {
    let body = bincode::serde::encode_to_vec(message, CONFIG)?;
    if body.len() > LINK_FRAME_BYTES_MAX {
        return Err(LinkError::TooLong { bytes: body.len() });
    }
    let mut frame = Vec::with_capacity(4 + body.len());
    frame.extend_from_slice(&u32::try_from(body.len()).map_err(|_| LinkError::TooLong { bytes: body.len() })?.to_le_bytes());
    frame.extend_from_slice(&body);
    Ok(frame)
}

/// Bytes as they arrive, messages as they are complete.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: Vec<u8>,
    read: usize,
}

impl Decoder {
    /// Takes bytes in.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.read > 0 {
            self.buffer.drain(..self.read);
            self.read = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole message, if there is one.
    pub fn next_message<M: DeserializeOwned>(&mut self) -> Result<Option<M>, LinkError> {
        let rest = &self.buffer[self.read..];
        let Some((prefix, body)) = rest.split_first_chunk::<4>() else { return Ok(None) };
        let bytes = u32::from_le_bytes(*prefix) as usize;
        if bytes > LINK_FRAME_BYTES_MAX {
            return Err(LinkError::TooLong { bytes });
        }
        let Some(body) = body.get(..bytes) else { return Ok(None) };
        let (message, used) = bincode::serde::decode_from_slice(body, CONFIG)?;
        if used != bytes {
            return Err(LinkError::Trailing { bytes: bytes - used });
        }
        self.read += 4 + bytes;
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{Epoch, ExecutionId};

    fn incarnation() -> Incarnation {
        Incarnation { execution: ExecutionId(7), epoch: Epoch(2) }
    }

    /// Golden bytes: fixed-width little-endian, so that leaving bincode for a compatible crate changes no wire.
    #[test]
    fn a_frame_has_these_bytes() -> Result<(), LinkError> {
        let frame = encode(&ToSupervisor::Signal { incarnation: incarnation(), signal: Signal::Kill })?;
        let expected = [20, 0, 0, 0, 2, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0];
        assert_eq!(frame, expected);
        Ok(())
    }

    #[test]
    fn frames_come_out_whole_however_they_are_cut() -> Result<(), LinkError> {
        let sent = [
            ToBroker::Exited { incarnation: incarnation(), status: ExitStatus::Code(3), leftovers: vec![4, 5] },
            ToBroker::SpawnFailed { incarnation: incarnation(), reason: "no such directory /x".into(), transient: false },
            ToBroker::Terminate,
        ];
        let mut bytes = Vec::new();
        for message in &sent {
            bytes.extend(encode(message)?);
        }
        for step in [1, 3, bytes.len()] {
            let mut decoder = Decoder::default();
            let mut received = Vec::new();
            for piece in bytes.chunks(step) {
                decoder.push(piece);
                while let Some(message) = decoder.next_message::<ToBroker>()? {
                    received.push(message);
                }
            }
            assert_eq!(received, sent);
        }
        Ok(())
    }

    #[test]
    fn a_length_over_the_limit_is_refused_before_it_is_awaited() {
        let mut decoder = Decoder::default();
        decoder.push(&u32::MAX.to_le_bytes());
        assert!(matches!(decoder.next_message::<ToBroker>(), Err(LinkError::TooLong { .. })));
    }
}
