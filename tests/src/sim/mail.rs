//! What a client is handed without having asked, and the small calls that it makes of it.

use roost_core::effect::{Delivery, Owed, OwedKind};
use roost_proto::id::{ExecutionId, MessageId};

/// What the broker tells the holder of a lease.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Mail {
    /// Items, whether they are a reason for a turn, and until when they are held back.
    Items {
        wake: bool,
        items: Vec<(u64, Got)>,
        ripe_at: u64,
    },
    /// These are not owed any more.
    Withdrawn(Vec<u64>),
    AskPark,
    /// The answer to one of its own calls: it comes in its turn.
    Answer(u64),
    LeaseLost,
}

/// One item.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Got {
    Task,
    End { execution: ExecutionId, name: String },
    Words(MessageId),
    Notice,
    Back(MessageId),
}

/// A small call.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Errand {
    /// It has taken these in.
    Ack(Vec<(u64, Got)>),
    /// It has these ends, which a wait has answered with.
    Told(Vec<ExecutionId>),
    /// It has saved its context.
    Ready,
    /// It cannot park, or says how its work stands.
    Remark,
}

impl Got {
    pub(crate) fn of(owed: &Owed) -> Self {
        match &owed.what {
            OwedKind::Task(_) => Self::Task,
            OwedKind::Completion(end) => Self::End { execution: end.execution, name: end.name.clone() },
            OwedKind::LeadMessage(message) | OwedKind::ChildMessage { message, .. } => Self::Words(*message),
            OwedKind::Notice { .. } => Self::Notice,
            OwedKind::Undelivered { message, .. } => Self::Back(*message),
        }
    }
}

impl Mail {
    pub(crate) fn of(delivery: &Delivery, ripe_at: u64) -> Self {
        Self::Items { wake: delivery.wake, items: delivery.items.iter().map(|owed| (owed.seq, Got::of(owed))).collect(), ripe_at }
    }

    /// Until when it is held back.
    pub(crate) fn ripe_at(&self) -> u64 {
        match self {
            Self::Items { ripe_at, .. } => *ripe_at,
            Self::Withdrawn(_) | Self::AskPark | Self::Answer(_) | Self::LeaseLost => 0,
        }
    }
}

impl Errand {
    /// Whether it acknowledges this item.
    pub(crate) fn has(&self, seq: u64) -> bool {
        matches!(self, Self::Ack(items) if items.iter().any(|(of, _)| *of == seq))
    }
}
