//! The worker's side: what a process that speaks the protocol says of its own work. Contract sections 6, 9 and 11.
//!
//! These calls need a connection whose `hello` asked for the role `worker`. What the daemon says to it is in `deliver.rs`.

use serde::{Deserialize, Serialize};

use crate::bytes::Bytes;
use crate::usage::UsageReport;

/// How the work stands. Any report shows that the worker is alive; nothing has to be reported for its own sake.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Report {
    /// What the worker does now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<Activity>,
    /// What this process has used since it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageReport>,
    /// What it would answer if it ended now: kept, and labelled partial, should it end badly. Replaces the text before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// What a worker does.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// A model turn. The idle watchdog counts from the last report.
    Busy,
    /// Inside of a tool, for as long as that takes: the idle watchdog is off until the next `busy` or `idle`.
    Tool,
    /// Between turns.
    Idle,
}

/// Answer to [`Report`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportReply {}

/// The worker has ended its turn and nothing will continue by itself.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settle {
    /// Repeating it after a lost connection gets the same answer and changes nothing more.
    pub request_id: String,
    /// What this turn answered; absent when it has said nothing new. An earlier turn's answer never takes its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// What is needed to go on from here in another process: without one the worker cannot be parked or resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<SavedContext>,
    /// How the turn ended.
    #[serde(default)]
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub ended: TurnEnd,
    /// The last word on what this process has used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageReport>,
}

/// How a turn ended, as its worker sees it. The daemon draws the outcome from it by the order of contract section 9.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TurnEnd {
    /// It was cut off before it was through, for instance at a hard turn limit.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub aborted: bool,
    /// Its last message failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional = nullable))]
    pub error: Option<TurnError>,
    /// It was told to come to an end (a soft limit) and did.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub wrapped_up: bool,
    /// Its last message was cut at a length limit. With text it is an answer all the same.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub truncated: bool,
}

/// What was wrong with the last message of a turn.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnError {
    /// In which part of the work.
    pub kind: TurnErrorKind,
    /// In words.
    pub message: String,
}

/// In which part of its work a turn failed.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnErrorKind {
    /// The model's provider refused or failed.
    Provider,
    /// The turn limit.
    TurnLimit,
    /// What the worker drives broke the rules of its own protocol.
    Protocol,
}

/// A saved context: bytes in the message, or a file of the worker's own that stays as it is until the wake.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SavedContext {
    /// At most 1 MiB.
    Bytes(Bytes),
    /// An absolute path.
    Path(Bytes),
}

/// Answer to [`Settle`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettleReply {
    /// What is next.
    pub next: Next,
}

/// What a settled worker does next.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Next {
    /// Nothing: its execution has its outcome. Exit; the line `exit` comes on standard input as
    /// well.
    Exit,
    /// Wait: descendants are active. A delivery or a request to park comes.
    Wait,
    /// Go on: something is owed, and comes with the next delivery.
    GoOn,
}

/// The answer to a `park` notification: the context is saved, the process may exit.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParkReady {
    /// Repeating it gets the same answer, and does not answer a later request to park.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// What the next process goes on from; absent: what the last settle saved is still right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<SavedContext>,
}

/// Answer to [`ParkReady`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParkReadyReply {
    /// True: it is parked on disk, the process must exit now. False: something came first, go on.
    pub parked: bool,
}

/// The other answer to a `park` notification.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParkDecline {
    /// Milliseconds for which it should not be asked again; bounded by the daemon.
    #[serde(default)]
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub not_before_ms: u64,
}

/// Answer to [`ParkDecline`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParkDeclineReply {}
