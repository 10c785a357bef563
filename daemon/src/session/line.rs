//! One line of a peer: from its bytes to a call, and from the call to what the driver is asked.
//!
//! No socket, no waiting: the same two functions serve connections, the fuzz targets and the replay of their corpora.

use roost_core::command::CallId;
use roost_proto::link::ProcessIdentity;
use roost_proto::message::Request;
use roost_proto::message::session::Hello;
use roost_proto::rpc::{ErrorKind, ErrorObject};
use serde_json::value::RawValue;

use super::{FromSession, Standing, translate};

pub use super::envelope::{Unreadable, read_call};

/// What the driver is asked by a call of this peer; without a standing nobody has said hello. A `lineage` is looked up only for a
/// peer that claims to be somebody.
///
/// # Errors
/// Calls that need no driver to be refused.
pub fn understand(
    number: CallId,
    standing: Option<Standing>,
    method: &str,
    params: Option<&RawValue>,
    lineage: impl FnOnce() -> Vec<ProcessIdentity>,
) -> Result<FromSession, ErrorObject> {
    match (standing, method == Hello::METHOD) {
        (None, true) => translate::hello(number, params, lineage),
        (None, false) => {
            let hint = format!("the first call of a connection is `{}`", Hello::METHOD);
            Err(ErrorObject::new(ErrorKind::HelloFirst, "nobody has said hello on this connection", Some(hint)))
        }
        (Some(_), true) => Err(ErrorObject::new(
            ErrorKind::InvalidRequest,
            "this connection has said hello already",
            Some("open another connection to speak for somebody else".into()),
        )),
        (Some(standing), false) => translate::request(number, standing, method, params),
    }
}
