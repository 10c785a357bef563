//! The first request of every connection: who is calling.

use serde::{Deserialize, Serialize};

use crate::id::{Epoch, ExecutionId, Token, TreeId, WorkerId};

/// Must come first on a connection; anything else before it is refused with `hello_first`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
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
    /// What the connection wants to be beyond making calls; absent: nothing, and nothing is pushed to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<RoleAsked>,
    /// What a worker can do beyond the least.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<Capability>,
}

/// What a connection asks to be.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoleAsked {
    /// Holder of the root's lease: what the root is owed is pushed here, and only here it can be acknowledged. The newest one has it.
    Root,
    /// The voice of a worker's process: its task, messages and completions are pushed here. One at a time.
    Worker,
    /// A reader: calls that change anything are refused.
    Observer,
}

/// What a worker can do.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    /// It saves its context when asked, and goes on from it in another process.
    Park,
    /// It takes in items while a turn is on.
    Steer,
}

/// What `ROOST_TREE`, `ROOST_WORKER`, `ROOST_TOKEN` and `ROOST_EPOCH` say.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
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
    /// For the holder of a root's lease: its number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<u64>,
    /// For holders of a lease and for workers: how completions are to be taken in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<DeliveryMode>,
    /// Milliseconds for which a completion is to be held back before it is taken in, so that a reading of it comes first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_ms: Option<u64>,
    /// For a worker: who it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerWelcome>,
}

/// What a worker's process is told about itself.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerWelcome {
    /// Its name.
    pub name: String,
    /// Its execution.
    pub execution: ExecutionId,
    /// Whether it goes on from a saved context, which `ROOST_CONTEXT` names.
    pub wakes: bool,
    /// The request id of the call in which the process before it was parked: to be made again, with the same id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<String>,
}

/// How completions reach a lead's model: a setting of the tree. The lead's client carries it out.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryMode {
    /// Into the turn that is on, after the current tool call; an idle lead is woken.
    #[default]
    Steer,
    /// When the turn has nothing left to do; an idle lead is woken.
    FollowUp,
    /// With the next turn that something else starts.
    NextTurn,
    /// Not at all: results are fetched.
    Passive,
}

/// As what a connection may speak.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The root session of a tree.
    Root,
    /// A worker of a tree.
    Worker,
    /// A reader.
    Observer,
    /// The user, from outside of any tree.
    Operator,
}
