//! JSON-RPC 2.0 envelopes and the closed list of errors.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// What a client sends.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Call {
    /// Always `"2.0"`.
    pub jsonrpc: Version,
    /// Chosen by the client; the answer carries it. Without an id the call is a notification and gets no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// The method.
    pub method: String,
    /// Its parameters, read once the method is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>"), ts(type = "unknown"))]
    pub params: Option<Box<RawValue>>,
}

/// What a daemon sends: an answer (with `id`), or a notification (with `method`).
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Answer {
    /// Always `"2.0"`.
    pub jsonrpc: Version,
    /// The call that is answered; `None` when the call's id could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// The method of a notification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The parameters of a notification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>"), ts(type = "unknown"))]
    pub params: Option<Box<RawValue>>,
    /// The reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>"), ts(type = "unknown"))]
    pub result: Option<Box<RawValue>>,
    /// Or the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorObject>,
}

/// The only version of JSON-RPC that is spoken.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Version {
    /// 2.0.
    #[serde(rename = "2.0")]
    V2,
}

/// A JSON-RPC error object.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorObject {
    /// The JSON-RPC code.
    pub code: i64,
    /// What is wrong, for a person.
    pub message: String,
    /// The same for a program.
    pub data: ErrorData,
}

/// What a program needs to know of an error.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorData {
    /// Which of the closed list.
    pub kind: ErrorKind,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl ErrorObject {
    /// An error of this kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>, hint: Option<String>) -> Self {
        Self { code: kind.code(), message: message.into(), data: ErrorData { kind, hint } }
    }
}

/// Every error that the daemon answers with.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The line is not JSON.
    Parse,
    /// The line is JSON, but no call.
    InvalidRequest,
    /// There is no such method.
    UnknownMethod,
    /// The parameters do not fit the method.
    InvalidParams,
    /// A line is longer than the limit; the connection ends.
    TooLarge,
    /// The first call must be `hello`.
    HelloFirst,
    /// Client and daemon share no protocol version.
    ProtocolVersion,
    /// Tree, worker, token or epoch do not fit together.
    UnknownIdentity,
    /// The calling process belongs to an incarnation that is over.
    StaleEpoch,
    /// The call needs a tree.
    NoTree,
    /// The tree is closed.
    TreeClosed,
    /// Only the root may do this.
    NotRoot,
    /// Only a worker may do this.
    NotWorker,
    /// No direct child of the caller has that name.
    UnknownWorker,
    /// A name breaks the rule for names.
    BadName,
    /// A name is taken.
    NameTaken,
    /// A number or setting is out of its range.
    BadValue,
    /// Too many tasks, or none.
    TaskCount,
    /// The budget does not cover the launch.
    Budget,
    /// The tree is as deep as it may be.
    Depth,
    /// The working directory cannot be used.
    BadCwd,
    /// The request id was used before, with other content.
    RequestIdReused,
    /// The caller, or a lead of it, is being stopped.
    Stopping,
    /// The tree was interrupted after the caller last looked.
    Interrupted,
    /// The target is parked.
    Parked,
    /// The caller's lead is parked.
    LeadParked,
    /// The caller's lead reads nothing any more.
    LeadGone,
    /// The target is a plain command, which reads nothing while it runs.
    NotSteerable,
    /// The target has ended and cannot be resumed.
    NotResumable,
    /// Another connection holds the lease.
    StaleLease,
    /// Another process speaks for this worker.
    AlreadyConnected,
    /// The connection only reads.
    ReadOnly,
    /// The caller is owed more than it takes in.
    Backpressure,
    /// Nothing else can move: the newest wait gives up.
    Deadlock,
    /// The tree has active work.
    Active,
    /// The daemon is about to stop and takes no new work.
    Draining,
    /// There is no space on the disk of the state directory.
    NoSpace,
    /// A limit of `docs/limits.md` is reached.
    Limit,
    /// The daemon failed; its log says why.
    Internal,
}

impl ErrorKind {
    /// The JSON-RPC code: the reserved ones where they fit, else -32000.
    pub fn code(self) -> i64 {
        match self {
            Self::Parse => -32_700,
            Self::InvalidRequest => -32_600,
            Self::UnknownMethod => -32_601,
            Self::InvalidParams => -32_602,
            Self::Internal => -32_603,
            Self::TooLarge
            | Self::HelloFirst
            | Self::ProtocolVersion
            | Self::UnknownIdentity
            | Self::StaleEpoch
            | Self::NoTree
            | Self::TreeClosed
            | Self::NotRoot
            | Self::NotWorker
            | Self::UnknownWorker
            | Self::BadName
            | Self::NameTaken
            | Self::BadValue
            | Self::TaskCount
            | Self::Budget
            | Self::Depth
            | Self::BadCwd
            | Self::RequestIdReused
            | Self::Stopping
            | Self::Interrupted
            | Self::Parked
            | Self::LeadParked
            | Self::LeadGone
            | Self::NotSteerable
            | Self::NotResumable
            | Self::StaleLease
            | Self::AlreadyConnected
            | Self::ReadOnly
            | Self::Backpressure
            | Self::Deadlock
            | Self::Active
            | Self::Draining
            | Self::NoSpace
            | Self::Limit => -32_000,
        }
    }
}
