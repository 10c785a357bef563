//! What a command is to those who carry it and do not understand it: whose call it is, and what its caller counts on.

use super::{CallId, Caller, Command, Speak};

/// A call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Its number.
    pub id: CallId,
    /// Who makes it; whoever has not said who it is counts as an operator.
    pub caller: Caller,
    /// Its name, for people.
    pub verb: &'static str,
    /// What it is after.
    pub nature: Nature,
}

/// What a call is after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nature {
    /// To be known.
    Greets,
    /// To see what is there, at once.
    Looks,
    /// What somebody has to say, whenever that is.
    Awaits,
    /// More than there is, or else: an answer at once.
    Asks,
    /// Something that has to happen and may take its time.
    Acts,
}

impl Command {
    /// The call that gets an answer to this, if there is one.
    pub fn call(&self) -> Option<Call> {
        use Nature::{Acts, Asks, Awaits, Greets, Looks};
        let (id, caller, verb, nature) = match self {
            Self::Hello { call, .. } => (call, &Caller::Operator, "hello", Greets),
            Self::Open { call, .. } => (call, &Caller::Operator, "open", Asks),
            Self::Attach { call, .. } => (call, &Caller::Operator, "attach", Asks),
            Self::Launch { call, caller, .. } => (call, caller, "launch", Asks),
            Self::Cap { call, caller, .. } => (call, caller, "cap", Asks),
            Self::Pause { call, caller, .. } => (call, caller, "pause", Asks),
            Self::Wait { call, caller, .. } => (call, caller, "wait", Awaits),
            Self::Result { call, caller, .. } => (call, caller, "result", Awaits),
            Self::Status { call, caller, .. } => (call, caller, "status", Looks),
            Self::Count { call, caller } => (call, caller, "watch", Looks),
            Self::Usage { call, caller, .. } => (call, caller, "usage", Looks),
            Self::Stop { call, caller, .. } => (call, caller, "stop", Acts),
            Self::Interrupt { call, caller, .. } => (call, caller, "interrupt", Acts),
            Self::Close { call, caller, .. } => (call, caller, "close", Acts),
            Self::Park { call, caller, .. } => (call, caller, "park", Acts),
            Self::Speak { call, caller, speak, .. } => (call, caller, speak.verb(), if **speak == Speak::Inbox { Looks } else { Acts }),
            Self::Gc { call, .. } => (call, &Caller::Operator, "daemon.gc", Acts),
            Self::Drain { call: Some(call), .. } => (call, &Caller::Operator, "daemon.stop", Acts),
            Self::Drain { call: None, .. }
            | Self::LeaseGone { .. }
            | Self::Abandon { .. }
            | Self::RootPresence { .. }
            | Self::Reconcile { .. }
            | Self::Spawned { .. }
            | Self::SpawnFailed { .. }
            | Self::ContextCorrupt { .. }
            | Self::Exited { .. }
            | Self::Emptied { .. }
            | Self::NeverStarted { .. }
            | Self::Tick => return None,
        };
        Some(Call { id: *id, caller: *caller, verb, nature })
    }
}

impl Speak {
    fn verb(&self) -> &'static str {
        match self {
            Self::Told { .. } => "told",
            Self::Report { .. } => "report",
            Self::Settle { .. } => "settle",
            Self::ParkReady { .. } => "park_ready",
            Self::ParkDecline { .. } => "park_decline",
            Self::Ack { .. } => "ack",
            Self::Inbox => "inbox",
            Self::Message { .. } => "message",
            Self::TellLead { .. } => "tell_lead",
        }
    }
}
