//! What is counted of the daemon's work, as OpenMetrics text. An observer: it decides nothing, and is gone with its broker.
//!
//! Counters begin at the start of the broker. What is so many at a moment is read from the state when somebody asks.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Metric, Registry, Unit};
use roost_core::broker::Outcome as Stepped;
use roost_core::command::{Command, Speak};
use roost_core::event::{Event, Grant, Record};
use roost_core::state::State;
use roost_proto::outcome::Outcome;
use roost_proto::usage::Usage;

/// From a tenth of a millisecond to three seconds.
const COMMIT_BUCKETS: (f64, f64, u16) = (0.0001, 2.0, 16);
const NANOS: f64 = 1e9;

/// A label and its value.
type Label = [(&'static str, &'static str); 1];
type Counters = Family<Label, Counter>;
type Gauges = Family<Label, Gauge>;
type Float = Gauge<f64, AtomicU64>;

/// All of them.
pub struct Metrics {
    registry: Registry,
    admissions: Counter,
    wakes: Counters,
    parks: Counters,
    ended: Counters,
    commit: Histogram,
    trees: Gauge,
    workers: Gauges,
    connections: Gauge,
    outbox: Gauge,
    tokens: Gauges,
    cost: Float,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

impl Metrics {
    /// None of anything so far.
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("roost");
        let (start, factor, count) = COMMIT_BUCKETS;
        let commit = Histogram::new(exponential_buckets(start, factor, count));
        registry.register_with_unit("commit", "How long a commit of the journal took", Unit::Seconds, commit.clone());
        let to = &mut registry;
        Self {
            admissions: one_of(to, "admissions", "Slots granted to heads of the queue"),
            wakes: one_of(
                to,
                "wakes",
                "Slots granted to parked workers: promoted ones went before the queue, which had passed them over too often",
            ),
            parks: one_of(to, "parks", "Requests to park, and what came of them"),
            ended: one_of(to, "executions_ended", "Executions that have ended, by outcome"),
            trees: one_of(to, "trees", "Open trees"),
            workers: one_of(to, "workers", "Workers of open trees, by where they stand"),
            connections: one_of(to, "connections", "Open connections"),
            outbox: one_of(to, "outbox_items", "Items that leads and workers have not taken in"),
            tokens: one_of(to, "tokens", "Tokens that the trees that are kept have reported"),
            cost: one_of(to, "cost_usd", "US dollars that the trees that are kept have reported"),
            commit,
            registry,
        }
    }

    /// A step was taken. `declines`: its command declined to park.
    pub fn observe(&self, stepped: &Stepped, declines: bool) {
        for Record { event, .. } in &stepped.records {
            if let Event::SlotTaken { grant, .. } = event {
                match grant {
                    Grant::Start => {
                        self.admissions.inc();
                    }
                    Grant::EarlyWake => one(&self.wakes, "kind", "early"),
                    Grant::FinalWake => one(&self.wakes, "kind", "final"),
                    Grant::Return => {}
                }
            } else if let Event::ParkAsked { .. } = event {
                one(&self.parks, "event", "asked");
            } else if let Event::Parked { .. } = event {
                one(&self.parks, "event", "parked");
            } else if let Event::ParkCancelled { .. } = event {
                one(&self.parks, "event", if declines { "declined" } else { "called_off" });
            } else if let Event::Ended { outcome, .. } = event {
                one(&self.ended, "outcome", word(outcome));
            }
        }
        self.wakes.get_or_create(&[("kind", "promoted")]).inc_by(stepped.promoted);
    }

    /// A commit took this long.
    pub fn committed(&self, took: Duration) {
        self.commit.observe(took.as_secs_f64());
    }

    /// Everything as text, with what this state has at this moment.
    pub fn text(&self, state: &State, connections: usize) -> String {
        self.look(state, connections);
        let mut text = String::new();
        // Writing into a string does not fail.
        encode(&mut text, &self.registry).unwrap_or_default();
        text
    }

    fn look(&self, state: &State, connections: usize) {
        let whole = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        self.trees.set(whole(state.open.len()));
        self.connections.set(whole(connections));
        let mut counts = [("live", 0), ("queued", 0), ("parked", 0), ("lent", 0), ("finishing", 0)];
        for tree in state.open_trees() {
            let of = tree.counts;
            let found = [of.live as usize, tree.queued(), of.parked as usize, of.lent as usize, of.finishing as usize];
            counts.iter_mut().zip(found).for_each(|((_, sum), number)| *sum += whole(number));
        }
        for (state, number) in counts {
            self.workers.get_or_create(&[("state", state)]).set(number);
        }
        let owed = state.trees.values().map(|tree| tree.outbox.len()).sum::<usize>();
        self.outbox.set(whole(owed + state.workers.values().map(|worker| worker.outbox.len()).sum::<usize>()));
        let used = state.trees.values().map(|tree| tree.accounts.total()).fold(Usage::default(), Usage::with);
        let tokens = [("input", used.input), ("output", used.output), ("cache_read", used.cache_read), ("cache_write", used.cache_write)];
        for (kind, number) in tokens {
            self.tokens.get_or_create(&[("kind", kind)]).set(i64::try_from(number).unwrap_or(i64::MAX));
        }
        #[allow(clippy::cast_precision_loss)]
        self.cost.set(used.cost as f64 / NANOS);
    }
}

/// One of them, which the registry shows.
fn one_of<M: Metric + Clone + Default>(to: &mut Registry, name: &'static str, help: &'static str) -> M {
    let metric = M::default();
    to.register(name, help, metric.clone());
    metric
}

/// Whether this is a worker's no to a request to park.
pub fn declines(command: &Command) -> bool {
    matches!(command, Command::Speak { speak, .. } if matches!(**speak, Speak::ParkDecline { .. }))
}

fn one(of: &Counters, label: &'static str, value: &'static str) {
    of.get_or_create(&[(label, value)]).inc();
}

fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Completed => "completed",
        Outcome::WrappedUp => "wrapped_up",
        Outcome::Aborted { .. } => "aborted",
        Outcome::Failed(_) => "failed",
        Outcome::Stopped => "stopped",
    }
}
