//! What a worker has used: contract section 11. Reports are cumulative over one process, so a repeat or an older one changes nothing.

use std::collections::VecDeque;

use roost_proto::limits::ROOT_PROCESSES_REMEMBERED_MAX;
use roost_proto::link::ProcessIdentity;
use roost_proto::usage::{Usage, UsageReport};
use serde::{Deserialize, Serialize};

use crate::older;

/// The books of one worker, or of a root.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Accounts {
    /// What processes before the current one have used, over all executions.
    past: Usage,
    /// What the current process has reported.
    current: Usage,
    /// The number of that report.
    sequence: u64,
    /// Which process that is, of a root's, which may have several that take turns.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "older::some_process")]
    speaker: Option<ProcessIdentity>,
    /// The last of the others, and what they have reported: it is counted as past.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    others: VecDeque<Reported>,
    /// All that descendants have used.
    pub below: Usage,
    /// A process was ended before it could say the last of it.
    pub partial: bool,
    /// The same of some descendant.
    pub partial_below: bool,
    /// The context size last reported: a snapshot.
    pub context_tokens: Option<u64>,
}

/// The newest report of one process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Reported {
    #[serde(alias = "pid", deserialize_with = "older::process")]
    process: ProcessIdentity,
    usage: Usage,
    sequence: u64,
}

/// Why a report is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// A counter is less than the report before said.
    Shrunk,
    /// A counter is out of range, alone or added to the rest.
    TooLarge,
}

impl Accounts {
    /// What the worker itself has used.
    pub fn own(&self) -> Usage {
        self.past.with(self.current)
    }

    /// With all below it.
    pub fn total(&self) -> Usage {
        self.own().with(self.below)
    }

    /// What a report adds; `None` when it is no newer than the last one.
    pub fn added(&self, report: &UsageReport) -> Result<Option<Usage>, Refused> {
        if report.sequence <= self.sequence {
            return Ok(None);
        }
        if !report.usage.is_bounded() || self.past.plus(report.usage).is_none() {
            return Err(Refused::TooLarge);
        }
        report.usage.minus(self.current).map(Some).ok_or(Refused::Shrunk)
    }

    /// Takes a report that adds something.
    pub fn take(&mut self, report: &UsageReport) {
        self.current = report.usage;
        self.sequence = report.sequence;
        if report.context_tokens.is_some() {
            self.context_tokens = report.context_tokens;
        }
    }

    /// A new process counts from 0.
    pub fn turn_over(&mut self) {
        self.past = self.past.with(self.current);
        self.current = Usage::default();
        self.sequence = 0;
    }

    /// From here on this process of the root's reports. One that is new counts from 0, one that comes back goes on where it was.
    pub fn spoken_for_by(&mut self, process: ProcessIdentity) {
        let Some(speaker) = self.speaker.replace(process).filter(|speaker| !older::is_same(process, *speaker)) else { return };
        let back = self.others.iter().position(|other| older::is_same(process, other.process)).and_then(|index| self.others.remove(index));
        if self.others.len() == ROOT_PROCESSES_REMEMBERED_MAX {
            self.others.pop_front();
        }
        self.others.push_back(Reported { process: speaker, usage: self.current, sequence: self.sequence });
        self.turn_over();
        let Some(Reported { usage, sequence, .. }) = back else { return };
        // A book that does not add up loses nothing: the process counts as a new one.
        if let Some(past) = self.past.minus(usage) {
            self.past = past;
            (self.current, self.sequence) = (usage, sequence);
        }
    }

    /// Descendants have used this much more.
    pub fn add_below(&mut self, added: Usage) {
        self.below = self.below.with(added);
    }

    /// A descendant with all below it belongs to somebody else.
    pub fn take_below(&mut self, moved: Usage) {
        self.below = self.below.minus(moved).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(sequence: u64, input: u64) -> UsageReport {
        UsageReport { sequence, usage: Usage { input, ..Usage::default() }, context_tokens: None }
    }

    /// What they have used altogether once this process has said this.
    fn says(accounts: &mut Accounts, pid: u32, sequence: u64, input: u64) -> u64 {
        accounts.spoken_for_by(ProcessIdentity { pid, start_ticks: 1 });
        let report = report(sequence, input);
        if accounts.added(&report).unwrap().is_some() {
            accounts.take(&report);
        }
        accounts.own().input
    }

    #[test]
    fn repeats_and_older_reports_change_nothing() {
        let mut accounts = Accounts::default();
        for (sequence, input) in [(1, 10), (3, 30), (2, 20), (3, 30)] {
            let report = report(sequence, input);
            if accounts.added(&report).unwrap().is_some() {
                accounts.take(&report);
            }
        }
        assert_eq!(accounts.own().input, 30);
        accounts.turn_over();
        accounts.take(&report(1, 5));
        assert_eq!((accounts.own().input, accounts.partial), (35, false));
        assert_eq!(accounts.added(&report(2, 4)), Err(Refused::Shrunk));
        assert_eq!(accounts.added(&report(2, u64::MAX)), Err(Refused::TooLarge));
    }

    #[test]
    fn every_process_of_a_root_counts_once() {
        let mut accounts = Accounts::default();
        let mut says = |pid, sequence, input| says(&mut accounts, pid, sequence, input);
        assert_eq!((says(7, 1, 100), says(7, 2, 150)), (100, 150));
        // Another one counts from 0, and from 1; the first one comes back with what it had.
        assert_eq!((says(8, 1, 10), says(7, 2, 150), says(7, 3, 200)), (160, 160, 210));
        assert_eq!((says(8, 1, 10), says(8, 2, 20)), (210, 220));
        for pid in 9..100 {
            says(pid, 1, 1);
        }
        assert_eq!(accounts.own().input, 311);
        assert_eq!(accounts.others.len(), ROOT_PROCESSES_REMEMBERED_MAX);
    }

    #[test]
    fn whoever_comes_back_just_before_it_is_forgotten_counts_once() {
        let mut accounts = Accounts::default();
        for pid in 0..=8 {
            says(&mut accounts, pid, 1, 10);
        }
        assert_eq!((accounts.others.len(), accounts.others[0].process.pid), (ROOT_PROCESSES_REMEMBERED_MAX, 0));
        assert_eq!((says(&mut accounts, 0, 1, 10), says(&mut accounts, 0, 2, 15)), (90, 95));
        assert_eq!((says(&mut accounts, 1, 1, 10), accounts.others.len()), (95, ROOT_PROCESSES_REMEMBERED_MAX));
    }

    #[test]
    fn a_pid_that_is_used_once_more_is_another_process() {
        let mut accounts = Accounts::default();
        says(&mut accounts, 7, 3, 100);
        accounts.spoken_for_by(ProcessIdentity { pid: 7, start_ticks: 2 });
        let first = report(1, 10);
        assert_eq!(accounts.added(&first).map(|added| added.map(|added| added.input)), Ok(Some(10)));
        accounts.take(&first);
        assert_eq!(accounts.own().input, 110);
    }

    #[test]
    fn a_book_that_does_not_add_up_loses_nothing() {
        let mut accounts = Accounts::default();
        says(&mut accounts, 7, 1, 100);
        says(&mut accounts, 8, 1, 10);
        accounts.others[0].usage.input = 1_000;
        assert_eq!((says(&mut accounts, 7, 1, 5), accounts.others.len()), (115, 1));
    }
}
