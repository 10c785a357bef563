//! What is owed to a lead or a worker: numbered items that stay until their receiver has taken them in.
//!
//! It knows no text: a completion's is the child's own record, a message's lies beside its event in the journal.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use roost_proto::id::{ExecutionId, MessageId, WorkerId};
use roost_proto::limits::ACKS_REMEMBERED_MAX;
use roost_proto::link::ProcessIdentity;
use serde::{Deserialize, Serialize};

use crate::event::TextId;
use crate::older;

/// One thing owed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Item {
    /// What a worker was launched with.
    Task,
    /// An execution of a child has ended.
    Completion {
        /// The child.
        child: WorkerId,
        /// Its execution.
        execution: ExecutionId,
        /// Whether this alone is a reason to wake its lead: not where somebody else has stopped it.
        wakes: bool,
        /// The group of launches that it is held back for, until the others of it have ended too.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        held: Option<u64>,
    },
    /// Words of the receiver's lead.
    LeadMessage {
        /// The message.
        message: MessageId,
        /// They came when the execution had its outcome: they are for the next one.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        after_end: bool,
    },
    /// Words of a child.
    ChildMessage {
        /// The message.
        message: MessageId,
        /// The child.
        from: WorkerId,
    },
    /// A child has ended its turn and waits for children of its own.
    Notice {
        /// The child.
        from: WorkerId,
        /// Its execution.
        execution: ExecutionId,
        /// What the turn has answered.
        text: Option<TextId>,
    },
    /// A message of the receiver's that its target has never read.
    Undelivered {
        /// The message.
        message: MessageId,
        /// Whom it was for.
        to: WorkerId,
    },
}

/// Who has taken items in: a repeat of it is known by either.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taker {
    /// The process, where it held the lease.
    #[serde(alias = "pid", deserialize_with = "older::some_process")]
    pub process: Option<ProcessIdentity>,
    /// The call.
    pub request_id: Option<String>,
}

impl Taker {
    /// Whether a repeat could be told from somebody else's call.
    fn is_known(&self) -> bool {
        self.process.is_some() || self.request_id.is_some()
    }

    fn is(&self, other: &Self) -> bool {
        let same_process = self.process.is_some() && self.process == other.process;
        same_process || (self.request_id.is_some() && self.request_id == other.request_id)
    }
}

/// The items of one receiver, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Outbox {
    next_seq: u64,
    items: BTreeMap<u64, Item>,
    /// The newest acknowledgements.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    acked: VecDeque<(Taker, Vec<u64>)>,
    by_execution: BTreeMap<ExecutionId, u64>,
    /// Messages and the task: a reason for a turn whatever the tree's delivery mode is.
    words: u32,
    /// Completions that are a reason to wake where the tree's mode says so, and are not held back.
    calls: u32,
}

impl Outbox {
    /// An empty one.
    pub(super) const fn new() -> Self {
        Self { next_seq: 0, items: BTreeMap::new(), acked: VecDeque::new(), by_execution: BTreeMap::new(), words: 0, calls: 0 }
    }

    /// Owes one more thing, under the next number.
    pub fn push(&mut self, item: Item) {
        self.next_seq += 1;
        let seq = self.next_seq;
        if let Item::Completion { execution, .. } = &item {
            self.by_execution.insert(*execution, seq);
        }
        // Of the notices of one child only the newest says how it stands.
        if let Item::Notice { from, .. } = &item {
            let child = *from;
            self.items.retain(|_, old| !matches!(old, Item::Notice { from, .. } if *from == child));
        }
        self.count(&item, 1);
        self.items.insert(seq, item);
    }

    fn count(&mut self, item: &Item, by: i32) {
        let counter = match item {
            Item::Task | Item::LeadMessage { .. } | Item::ChildMessage { .. } => &mut self.words,
            Item::Completion { wakes: true, held: None, .. } => &mut self.calls,
            Item::Completion { .. } | Item::Notice { .. } | Item::Undelivered { .. } => return,
        };
        *counter = counter.wrapping_add_signed(by);
    }

    /// The receiver knows of this end: nothing is owed for it any more. Gives its number, if something was.
    pub fn take(&mut self, execution: ExecutionId) -> Option<u64> {
        let seq = self.by_execution.remove(&execution)?;
        let item = self.items.remove(&seq)?;
        self.count(&item, -1);
        Some(seq)
    }

    /// Takes in what is owed of these. Gives the executions whose ends were among them.
    pub fn acknowledge(&mut self, seqs: &[u64], by: Taker) -> Vec<ExecutionId> {
        let taken: Vec<(u64, Item)> = seqs.iter().filter_map(|seq| Some((*seq, self.take_item(*seq)?))).collect();
        if !taken.is_empty() && by.is_known() {
            if self.acked.len() == ACKS_REMEMBERED_MAX {
                self.acked.pop_front();
            }
            self.acked.push_back((by, taken.iter().map(|(seq, _)| *seq).collect()));
        }
        taken.into_iter().filter_map(|(_, item)| execution_of(&item)).collect()
    }

    /// What was acknowledged by the very same: a repeat gets the same answer, and nobody else takes it in once more.
    pub fn taken_in(&self, by: &Taker) -> BTreeSet<u64> {
        self.acked.iter().filter(|(taker, _)| taker.is(by)).flat_map(|(_, seqs)| seqs).copied().collect()
    }

    /// The receiver has taken this item in.
    pub fn take_item(&mut self, seq: u64) -> Option<Item> {
        let item = self.items.remove(&seq)?;
        self.count(&item, -1);
        if let Item::Completion { execution, .. } = &item {
            self.by_execution.remove(execution);
        }
        Some(item)
    }

    /// The receiver has taken in everything up to this number. Gives the executions whose ends it was told.
    pub fn take_to(&mut self, last: u64) -> Vec<ExecutionId> {
        let seqs: Vec<u64> = self.items.range(..=last).map(|(seq, _)| *seq).collect();
        seqs.into_iter().filter_map(|seq| self.take_item(seq)).filter_map(|item| execution_of(&item)).collect()
    }

    /// Everything, and nothing is owed any more; numbers go on.
    pub fn take_all(&mut self) -> Vec<Item> {
        let Self { next_seq, items, .. } = std::mem::take(self);
        self.next_seq = next_seq;
        items.into_values().collect()
    }

    /// What this child has said and the receiver has not read.
    pub fn take_words_of(&mut self, child: WorkerId) -> Vec<MessageId> {
        let of = |item: &Item| if let Item::ChildMessage { message, from } = item { (*from == child).then_some(*message) } else { None };
        let unread: Vec<(u64, MessageId)> = self.items.iter().filter_map(|(seq, item)| Some((*seq, of(item)?))).collect();
        for (seq, _) in &unread {
            self.take_item(*seq);
        }
        unread.into_iter().map(|(_, message)| message).collect()
    }

    /// A group of launches is held back no longer.
    pub fn release(&mut self, group: u64) {
        for item in self.items.values_mut() {
            if let Item::Completion { held, wakes, .. } = item
                && *held == Some(group)
            {
                *held = None;
                self.calls += u32::from(*wakes);
            }
        }
    }

    /// What came after an outcome is on time for the execution that it starts.
    pub fn on_time(&mut self) {
        for item in self.items.values_mut() {
            if let Item::LeadMessage { after_end, .. } = item {
                *after_end = false;
            }
        }
    }

    /// Whether words came after an outcome.
    pub fn has_late_words(&self) -> bool {
        self.words > 0 && self.late_words().next().is_some()
    }

    /// The words that came after an outcome, with their numbers.
    pub fn late_words(&self) -> impl Iterator<Item = (u64, MessageId)> + '_ {
        self.items.iter().filter_map(|(seq, item)| match item {
            Item::LeadMessage { message, after_end: true } => Some((*seq, *message)),
            Item::Task
            | Item::Completion { .. }
            | Item::LeadMessage { .. }
            | Item::ChildMessage { .. }
            | Item::Notice { .. }
            | Item::Undelivered { .. } => None,
        })
    }

    /// Whether nothing is owed.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Whether something owed is a reason to give the receiver a turn.
    pub fn wakes(&self, completions_wake: bool) -> bool {
        self.words > 0 || (completions_wake && self.calls > 0)
    }

    /// How many ends are owed.
    pub fn ends(&self) -> usize {
        self.by_execution.len()
    }

    /// Whether an end is owed that is not held back.
    pub fn has_ready_ends(&self) -> bool {
        self.ready().any(|(_, item)| matches!(item, Item::Completion { .. }))
    }

    /// How many messages are owed, the task included.
    pub fn words(&self) -> usize {
        self.words as usize
    }

    /// Whether this execution's end is owed.
    pub fn owes(&self, execution: ExecutionId) -> bool {
        self.by_execution.contains_key(&execution)
    }

    /// How many items.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// An item.
    pub fn get(&self, seq: u64) -> Option<&Item> {
        self.items.get(&seq)
    }

    /// The number of the newest item, 0 when nothing was ever owed.
    pub fn last_seq(&self) -> u64 {
        self.next_seq
    }

    /// How many ends are newer than this number.
    pub fn ends_after(&self, last: u64) -> usize {
        self.items.range(last.saturating_add(1)..).filter(|(_, item)| matches!(item, Item::Completion { .. })).count()
    }

    /// The items up to this number, in order.
    pub fn items_to(&self, last: u64) -> impl Iterator<Item = (u64, &Item)> + '_ {
        self.items.range(..=last).map(|(seq, item)| (*seq, item))
    }

    /// All items that are not held back, in order.
    pub fn ready(&self) -> impl Iterator<Item = (u64, &Item)> + '_ {
        self.items_to(u64::MAX).filter(|(_, item)| !matches!(item, Item::Completion { held: Some(_), .. }))
    }

    /// The children whose ends are owed, in the order of their ends.
    pub fn ended_children(&self) -> impl Iterator<Item = (WorkerId, ExecutionId)> + '_ {
        self.items.values().filter_map(|item| match item {
            Item::Completion { child, execution, .. } => Some((*child, *execution)),
            Item::Task | Item::LeadMessage { .. } | Item::ChildMessage { .. } | Item::Notice { .. } | Item::Undelivered { .. } => None,
        })
    }
}

fn execution_of(item: &Item) -> Option<ExecutionId> {
    if let Item::Completion { execution, .. } = item { Some(*execution) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taker(pid: Option<u32>, request: Option<&str>) -> Taker {
        let process = pid.map(|pid| ProcessIdentity { pid, start_ticks: 1 });
        Taker { process, request_id: request.map(str::to_owned) }
    }

    fn end(number: u64) -> Item {
        Item::Completion { child: WorkerId(number), execution: ExecutionId(number), wakes: true, held: None }
    }

    #[test]
    fn an_item_goes_once_however_it_goes() {
        let mut outbox = Outbox::default();
        (1..=4).for_each(|number| outbox.push(end(number)));
        assert!(outbox.take(ExecutionId(2)) == Some(2) && outbox.take(ExecutionId(2)).is_none());
        assert_eq!(outbox.take_to(3), [ExecutionId(1), ExecutionId(3)]);
        assert_eq!(outbox.items_to(u64::MAX).map(|(seq, _)| seq).collect::<Vec<_>>(), [4]);
        assert!(!outbox.owes(ExecutionId(3)) && outbox.owes(ExecutionId(4)) && outbox.wakes(true));
        assert!(outbox.take_item(4).is_some() && outbox.take_item(4).is_none());
        assert_eq!((outbox.last_seq(), outbox.ends(), outbox.wakes(true)), (4, 0, false));
    }

    #[test]
    fn only_a_repeat_of_an_acknowledgement_gets_its_answer() {
        let mut outbox = Outbox::default();
        (1..=4).for_each(|number| outbox.push(end(number)));
        outbox.take(ExecutionId(2));
        assert_eq!(outbox.acknowledge(&[1, 2, 3], taker(Some(7), Some("a"))), [ExecutionId(1), ExecutionId(3)]);
        assert_eq!(outbox.acknowledge(&[4], taker(None, None)), [ExecutionId(4)]);
        let taken = |by| outbox.taken_in(&by).into_iter().collect::<Vec<_>>();
        assert_eq!((taken(taker(Some(7), None)), taken(taker(None, Some("a")))), (vec![1, 3], vec![1, 3]));
        assert_eq!((taken(taker(Some(8), Some("b"))), taken(taker(None, None))), (vec![], vec![]));
    }

    #[test]
    fn what_takes_nothing_or_cannot_be_repeated_displaces_no_acknowledgement() {
        let mut outbox = Outbox::default();
        let rounds = ACKS_REMEMBERED_MAX as u64;
        (1..=2 * rounds).for_each(|number| outbox.push(end(number)));
        (1..=rounds).for_each(|seq| assert_eq!(outbox.acknowledge(&[seq], taker(Some(7), None)).len(), 1));
        for seq in 1..=rounds {
            assert_eq!(outbox.acknowledge(&[seq], taker(Some(8), Some("late"))), []);
            assert_eq!(outbox.acknowledge(&[rounds + seq], taker(None, None)).len(), 1);
        }
        assert!(outbox.taken_in(&taker(Some(7), None)).into_iter().eq(1..=rounds));
        assert_eq!(outbox.acked.len(), ACKS_REMEMBERED_MAX);
    }

    #[test]
    fn only_words_and_ends_that_are_not_held_back_wake() {
        let mut outbox = Outbox::default();
        outbox.push(Item::Completion { child: WorkerId(1), execution: ExecutionId(1), wakes: true, held: Some(7) });
        outbox.push(Item::Completion { child: WorkerId(2), execution: ExecutionId(2), wakes: false, held: None });
        outbox.push(Item::Notice { from: WorkerId(3), execution: ExecutionId(3), text: None });
        assert!(!outbox.wakes(true));
        outbox.release(7);
        assert!(outbox.wakes(true) && !outbox.wakes(false));
        outbox.push(Item::LeadMessage { message: MessageId(1), after_end: false });
        assert!(outbox.wakes(false));
        outbox.take_item(outbox.last_seq());
        assert!(!outbox.wakes(false));
    }

    #[test]
    fn a_newer_notice_takes_the_place_of_the_older_one() {
        let mut outbox = Outbox::default();
        let notice = |from| Item::Notice { from: WorkerId(from), execution: ExecutionId(1), text: None };
        outbox.push(notice(1));
        outbox.push(notice(2));
        outbox.push(notice(1));
        assert_eq!(outbox.ready().map(|(seq, _)| seq).collect::<Vec<_>>(), [2, 3]);
    }
}
