//! All that the view knows and where somebody looks: news come in, orders go out. Pure: no clock, no terminal, no connection.

use std::collections::{HashMap, VecDeque};

use roost::proto::id::{ExecutionId, WorkerId};
use roost::proto::message::events::NumberedEvent;
use roost::proto::message::status::WorkerStatus;
use roost::proto::usage::UsageTotals;
use roost::rows::{Row, Rows};

use super::calls::Wish;
use super::editor::Editor;
use super::layout::{Areas, Focus};
use super::pane::{Pane, Tab};
use super::words;

/// While something runs, what it costs is asked for once in so many seconds.
const USAGE_EVERY: u64 = 5;

/// What is to be done outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// The end.
    Leave,
    /// A call.
    Wish(Wish),
    /// These files from now on; the number comes back with each piece.
    Follow(u64, What),
    /// What happened before.
    History,
}

/// Which files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// Those that a worker writes.
    Files(Vec<String>),
    /// A transcript.
    Transcript(ExecutionId),
}

/// What keys mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    Look,
    Search(Editor),
    /// Words to this child.
    Write(WorkerId, Editor),
    /// Is this child to be stopped?
    Confirm(WorkerId),
    Help,
}

/// How the connection is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Link {
    Up,
    Lost,
    /// There is nobody; why.
    NoDaemon(String),
    /// Nothing more will come; why.
    Over(String),
}

/// The view.
pub struct View {
    pub rows: Rows,
    pub totals: UsageTotals,
    pub link: Link,
    pub now_ms: u64,
    pub size: (u16, u16),
    pub focus: Focus,
    pub zoomed: bool,
    pub active_only: bool,
    pub mode: Mode,
    /// The last word, and whether it is a complaint.
    pub said: Option<(String, bool)>,
    pub pane: Pane,
    /// What the daemon says of the worker that is selected.
    pub details: Option<WorkerStatus>,
    pub selected: Option<WorkerId>,
    /// Which rows there are to see, and how deep they are.
    pub shown: Vec<(WorkerId, usize)>,
    /// The first of them that is on the screen.
    pub first: usize,
    pub(super) searched: String,
    pub(super) drafts: HashMap<WorkerId, String>,
    pub(super) events: HashMap<WorkerId, VecDeque<NumberedEvent>>,
    pub(super) asked_history: bool,
    pub(super) following: (u64, Option<What>),
    pub(super) stale: bool,
    ticks: u64,
}

impl View {
    /// Of a tree.
    pub fn new(rows: Rows, totals: UsageTotals, now_ms: u64, size: (u16, u16)) -> Self {
        let mut view = Self {
            rows,
            totals,
            link: Link::Up,
            now_ms,
            size,
            focus: Focus::Tree,
            zoomed: false,
            active_only: false,
            mode: Mode::Look,
            said: None,
            pane: Pane::new(Tab::Output),
            details: None,
            selected: None,
            shown: Vec::new(),
            first: 0,
            searched: String::new(),
            drafts: HashMap::new(),
            events: HashMap::new(),
            asked_history: false,
            following: (0, None),
            stale: true,
            ticks: 0,
        };
        view.refresh();
        view
    }

    /// What is to be asked before anything happens.
    pub fn begin(&mut self) -> Vec<Order> {
        self.select(self.shown.first().map(|(worker, _)| *worker))
    }

    /// Where everything is on the screen.
    pub fn areas(&self) -> Areas {
        Areas::of(self.size, self.focus, self.zoomed)
    }

    /// The row that is selected.
    pub fn row(&self) -> Option<&Row> {
        self.rows.get(self.selected?)
    }

    /// Whether a clock on the screen goes on.
    pub fn ticks(&self) -> bool {
        self.rows.is_active()
    }

    /// A second is over.
    pub fn tick(&mut self, now_ms: u64) -> Vec<Order> {
        self.now_ms = now_ms;
        self.ticks += 1;
        if self.ticks.is_multiple_of(USAGE_EVERY) && self.link == Link::Up { vec![self.ask_usage()] } else { Vec::new() }
    }

    pub(super) fn ask_usage(&self) -> Order {
        Order::Wish(Wish::Usage(self.row().map(|row| (row.worker, row.name.clone()))))
    }

    /// Selects a worker.
    pub fn select(&mut self, worker: Option<WorkerId>) -> Vec<Order> {
        if worker.is_none() || worker == self.selected {
            return Vec::new();
        }
        self.selected = worker;
        self.details = None;
        self.following.1 = None;
        self.open(self.pane.tab);
        self.look()
    }

    /// Shows something else of the worker.
    pub fn show(&mut self, tab: Tab) -> Vec<Order> {
        self.following.1 = None;
        self.open(tab);
        let mut orders = self.follow();
        if tab == Tab::Events && !std::mem::replace(&mut self.asked_history, true) {
            orders.push(Order::History);
        }
        orders
    }

    fn open(&mut self, tab: Tab) {
        self.pane.clear(tab, false);
        // Pieces of what was followed before are on their way.
        self.following.0 += 1;
        if tab == Tab::Events {
            self.show_events();
        }
    }

    pub(super) fn show_events(&mut self) {
        self.pane.clear(Tab::Events, false);
        for event in self.selected.and_then(|worker| self.events.get(&worker)).into_iter().flatten() {
            self.pane.push(words::event(event));
        }
    }

    pub(super) fn look(&self) -> Vec<Order> {
        self.row().map(|row| Order::Wish(Wish::Look(row.worker, row.name.clone()))).into_iter().collect()
    }

    /// Follows the files of the worker, once they are known, and again when there are others.
    pub(super) fn follow(&mut self) -> Vec<Order> {
        let Some(details) = &self.details else { return Vec::new() };
        let what = match self.pane.tab {
            Tab::Output => What::Files(details.stdout_paths.clone()),
            Tab::Errors => What::Files(details.stderr_paths.clone()),
            Tab::Conversation => What::Transcript(details.execution),
            Tab::Events => return Vec::new(),
        };
        if self.following.1.as_ref() == Some(&what) {
            return Vec::new();
        }
        self.pane.clear(self.pane.tab, false);
        self.following = (self.following.0 + 1, Some(what.clone()));
        vec![Order::Follow(self.following.0, what)]
    }

    /// Brings the list of rows up to date; who was selected stays so.
    pub fn refresh(&mut self) {
        if !std::mem::take(&mut self.stale) {
            return;
        }
        let order = self.rows.order().to_vec();
        let wanted = |worker: &WorkerId| !self.active_only || self.rows.get(*worker).is_some_and(|row| !row.has_ended());
        self.shown = order.into_iter().filter(|(worker, _)| wanted(worker) || self.selected == Some(*worker)).collect();
        self.bring_into_sight();
    }

    /// The list has to be made anew.
    pub fn rearrange(&mut self) {
        self.stale = true;
        self.refresh();
    }

    /// Where the selected row is in the list.
    pub fn index(&self) -> Option<usize> {
        self.shown.iter().position(|(worker, _)| Some(*worker) == self.selected)
    }

    /// Scrolls as little as it takes.
    pub fn bring_into_sight(&mut self) {
        let height = self.areas().rows_of_tree().max(1);
        if let Some(index) = self.index() {
            self.first = self.first.clamp((index + 1).saturating_sub(height), index);
        }
        self.first = self.first.min(self.shown.len().saturating_sub(height));
    }
}
