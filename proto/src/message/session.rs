//! The first request of every connection: who is calling.

use serde::{Deserialize, Serialize};

use crate::id::{Epoch, Token, TreeId, WorkerId};

/// Must come first on a connection; anything else before it is refused with `hello_first`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The oldest protocol version that the client speaks.
    pub protocol_min: u32,
    /// The newest one.
    pub protocol_max: u32,
    /// Program and version, for the log.
    pub client: String,
    /// The capability that the client holds; without one it is an operator, who may look and may open trees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
}

/// What `ROOST_TREE`, `ROOST_WORKER`, `ROOST_TOKEN` and `ROOST_EPOCH` say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The tree.
    pub tree: TreeId,
    /// The worker; `None` for the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerId>,
    /// The token of that worker, or of the root.
    pub token: Token,
    /// The incarnation of the worker that calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<Epoch>,
}

/// Answer to [`Hello`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The version that this connection speaks.
    pub protocol: u32,
    /// The daemon's version.
    pub daemon: String,
    /// As what the client was recognised.
    pub role: Role,
    /// Budget slots that the caller may still reserve; absent for an operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_remaining: Option<u64>,
    /// The tree's interrupt generation: a launch that carries an older one is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
}

/// As what a connection may speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The root session of a tree.
    Root,
    /// A worker of a tree.
    Worker,
    /// The user, from outside of any tree.
    Operator,
}
