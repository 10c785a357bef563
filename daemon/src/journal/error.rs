//! What can go wrong, and which of SQLite's errors is which of ours.

use std::fmt;
use std::io;
use std::path::PathBuf;

use roost_proto::id::WorkerId;
use rusqlite::ffi;
use rusqlite::{Error as Sqlite, ErrorCode};

use super::batch::Batch;

/// Why the journal was not opened. The file is as it was.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It holds something that this build did not write, or not all that it wrote.
    #[error(
        "the journal {} is damaged: {what}. Nothing in it was changed; {copy}. Put a good copy in its place, or move it (with its -wal) \
         away: the next start then begins an empty journal, and the trees in the old one are unknown to it",
        .file.display()
    )]
    Damaged {
        /// The journal.
        file: PathBuf,
        /// Where a copy is.
        copy: DamageCopy,
        /// What is wrong.
        what: String,
    },
    /// A newer build wrote it.
    #[error(
        "the journal {} has format {found}, this roostd knows formats up to {known}. It was left untouched: start the newer roostd \
         again, or put back the backup that it made ({}.v{known}-backup)", .file.display(), .file.display()
    )]
    Newer {
        /// The journal.
        file: PathBuf,
        /// Its format.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// Another broker has it open.
    #[error("the journal {} is in use by another roostd, and was still after {waited_ms} ms", .file.display())]
    InUse {
        /// The journal.
        file: PathBuf,
        /// How long it was waited for.
        waited_ms: u64,
    },
    /// No room to begin or migrate it.
    #[error("no space left for the journal {}, or its disk takes no writes: free some, look at the disk, and start again", .file.display())]
    NoSpace {
        /// The journal.
        file: PathBuf,
    },
    /// The storage does not work.
    #[error("the journal {} could not be used: {source}. See that it can be written and its disk works, then start again", .file.display())]
    Storage {
        /// The journal.
        file: PathBuf,
        /// What SQLite says.
        source: Sqlite,
    },
    /// The storage does not work.
    #[error("{doing} {}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// What the system says.
        source: io::Error,
    },
}

/// Where a damaged journal was copied to.
#[derive(Debug)]
pub enum DamageCopy {
    /// There, now or at an earlier start.
    At(PathBuf),
    /// It could not be.
    Failed(io::Error),
}

impl fmt::Display for DamageCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DamageCopy::At(path) => write!(f, "a copy is {}", path.display()),
            DamageCopy::Failed(error) => write!(f, "a copy could NOT be made ({error})"),
        }
    }
}

/// Why a batch was not committed.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// There is no room. Nothing of the batch is in; it may be committed again later.
    #[error("no space left for the journal")]
    NoSpace(Box<Batch>),
    /// Its records do not continue the journal. Nothing of it is in.
    #[error("record {found} was offered where record {expected} is next")]
    Gap {
        /// The next number.
        expected: u64,
        /// The number offered.
        found: u64,
    },
    /// Its snapshot is of records that are not there, or older than the newest. Nothing of the batch is in.
    #[error("a snapshot of record {found} was offered, where {oldest} to {newest} can be")]
    MisplacedSnapshot {
        /// Its number.
        found: u64,
        /// The least possible.
        oldest: u64,
        /// The greatest possible.
        newest: u64,
    },
    /// The journal cannot be used any more. Whether the batch is in will be known after it has been opened again.
    #[error("the journal is broken: {0}")]
    Broken(String),
}

/// Why a worker's spec or context could not be handed back. Others are not touched by it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// There is none.
    #[error("nothing is stored about how {worker} is started")]
    NoSpec {
        /// Whose.
        worker: WorkerId,
    },
    /// The spec or its environment is not what was written.
    #[error("what is stored about how {worker} is started is damaged: {what}")]
    SpecDamaged {
        /// Whose.
        worker: WorkerId,
        /// What is wrong.
        what: String,
    },
    /// The context is not what was written.
    #[error("the saved context of {worker} is damaged: {what}")]
    ContextDamaged {
        /// Whose.
        worker: WorkerId,
        /// What is wrong.
        what: String,
    },
}

/// Why opening stopped, before it is known where a copy goes.
#[derive(Debug)]
pub(super) enum Fault {
    Refused(OpenError),
    Damage(String),
    Sqlite(Sqlite),
}

impl From<Sqlite> for Fault {
    fn from(error: Sqlite) -> Self {
        Fault::Sqlite(error)
    }
}

impl From<OpenError> for Fault {
    fn from(error: OpenError) -> Self {
        Fault::Refused(error)
    }
}

/// What an error of SQLite means for us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Somebody else has the file.
    InUse,
    /// A write found no room.
    NoSpace,
    /// The machine, not the content.
    Storage,
    /// The content.
    Damage,
}

pub(super) fn meaning(error: &Sqlite) -> Meaning {
    let Some(failure) = error.sqlite_error() else {
        return Meaning::Damage;
    };
    let is_one_of = |codes: &[ErrorCode]| codes.contains(&failure.code);
    if is_one_of(&[ErrorCode::DatabaseBusy, ErrorCode::DatabaseLocked]) {
        Meaning::InUse
    // A write that fails for a quota or a file size limit is an IOERR_WRITE. A failed sync is neither: what it left on disk is unknown.
    } else if is_one_of(&[ErrorCode::DiskFull]) || failure.extended_code == ffi::SQLITE_IOERR_WRITE {
        Meaning::NoSpace
    } else if is_one_of(&[
        ErrorCode::SystemIoFailure,
        ErrorCode::OutOfMemory,
        ErrorCode::CannotOpen,
        ErrorCode::PermissionDenied,
        ErrorCode::ReadOnly,
        ErrorCode::FileLockingProtocolFailed,
        ErrorCode::NoLargeFileSupport,
        ErrorCode::OperationInterrupted,
    ]) {
        Meaning::Storage
    } else {
        Meaning::Damage
    }
}
