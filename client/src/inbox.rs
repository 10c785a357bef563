//! What a lead or worker is owed and has not taken in: each thing once, completions held back for a while, withdrawn ones dropped.
//!
//! Pure: deliveries and the time come in, items come out. It sends nothing; `voice.rs` does.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use roost_proto::id::{ExecutionId, MessageId};
use roost_proto::message::deliver::{Delivery, Item, ItemKind};
use serde::{Deserialize, Serialize};

/// The most identities that are remembered. What is owed at a time is far less, and only what is owed comes again.
const SEEN_MAX: usize = 10_000;

/// Items that may be taken in now, in order: one prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Items {
    /// Whether they should start a turn when the receiver is idle. Without items: nothing below it is active any more.
    pub wake: bool,
    /// Direct children that have not ended.
    pub active_children: u32,
    /// The items. They are owed until they are accepted.
    pub items: Vec<Item>,
}

/// What was taken in, by the identities that hold across processes: a worker saves it with its context.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Seen {
    executions: BTreeSet<ExecutionId>,
    messages: BTreeSet<MessageId>,
    undelivered: BTreeSet<MessageId>,
}

/// A mailbox, seen from its owner.
#[derive(Debug, Default)]
pub struct Inbox {
    hold: Duration,
    held: BTreeMap<u64, Held>,
    /// Numbers that were taken in, withdrawn, or owed twice.
    done: BTreeSet<u64>,
    seen: Seen,
    active_children: u32,
    /// A delivery without items came: a turn is due all the same.
    bare_wake: bool,
}

#[derive(Debug)]
struct Held {
    item: Item,
    ripe_at: Instant,
    wake: bool,
    /// The caller has it and has not accepted it yet.
    handed: bool,
}

impl Inbox {
    /// An inbox that drops what was taken in before.
    pub fn new(seen: Seen) -> Self {
        Self { seen, ..Self::default() }
    }

    /// From now on it drops this, too.
    pub fn remember(&mut self, seen: Seen) {
        self.seen.executions.extend(seen.executions);
        self.seen.messages.extend(seen.messages);
        self.seen.undelivered.extend(seen.undelivered);
    }

    /// For how long completions are held back from now on.
    pub fn set_hold(&mut self, hold: Duration) {
        self.hold = hold;
    }

    /// What was taken in so far.
    pub fn seen(&self) -> &Seen {
        &self.seen
    }

    /// Takes a delivery. Returns the numbers of what is owed although it was taken in: to be acknowledged, and no more.
    pub fn deliver(&mut self, delivery: Delivery, now: Instant) -> Vec<u64> {
        self.active_children = delivery.active_children;
        self.bare_wake |= delivery.wake && delivery.items.is_empty();
        let mut again = Vec::new();
        for item in delivery.items {
            if self.done.contains(&item.seq) || self.held.contains_key(&item.seq) {
                continue;
            }
            if self.seen.has(&item.what) || self.held.values().any(|held| same(&held.item.what, &item.what)) {
                again.push(item.seq);
                bounded(&mut self.done, item.seq);
                continue;
            }
            let ripe_at = if matches!(item.what, ItemKind::Completion { .. }) { now + self.hold } else { now };
            self.held.insert(item.seq, Held { item, ripe_at, wake: delivery.wake, handed: false });
        }
        again
    }

    /// Drops what was read by another way.
    pub fn withdraw(&mut self, items: &[u64]) {
        for seq in items {
            self.drop_one(*seq);
        }
    }

    /// What may be taken in now. Order is kept: what stands behind a completion that is held back waits with it.
    pub fn ready(&mut self, now: Instant) -> Option<Items> {
        let ripe: Vec<u64> =
            self.held.iter().filter(|(_, held)| !held.handed).take_while(|(_, held)| held.ripe_at <= now).map(|(seq, _)| *seq).collect();
        if ripe.is_empty() && !self.bare_wake {
            return None;
        }
        let mut items = Items { wake: std::mem::take(&mut self.bare_wake), active_children: self.active_children, items: Vec::new() };
        for seq in ripe {
            if let Some(held) = self.held.get_mut(&seq) {
                held.handed = true;
                items.wake |= held.wake;
                items.items.push(held.item.clone());
            }
        }
        Some(items)
    }

    /// When there will be more to take in, if nothing else arrives.
    pub fn ripe_at(&self) -> Option<Instant> {
        self.held.values().find(|held| !held.handed).map(|held| held.ripe_at)
    }

    /// Of these, what is still owed as far as we know: the rest was withdrawn after it was handed out.
    pub fn still_owed(&self, items: &[Item]) -> Vec<u64> {
        items.iter().map(|item| item.seq).filter(|seq| self.held.contains_key(seq)).collect()
    }

    /// These have been acknowledged: they never come again.
    pub fn accepted(&mut self, items: &[u64]) {
        for seq in items {
            if let Some(held) = self.drop_one(*seq) {
                self.seen.remember(&held.item.what);
            }
        }
    }

    /// A turn is over: what was handed out and not accepted comes again.
    pub fn give_back(&mut self) {
        for held in self.held.values_mut() {
            held.handed = false;
        }
    }

    /// What is owed is somebody else's, or comes again: what the caller has not been handed yet is dropped.
    pub fn forget(&mut self) {
        self.held.retain(|_, held| held.handed);
        self.bare_wake = false;
    }

    /// What was owed may have been taken in by somebody else: nothing that came before is there to be accepted.
    pub fn start_over(&mut self) {
        self.held.clear();
        self.bare_wake = false;
    }

    fn drop_one(&mut self, seq: u64) -> Option<Held> {
        bounded(&mut self.done, seq);
        self.held.remove(&seq)
    }
}

impl Seen {
    fn has(&self, what: &ItemKind) -> bool {
        match what {
            ItemKind::Completion { result } => self.executions.contains(&result.end.execution),
            ItemKind::LeadMessage { message, .. } | ItemKind::ChildMessage { message, .. } => self.messages.contains(message),
            ItemKind::Undelivered { message, .. } => self.undelivered.contains(message),
            ItemKind::Task { .. } | ItemKind::Notice { .. } => false,
        }
    }

    fn remember(&mut self, what: &ItemKind) {
        match what {
            ItemKind::Completion { result } => bounded(&mut self.executions, result.end.execution),
            ItemKind::LeadMessage { message, .. } | ItemKind::ChildMessage { message, .. } => bounded(&mut self.messages, *message),
            ItemKind::Undelivered { message, .. } => bounded(&mut self.undelivered, *message),
            ItemKind::Task { .. } | ItemKind::Notice { .. } => {}
        }
    }
}

/// Whether both are the same thing under two numbers.
fn same(one: &ItemKind, other: &ItemKind) -> bool {
    let mut alone = Seen::default();
    alone.remember(one);
    alone.has(other)
}

/// Numbers and ids only grow: the lowest is the one that comes again last.
fn bounded<T: Ord>(set: &mut BTreeSet<T>, value: T) {
    set.insert(value);
    if set.len() > SEEN_MAX {
        set.pop_first();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const HOLD: Duration = Duration::from_millis(200);

    fn completion(seq: u64, execution: u64) -> Item {
        serde_json::from_value(json!({"seq": seq, "type": "completion", "name": "a", "worker": "w1", "execution": format!("x{execution}"),
            "job": "j1", "task_index": 0, "outcome": {"status": "completed"}, "answer": "R", "answer_bytes": 1}))
        .unwrap()
    }

    fn message(seq: u64, id: u64) -> Item {
        Item { seq, what: ItemKind::LeadMessage { message: MessageId(id), text: "m".into() } }
    }

    fn delivery(items: &[Item]) -> Delivery {
        Delivery { wake: true, active_children: 1, items: items.to_vec() }
    }

    fn inbox() -> (Inbox, Instant) {
        let mut inbox = Inbox::default();
        inbox.set_hold(HOLD);
        (inbox, Instant::now())
    }

    fn numbers(items: Option<Items>) -> Vec<u64> {
        items.map(|items| items.items.iter().map(|item| item.seq).collect()).unwrap_or_default()
    }

    #[test]
    fn a_completion_is_held_back_and_what_follows_it_stays_behind_it() {
        let (mut inbox, now) = inbox();
        inbox.deliver(delivery(&[message(1, 1), completion(2, 1), message(3, 2)]), now);
        assert_eq!(numbers(inbox.ready(now)), [1]);
        assert_eq!(inbox.ripe_at(), Some(now + HOLD));
        assert_eq!(inbox.ready(now + HOLD - Duration::from_millis(1)), None);
        let rest = inbox.ready(now + HOLD).unwrap();
        assert_eq!((rest.wake, numbers(Some(rest))), (true, vec![2, 3]));
        assert_eq!(inbox.ripe_at(), None);
    }

    #[test]
    fn what_is_withdrawn_in_time_is_never_seen() {
        let (mut inbox, now) = inbox();
        inbox.deliver(delivery(&[completion(1, 1), completion(2, 2)]), now);
        inbox.withdraw(&[1]);
        // A repeat that was on its way does not bring it back.
        inbox.deliver(delivery(&[completion(1, 1)]), now);
        assert_eq!(numbers(inbox.ready(now + HOLD)), [2]);
        // Withdrawn after it was handed out: not to be accepted any more.
        inbox.withdraw(&[2]);
        assert_eq!(inbox.still_owed(&[completion(2, 2)]), [0_u64; 0]);
    }

    #[test]
    fn nothing_comes_twice_by_number_execution_or_message() {
        let (mut inbox, now) = inbox();
        let all = [completion(1, 7), message(2, 9)];
        inbox.deliver(delivery(&all), now);
        // The same again after a reconnect, and the same execution under another number.
        assert_eq!(inbox.deliver(delivery(&all), now), [0_u64; 0]);
        assert_eq!(inbox.deliver(delivery(&[completion(5, 7)]), now), [5]);
        assert_eq!(numbers(inbox.ready(now + HOLD)), [1, 2]);
        inbox.accepted(&[1, 2]);
        assert_eq!(inbox.deliver(delivery(&[completion(1, 7), completion(6, 7), message(8, 9)]), now), [6, 8]);
        assert_eq!(inbox.ready(now + HOLD), None);
        // Another process, whose context says what the one before had taken in.
        let saved = serde_json::to_string(inbox.seen()).unwrap();
        let mut next = Inbox::new(serde_json::from_str(&saved).unwrap());
        assert_eq!(next.deliver(delivery(&[completion(1, 7), message(3, 10)]), now), [1]);
        assert_eq!(numbers(next.ready(now)), [3]);
    }

    #[test]
    fn what_was_handed_out_and_not_accepted_comes_again_after_the_turn() {
        let (mut inbox, now) = inbox();
        inbox.deliver(delivery(&[message(1, 1), message(2, 2)]), now);
        assert_eq!(numbers(inbox.ready(now)), [1, 2]);
        assert_eq!(inbox.ready(now), None);
        inbox.accepted(&[1]);
        inbox.give_back();
        assert_eq!(numbers(inbox.ready(now)), [2]);
    }

    #[test]
    fn a_delivery_without_items_is_a_turn_and_a_repeat_is_none() {
        let (mut inbox, now) = inbox();
        inbox.deliver(Delivery { wake: true, active_children: 0, items: Vec::new() }, now);
        assert_eq!(inbox.ready(now), Some(Items { wake: true, active_children: 0, items: Vec::new() }));
        inbox.deliver(delivery(&[message(1, 1)]), now);
        assert!(inbox.ready(now).is_some());
        inbox.deliver(delivery(&[message(1, 1)]), now);
        assert_eq!(inbox.ready(now), None);
    }

    #[test]
    fn its_memory_is_bounded() {
        let (mut inbox, now) = inbox();
        for seq in 1..=(SEEN_MAX as u64 + 50) {
            inbox.deliver(delivery(&[message(seq, seq)]), now);
            inbox.accepted(&[seq]);
        }
        assert_eq!((inbox.done.len(), inbox.seen.messages.len(), inbox.held.len()), (SEEN_MAX, SEEN_MAX, 0));
    }
}
