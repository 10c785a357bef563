//! What is owed, and the answers to those who speak of it, as messages.

use roost_core::effect::Next as CoreNext;
use roost_core::effect::{self, Owed, OwedKind, Reply};
use roost_core::event::{Sent as CoreSent, TextId};
use roost_core::usage_view::{UsageView, WorkerUsage as CoreUsage};
use roost_proto::id::{ExecutionId, MessageId};
use roost_proto::limits::DELIVERY_BYTES_MAX;
use roost_proto::message::deliver::{AckReply, Delivery, InboxReply, Item, ItemKind};
use roost_proto::message::launch::Placement;
use roost_proto::message::usage::{UsageReply, WorkerUsage};
use roost_proto::message::words::{MessageReply, Sent, TellLeadReply};
use roost_proto::message::worker::{Next, ParkReadyReply, ReportReply, SettleReply};
use serde_json::value::RawValue;

use super::answers::{Files, raw, result};
use super::pages::{cut, pages};

/// Items for the holder of a lease: several notifications, in order, where they are too much for one.
pub fn deliveries(delivery: &effect::Delivery, files: &dyn Files) -> Vec<Delivery> {
    let items = delivery.items.iter().map(|owed| item(owed, DELIVERY_BYTES_MAX, files));
    let mut pages: Vec<Vec<Item>> = pages(items, DELIVERY_BYTES_MAX).collect();
    if pages.is_empty() {
        // That nothing is owed is news too.
        pages.push(Vec::new());
    }
    let delivery = |items| Delivery { wake: delivery.wake, active_children: delivery.active_children, items };
    pages.into_iter().map(delivery).collect()
}

/// The first page of what is owed, and how many items are not on it.
fn inbox(items: &[Owed], more: usize, files: &dyn Files) -> InboxReply {
    let all = items.len();
    let items = items.iter().map(|owed| item(owed, DELIVERY_BYTES_MAX, files));
    let items = pages(items, DELIVERY_BYTES_MAX).next().unwrap_or_default();
    let more = more + all - items.len();
    InboxReply { items, more: u32::try_from(more).unwrap_or(u32::MAX) }
}

/// One item; what may be cut of its text takes so many bytes of the line.
pub(super) fn item(owed: &Owed, share: usize, files: &dyn Files) -> Item {
    let text_of = |text: TextId| cut(files.text(text), share);
    let words = |message: MessageId| text_of(TextId(message.0));
    let what = match &owed.what {
        // A task and a message are not cut: whoever acts on half of one does the wrong thing.
        OwedKind::Task(worker) => ItemKind::Task { text: files.task(*worker) },
        OwedKind::Completion(end) => ItemKind::Completion { result: Box::new(result(end, share, files)) },
        OwedKind::LeadMessage(message) => ItemKind::LeadMessage { message: *message, text: files.text(TextId(message.0)) },
        OwedKind::ChildMessage { message, from, worker } => {
            ItemKind::ChildMessage { message: *message, from: from.clone(), worker: *worker, text: files.text(TextId(message.0)) }
        }
        OwedKind::Notice { from, worker, execution, text } => {
            ItemKind::Notice { from: from.clone(), worker: *worker, execution: *execution, text: text.map(text_of).unwrap_or_default() }
        }
        OwedKind::Undelivered { message, to } => ItemKind::Undelivered {
            message: *message,
            to: to.clone(),
            reason: "it ended before it read this".into(),
            text: words(*message),
        },
    };
    Item { seq: owed.seq, what }
}

/// The answers to those who speak.
pub(super) fn reply(reply: Reply, files: &dyn Files) -> Box<RawValue> {
    match reply {
        Reply::Settled(next) => raw(&SettleReply {
            next: match next {
                CoreNext::Exit => Next::Exit,
                CoreNext::Wait => Next::Wait,
                CoreNext::GoOn => Next::GoOn,
            },
        }),
        Reply::ParkReady(parked) => raw(&ParkReadyReply { parked }),
        Reply::Acked { accepted, gone } => raw(&AckReply { accepted, gone }),
        Reply::Inbox { items, more } => raw(&inbox(&items, more, files)),
        Reply::Sent { message, sent, placed } => {
            let placed = placed.map(|(_, placed)| placed);
            let sent = match sent {
                CoreSent::ToLead => return raw(&TellLeadReply { message }),
                CoreSent::Steering(execution) => Sent::Steering { execution },
                CoreSent::AfterEnd(execution) => Sent::AfterEnd { execution },
                CoreSent::Resumes(job) => {
                    let place = placed.as_ref().and_then(|placed| placed.place);
                    let execution = placed.map_or(ExecutionId(0), |placed| placed.execution);
                    let placement = if place.is_some() { Placement::Queued } else { Placement::Started };
                    Sent::Resumed { job, execution, placement, place }
                }
            };
            raw(&MessageReply { message, sent })
        }
        Reply::Usage(view) => raw(&usage(*view)),
        Reply::Welcome { .. }
        | Reply::Opened { .. }
        | Reply::Receipt { .. }
        | Reply::Ends { .. }
        | Reply::Result(_)
        | Reply::StillActive { .. }
        | Reply::Status { .. }
        | Reply::Counts(_)
        | Reply::Stopped(_)
        | Reply::Interrupted { .. }
        | Reply::Cap(_)
        | Reply::Paused(_)
        | Reply::Closed { .. }
        | Reply::Parked
        | Reply::Done
        | Reply::Swept(_)
        | Reply::Drained { .. } => raw(&ReportReply {}),
    }
}

fn usage(view: UsageView) -> UsageReply {
    let UsageView { tree, totals, workers, next } = view;
    let line = |worker: CoreUsage| {
        let CoreUsage { name, worker, lead, executions, totals } = worker;
        WorkerUsage { name, worker, lead, executions, totals }
    };
    UsageReply { tree, totals, workers: workers.into_iter().map(line).collect(), next }
}
