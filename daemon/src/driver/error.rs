//! Why the driver's loop ends that should not.

use roost_core::state::IllegalEvent;

use crate::journal::CommitError;
use crate::link::SupervisorGone;

/// Why the loop ended that should not have.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// A fault of the core's: nothing of the step was written.
    #[error("a fault of this program: {0}")]
    Fault(#[from] Box<IllegalEvent>),
    /// The same, found by a check.
    #[error("a fault of this program: {0}")]
    Inconsistent(String),
    /// Nobody has been told of the work, so a broker that begins with what is on disk can refuse it.
    #[error("there is no room for work that was accepted: the next broker refuses it")]
    NoRoom,
    /// The journal is the truth; without it there is nothing to say.
    #[error("the journal cannot be written: {0}")]
    Journal(#[from] CommitError),
    /// The supervisor is gone.
    #[error(transparent)]
    Supervisor(#[from] SupervisorGone),
    /// No connection can come any more.
    #[error("the listening socket is gone")]
    Listener,
}
