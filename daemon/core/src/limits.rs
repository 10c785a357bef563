//! Every bound of the broker in one file (contract section 12). `docs/limits.md` lists them with their errors.

/// Most tasks of one launch.
pub const TASKS_PER_LAUNCH_MAX: usize = 20;
/// The largest budget, cap allowance or count: what a JSON number carries exactly.
pub const BUDGET_MAX: u64 = (1 << 53) - 1;
/// The largest cap of a tree.
pub const CAP_MAX: u32 = 100_000;
/// The deepest nesting that a tree may be opened with.
pub const DEPTH_MAX: u32 = 65_536;
/// Most bytes of a worker's name.
pub const NAME_BYTES_MAX: usize = 128;
/// Most bytes of a request id, a tree's key, or a group's name.
pub const LABEL_BYTES_MAX: usize = 256;
/// Most open trees of one daemon.
pub const TREES_OPEN_MAX: usize = 1_000;
/// Most calls of one caller that wait at the same time.
pub const WAITS_PER_CALLER_MAX: usize = 1_000;
/// Most groups of one tree that have a cap.
pub const GROUPS_MAX: usize = 64;
/// Admissions that may pass over a ready final wake (contract section 3).
pub const WAKE_BYPASS: u64 = 32;
/// How long a slot must have been to spare, in milliseconds, before an early wake takes it (contract section 3).
pub const EARLY_WAKE_DWELL_MS: u64 = 250;
/// How long a worker may take to answer a park request, in milliseconds.
pub const PARK_DEADLINE_MS: u64 = 10_000;
/// The longest time for which a worker that declines to park is left alone, in milliseconds: it must not keep a slot for ever.
pub const PARK_DECLINE_MS_MAX: u64 = 60_000;
/// How long a worker that did not park in time is left alone, in milliseconds.
pub const PARK_AGAIN_MS: u64 = 5_000;
/// Further tries of a start that failed for want of something that may come back, or of a wake.
pub const START_RETRIES: u32 = 2;
/// Pause before the first further try, in milliseconds; the n-th pause is n times as long.
pub const START_RETRY_MS: u64 = 1_000;
/// How long a blocked worker's clients may take to come back after a restart of the broker, in milliseconds.
pub const REATTACH_MS: u64 = 10_000;
/// How long a closed tree stays readable, in milliseconds: 30 days.
pub const RETENTION_MS: u64 = 30 * 24 * 60 * 60 * 1_000;
/// Most ended workers of closed trees that are kept; beyond it the tree that was closed first goes.
pub const CLOSED_WORKERS_MAX: usize = 200_000;
/// How long a process that has parked may take to exit, in milliseconds.
pub const SETTLE_TO_EXIT_MS: u64 = 5_000;
/// How long a completion is held back before its lead takes it in, in milliseconds: a reading of it comes first.
pub const HOLD_MS: u64 = 200;
/// How long a process that speaks the protocol may take to say hello, in milliseconds.
pub const STARTUP_MS: u64 = 120_000;
/// How long such a worker may show no sign of life outside of a tool, in milliseconds.
pub const IDLE_MS: u64 = 20 * 60 * 1_000;
/// Launches without a longer pause between them, in milliseconds, are told of together where the tree joins them.
pub const JOIN_WINDOW_MS: u64 = 100;
/// How long the first completion of a group waits for the others, in milliseconds.
pub const JOIN_HOLD_MS: u64 = 30_000;
/// How long the first straggler waits for the others, in milliseconds.
pub const JOIN_STRAGGLER_MS: u64 = 15_000;
/// So many ends that a lead does not take in are worth a warning.
pub const BACKLOG_WARN: usize = 25;
/// With so many its launches are refused.
pub const BACKLOG_MAX: usize = 200;
/// Most bytes of a message.
pub const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// Most messages of one sender that are remembered for repeats.
pub const SENT_MAX: usize = 64;
/// Most items of one look at what is owed.
pub const INBOX_ITEMS_MAX: usize = 1_000;
