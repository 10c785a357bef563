//! Words, deliveries and usage in the second book-keeping.

use std::collections::{BTreeMap, BTreeSet};

use roost_core::event::{Owner, Sent, Spoken as Event};
use roost_core::state::State;
use roost_core::state::outbox::Item as Owed;
use roost_proto::id::{Epoch, ExecutionId, MessageId, TreeId, WorkerId};
use roost_proto::usage::{Usage, UsageReport};

use super::super::Checked;
use super::Model;
use super::stream::Stage;

/// What is owed to one lead or worker.
#[derive(Debug, Clone, Default)]
pub(super) struct MailBox {
    next: u64,
    pub(super) items: BTreeMap<u64, Item>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Item {
    Task,
    End(ExecutionId),
    /// Words of the lead; late ones are for the next execution.
    Lead(MessageId, bool),
    Child(MessageId, WorkerId),
    Notice(WorkerId),
    Back(MessageId),
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Owed,
    Read,
    Back,
    /// Its receiver ended, and so had its sender.
    Gone,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Spoken {
    pub(super) boxes: BTreeMap<(TreeId, Owner), MailBox>,
    words: BTreeMap<MessageId, (Owner, Fate)>,
    leases: BTreeMap<(TreeId, Owner), u64>,
    /// The process that has the lease of a root, in the place of an epoch.
    speakers: BTreeMap<TreeId, Epoch>,
    /// The newest report of each process.
    used: BTreeMap<(TreeId, Owner, Epoch), UsageReport>,
    /// What each execution has used in each of its processes.
    spent: BTreeMap<(ExecutionId, Epoch), Usage>,
    /// Ends that were told.
    pub(super) told: BTreeSet<ExecutionId>,
    /// The same in the order in which they were, with who was told.
    taken: Vec<(TreeId, Owner, ExecutionId)>,
    /// Plain commands.
    pub(super) plain: BTreeSet<WorkerId>,
    pub(super) numbers: BTreeMap<TreeId, u64>,
    pub(super) stages: BTreeMap<ExecutionId, Stage>,
}

impl Model {
    pub(super) fn push(&mut self, tree: TreeId, owner: Owner, item: Item) {
        let of = self.spoken.boxes.entry((tree, owner)).or_default();
        of.next += 1;
        if let Item::Notice(_) = item {
            of.items.retain(|_, old| *old != item);
        }
        of.items.insert(of.next, item);
    }

    /// A process is about to be handed all that its worker is owed.
    pub(super) fn hands_over(&mut self, worker: WorkerId) {
        let Some(known) = self.workers.get_mut(&worker) else { return };
        let of = self.spoken.boxes.get(&(known.tree, Owner::Worker(worker)));
        known.wakes = Some(of.map_or(0, |of| of.next));
    }

    /// A plain command has read what it was handed by its start.
    pub(super) fn handed_over(&mut self, worker: WorkerId) -> Checked {
        let known = self.worker(worker)?;
        let (tree, wakes) = (known.tree, known.wakes.take());
        let Some(last) = wakes.filter(|_| self.spoken.plain.contains(&worker)) else { return Ok(()) };
        let of = self.spoken.boxes.entry((tree, Owner::Worker(worker))).or_default();
        let seqs: Vec<u64> = of.items.range(..=last).map(|(seq, _)| *seq).collect();
        self.taken_in(tree, Owner::Worker(worker), &seqs)
    }

    fn taken_in(&mut self, tree: TreeId, owner: Owner, seqs: &[u64]) -> Checked {
        for seq in seqs {
            let of = self.spoken.boxes.entry((tree, owner)).or_default();
            match of.items.remove(seq) {
                None => return Err(format!("{owner:?} takes in item {seq}, which it is not owed (I10)")),
                Some(Item::End(execution)) => self.end_told(tree, owner, execution)?,
                Some(Item::Lead(message, _) | Item::Child(message, _)) => self.fate(message, Fate::Read)?,
                Some(Item::Task | Item::Notice(_) | Item::Back(_)) => {}
            }
        }
        Ok(())
    }

    fn end_told(&mut self, tree: TreeId, owner: Owner, execution: ExecutionId) -> Checked {
        if !self.spoken.told.insert(execution) {
            return Err(format!("the end of {execution} is told twice (I10)"));
        }
        self.spoken.taken.push((tree, owner, execution));
        Ok(())
    }

    fn fate(&mut self, message: MessageId, fate: Fate) -> Checked {
        match self.spoken.words.get_mut(&message) {
            Some((_, old)) if *old == Fate::Owed => {
                *old = fate;
                Ok(())
            }
            other => Err(format!("{message} is {fate:?} and was {other:?} (I10)")),
        }
    }

    /// Ends that a lead was told by the answer of a call.
    pub(super) fn consumed(&mut self, tree: TreeId, owner: Owner, workers: &[WorkerId], earlier: &[ExecutionId]) {
        let current = workers.iter().filter_map(|worker| Some(self.workers.get(worker)?.execution));
        let executions: Vec<ExecutionId> = earlier.iter().copied().chain(current).collect();
        self.read(tree, owner, &executions);
    }

    fn read(&mut self, tree: TreeId, owner: Owner, executions: &[ExecutionId]) {
        let of = self.spoken.boxes.entry((tree, owner)).or_default();
        of.items.retain(|_, item| !matches!(item, Item::End(execution) if executions.contains(execution)));
        for execution in executions {
            if self.spoken.told.insert(*execution) {
                self.spoken.taken.push((tree, owner, *execution));
            }
        }
    }

    /// A worker has ended: what it has not read goes back to who has said it, or waits for its next execution.
    pub(super) fn unread(&mut self, worker: WorkerId, tree: TreeId, owner: Owner) -> Checked {
        let of = self.spoken.boxes.entry((tree, Owner::Worker(worker))).or_default();
        let left: Vec<Item> = std::mem::take(&mut of.items).into_values().collect();
        for item in left {
            match item {
                Item::Lead(_, true) => self.push(tree, Owner::Worker(worker), item),
                Item::Lead(message, false) => {
                    self.fate(message, Fate::Back)?;
                    self.push(tree, owner, Item::Back(message));
                }
                // Who has said it has ended before, and needs no word of it.
                Item::Child(message, from) if self.workers.get(&from).is_some_and(|from| from.outcome.is_none()) => {
                    return Err(format!("{message} of {from} is dropped, and {from} goes on (I10)"));
                }
                Item::Child(message, _) => self.fate(message, Fate::Gone)?,
                Item::Task | Item::End(_) | Item::Notice(_) | Item::Back(_) => {}
            }
        }
        Ok(())
    }

    /// A worker has another lead: what the old one has not read of its words comes back.
    pub(super) fn reowned(&mut self, worker: WorkerId, owner: Owner) -> Checked {
        let known = self.worker(worker)?;
        let (tree, old) = (known.tree, std::mem::replace(&mut known.owner, owner));
        let of = self.spoken.boxes.entry((tree, old)).or_default();
        let said = |item: &Item| if let Item::Child(message, from) = item { (*from == worker).then_some(*message) } else { None };
        let unread: Vec<MessageId> = of.items.values().filter_map(said).collect();
        of.items.retain(|_, item| said(item).is_none());
        for message in unread {
            self.fate(message, Fate::Back)?;
            self.push(tree, Owner::Worker(worker), Item::Back(message));
        }
        Ok(())
    }

    pub(super) fn spoken(&mut self, spoken: &Event) -> Checked {
        match spoken {
            Event::ResumeAccepted { worker, execution, .. } => {
                let known = self.worker(*worker)?;
                let Some(outcome) = known.outcome.take() else { return Err(format!("{worker} is resumed and has not ended (I6)")) };
                known.past.push((known.execution, outcome));
                known.execution = *execution;
                known.answered = None;
                (known.started, known.parked, known.stopping, known.ready, known.at_once) = (false, false, false, None, false);
                let (tree, owner) = (known.tree, known.owner);
                if let Owner::Worker(lead) = owner
                    && self.worker(lead).is_ok_and(|lead| lead.stopping || lead.outcome.is_some())
                {
                    return Err(format!("{worker} is resumed below {lead}, which is being stopped or has ended (I13)"));
                }
                let of = self.spoken.boxes.entry((tree, Owner::Worker(*worker))).or_default();
                for item in of.items.values_mut() {
                    if let Item::Lead(_, late) = item {
                        *late = false;
                    }
                }
            }
            Event::LeaseTaken { tree, owner, lease, process, .. } => {
                if let (Owner::Root, Some(process)) = (owner, process) {
                    self.spoken.speakers.insert(*tree, Epoch(process.pid));
                }
                let before = self.spoken.leases.insert((*tree, *owner), *lease).unwrap_or(0);
                if *lease != before + 1 {
                    return Err(format!("{owner:?}: lease {lease} follows on {before}"));
                }
            }
            Event::UsageReported { tree, owner, report } => {
                let speaker = self.spoken.speakers.get(tree).copied().unwrap_or_default();
                let epoch = if let Owner::Worker(worker) = owner {
                    let known = self.worker(*worker)?;
                    let (execution, epoch) = (known.execution, known.epoch);
                    self.spoken.spent.insert((execution, epoch), report.usage);
                    epoch
                } else {
                    speaker
                };
                let before = self.spoken.used.insert((*tree, *owner, epoch), *report);
                if before.is_some_and(|before| before.sequence >= report.sequence) {
                    return Err(format!("{owner:?}: a report counts twice (I14)"));
                }
            }
            Event::Settled { worker, .. } => {
                let known = self.worker(*worker)?;
                let (tree, owner) = (known.tree, known.owner);
                self.push(tree, owner, Item::Notice(*worker));
            }
            Event::Acked { tree, owner, items, .. } => self.taken_in(*tree, *owner, items)?,
            Event::Read { tree, owner, executions } => self.read(*tree, *owner, executions),
            Event::WordsReturned { worker, messages } => {
                let known = self.worker(*worker)?;
                let (tree, owner) = (known.tree, known.owner);
                let of = self.spoken.boxes.entry((tree, Owner::Worker(*worker))).or_default();
                let late: Vec<MessageId> =
                    of.items.values().filter_map(|item| if let Item::Lead(message, true) = item { Some(*message) } else { None }).collect();
                of.items.retain(|_, item| !matches!(item, Item::Lead(_, true)));
                if late != *messages {
                    return Err(format!("{messages:?} come back from {worker}, and {late:?} were to (V4)"));
                }
                for message in late {
                    self.fate(message, Fate::Back)?;
                    self.push(tree, owner, Item::Back(message));
                }
            }
            Event::Answered { worker, outcome, .. } => self.worker(*worker)?.answered = Some(outcome.clone()),
            Event::AllowanceSet { worker, allowance } => self.allowance_set(*worker, *allowance)?,
            Event::WordsSent { .. }
            | Event::StopTaken { .. }
            | Event::Busy { .. }
            | Event::HoldOver { .. }
            | Event::Said { .. }
            | Event::StartupOver { .. }
            | Event::GroupReleased { .. } => {}
        }
        Ok(())
    }

    /// Words were accepted: never for whoever cannot read them.
    pub(super) fn words_sent(&mut self, tree: TreeId, from: Owner, to: Owner, sent: Sent, message: MessageId) -> Checked {
        if let Owner::Worker(to) = to {
            let known = self.worker(to)?;
            let ended = known.outcome.is_some();
            if (!ended && (known.parked || known.stopping)) || ended != matches!(sent, Sent::Resumes(_)) {
                return Err(format!(
                    "{message} is accepted for {to}, which is parked {}, stopped {}, ended {ended} (K23)",
                    known.parked, known.stopping
                ));
            }
        }
        let item = match (sent, from) {
            (Sent::ToLead, Owner::Worker(from)) => Item::Child(message, from),
            (Sent::ToLead, Owner::Root) => return Err("the root tells its lead something".into()),
            (Sent::AfterEnd(_), _) => Item::Lead(message, true),
            (Sent::Steering(_) | Sent::Resumes(_), _) => Item::Lead(message, false),
        };
        self.spoken.words.insert(message, (from, Fate::Owed));
        self.push(tree, to, item);
        Ok(())
    }

    /// A raised allowance is reserved from who launched the worker; nothing is refunded.
    fn allowance_set(&mut self, worker: WorkerId, allowance: u64) -> Checked {
        let known = self.worker(worker)?;
        let (tree, launcher) = (known.tree, known.launcher);
        let high = known.high.max(allowance);
        let cost = high - std::mem::replace(&mut known.high, high);
        let (limit, reserved) = self.ledgers.entry((tree, Owner::Worker(worker))).or_default();
        *limit = allowance;
        if *reserved > *limit {
            return Err(format!("{worker} has given out {reserved} of {limit} (I11)"));
        }
        let (limit, reserved) = self.ledgers.entry((tree, launcher)).or_default();
        *reserved += cost;
        if *reserved > *limit { Err(format!("{launcher:?} has reserved more than its budget (I11)")) } else { Ok(()) }
    }

    /// A report that was answered counts.
    pub(crate) fn has_used(&self, tree: Option<TreeId>, owner: Owner, epoch: Epoch, report: UsageReport) -> Checked {
        let Some(tree) = tree else { return Ok(()) };
        match self.spoken.used.get(&(tree, owner, epoch)) {
            Some(known) if known.sequence >= report.sequence && known.usage.input >= report.usage.input => Ok(()),
            other => Err(format!("{owner:?}: {report:?} was answered and counts as {other:?} (I14)")),
        }
    }

    /// What an execution has used.
    pub(crate) fn usage_of(&self, execution: ExecutionId) -> Usage {
        let of = self.spoken.spent.range((execution, Epoch(0))..=(execution, Epoch(u32::MAX)));
        of.fold(Usage::default(), |sum, (_, usage)| sum.with(*usage))
    }

    /// What the root of a tree has used itself.
    pub(crate) fn usage_of_root(&self, tree: TreeId) -> Usage {
        let of = self.spoken.used.range((tree, Owner::Root, Epoch(0))..=(tree, Owner::Root, Epoch(u32::MAX)));
        of.fold(Usage::default(), |sum, (_, report)| sum.with(report.usage))
    }

    /// The executions whose end this lead was told, in the order in which it was.
    pub(crate) fn taken_by(&self, tree: TreeId, owner: Owner) -> Vec<ExecutionId> {
        self.spoken.taken.iter().filter(|(of, lead, _)| (*of, *lead) == (tree, owner)).map(|(.., execution)| *execution).collect()
    }

    pub(super) fn compare_spoken(&self, state: &State) -> Checked {
        for ((tree, owner), of) in &self.spoken.boxes {
            let Some(lead) = state.lead(*tree, *owner) else { continue };
            let owed: Vec<(u64, Item)> = lead.outbox.items_to(u64::MAX).map(|(seq, item)| (seq, item_of(item))).collect();
            if owed != of.items.iter().map(|(seq, item)| (*seq, *item)).collect::<Vec<_>>() {
                return Err(format!("{owner:?} is owed {owed:?} and not {:?} (I10)", of.items));
            }
        }
        for (tree, number) in &self.spoken.numbers {
            if state.trees.get(tree).is_some_and(|tree| tree.events != *number) {
                return Err(format!("{tree}: its stream has {number} events, and it counts others (V4)"));
            }
        }
        self.compare_usage(state)
    }

    /// Own is what its processes have reported; the total of a tree is the sum of all of them (I14).
    fn compare_usage(&self, state: &State) -> Checked {
        let mut own: BTreeMap<(TreeId, Owner), Usage> = BTreeMap::new();
        let mut total: BTreeMap<(TreeId, Owner), Usage> = BTreeMap::new();
        for ((tree, owner, _), report) in &self.spoken.used {
            let of = own.entry((*tree, *owner)).or_default();
            *of = of.with(report.usage);
            let mut up = Some(*owner);
            while let Some(at) = up {
                let of = total.entry((*tree, at)).or_default();
                *of = of.with(report.usage);
                up = if let Owner::Worker(worker) = at { self.workers.get(&worker).map(|known| known.owner) } else { None };
            }
        }
        for ((tree, owner), expected) in &total {
            let accounts = match owner {
                Owner::Root => state.trees.get(tree).map(|tree| tree.accounts.clone()),
                Owner::Worker(worker) => state.workers.get(worker).map(|worker| worker.accounts.as_deref().cloned().unwrap_or_default()),
            };
            let Some(accounts) = accounts else { continue };
            let mine = own.get(&(*tree, *owner)).copied().unwrap_or_default();
            if accounts.own() != mine || accounts.total() != *expected {
                return Err(format!("{owner:?} has used {:?} of {:?}, and counts {accounts:?} (I14)", mine, expected));
            }
        }
        Ok(())
    }

    /// At the end of everything no message is owed to a worker (I10).
    pub(crate) fn words_are_settled(&self) -> Checked {
        for ((_, owner), of) in &self.spoken.boxes {
            let words = of.items.values().find(|item| matches!(item, Item::Lead(..) | Item::Child(..)));
            if let (Owner::Worker(worker), Some(item)) = (owner, words) {
                return Err(format!("{worker} has ended and is owed {item:?} (I10)"));
            }
        }
        Ok(())
    }
}

fn item_of(item: &Owed) -> Item {
    match item {
        Owed::Task => Item::Task,
        Owed::Completion { execution, .. } => Item::End(*execution),
        Owed::LeadMessage { message, after_end } => Item::Lead(*message, *after_end),
        Owed::ChildMessage { message, from } => Item::Child(*message, *from),
        Owed::Notice { from, .. } => Item::Notice(*from),
        Owed::Undelivered { message, .. } => Item::Back(*message),
    }
}
