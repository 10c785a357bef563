//! Every bound of Roost in one file (contract section 12): counts, sizes, texts, and the times that hold unless something else is
//! asked for. `docs/limits.md` lists them with what is answered beyond each; a test compares the two.
//!
//! Numbers only: it does not know who keeps them. What is no more than a matter of how something is built (a page, a header, the size
//! of a read) is where it is used, and so are the times by which the supervisor keeps its broker alive (`daemon/src/config.rs`).

use std::time::Duration;

// Trees and launches.

/// Most open trees of one daemon.
pub const TREES_OPEN_MAX: usize = 1_000;
/// The largest cap of a tree or of a group.
pub const CAP_MAX: u32 = 100_000;
/// The largest budget, allowance or count: what a JSON number carries exactly.
pub const BUDGET_MAX: u64 = (1 << 53) - 1;
/// The deepest nesting that a tree may be opened with.
pub const DEPTH_MAX: u32 = 65_536;
/// Most groups of one tree that have a cap.
pub const GROUPS_MAX: usize = 64;
/// Most tasks of one launch.
pub const TASKS_PER_LAUNCH_MAX: usize = 20;
/// Of more tasks than this none is looked at.
pub const TASKS_LOOKED_AT_MAX: usize = 64;
/// Most bytes of a worker's name.
pub const NAME_BYTES_MAX: usize = 128;
/// Most bytes of a request id, a tree's key, or a group's name.
pub const LABEL_BYTES_MAX: usize = 256;
/// Most names of one `wait` or `stop`.
pub const NAMES_PER_CALL_MAX: usize = 10_000;
/// Most bytes of one argument or one `NAME=value`. Linux takes no longer one: its limit of 128 KiB counts the NUL at the end.
pub const ARGUMENT_BYTES_MAX: usize = 131_071;
/// Most bytes of arguments and environment together. Linux never takes more than this, whatever the stack limit.
pub const EXEC_BYTES_MAX: usize = 6 << 20;

// Calls.

/// Most calls of one caller that wait at the same time.
pub const WAITS_PER_CALLER_MAX: usize = 1_000;
/// How many answered waits of one lead are remembered, for a client that asks again.
pub const WAITS_REMEMBERED_MAX: usize = 8;
/// Most calls of one connection that wait for their answer.
pub const CALLS_PER_CONNECTION_MAX: usize = 256;
/// Most calls of one connection that wait for results, whose answers are large.
pub const RESULTS_PER_CONNECTION_MAX: usize = 16;

// Connections.

/// Most connections at one time.
pub const CONNECTIONS_MAX: usize = 1_000;
/// Fewer are never allowed, however few descriptors there may be.
pub const CONNECTIONS_MIN: usize = 8;
/// Descriptors that connections leave for everything else: the journal, answers that are read, files of workers.
pub const DESCRIPTORS_KEPT: usize = 64;
/// Connections that may wait while there is no broker. The kernel lowers it to `net.core.somaxconn`.
pub const CONNECTIONS_WAITING_MAX: i32 = 4_096;
/// Answers and notifications that the driver may have on their way to one connection: all answers, and as many notifications.
pub const OUTGOING_MAX: usize = 2 * CALLS_PER_CONNECTION_MAX;
/// Bytes that wait to be written to one connection, beyond which nothing more is taken from the driver or from the peer.
pub const OUTPUT_BYTES_MAX: usize = 256 << 10;
/// The most processes above a caller that are looked at for who it is.
pub const ANCESTORS_MAX: usize = 64;
/// How long a peer may take to say who it is.
pub const HELLO_WITHIN: Duration = Duration::from_secs(10);
/// How long a line that counts against [`LINES_BYTES_MAX`] may take until it is whole.
pub const LINE_WITHIN: Duration = Duration::from_secs(30);
/// How long a peer may read nothing while something waits to be written to it.
pub const READ_WITHIN: Duration = Duration::from_secs(30);
/// How long the last words to a connection that ends may take.
pub const LAST_WORDS_WITHIN: Duration = Duration::from_secs(1);
/// How long clients may take to read their last answers when the daemon leaves.
pub const FAREWELL: Duration = Duration::from_secs(1);
/// Looks at file systems for calls of all connections at one time: one that hangs counts until it ends.
pub const LOOKS_MAX: usize = 128;
/// The same for one tree.
pub const LOOKS_PER_TREE_MAX: usize = 16;
/// The same for one connection.
pub const LOOKS_PER_CONNECTION_MAX: usize = 8;
/// The same for wakes, at the files of their contexts.
pub const VERIFICATIONS_MAX: usize = 128;
/// The same for the wakes of one tree.
pub const VERIFICATIONS_PER_TREE_MAX: usize = 16;
/// How long the file system may take to say whether a working directory can be used; so long may it take as well until it is asked.
pub const CWD_WITHIN: Duration = Duration::from_secs(10);
/// How long accepting pauses when descriptors or memory ran out and no connection of ours ends.
pub const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

// Lines and texts.

/// The most bytes of one line of the protocol, its LF not counted.
pub const LINE_BYTES_MAX: usize = 8 << 20;
/// Most bytes of a `hello`: whoever is not known yet costs little.
pub const HELLO_BYTES_MAX: usize = 64 << 10;
/// Bytes of lines that are not whole yet, over all connections, beyond the first [`LINE_BYTES_FREE`] of each.
pub const LINES_BYTES_MAX: usize = 32 << 20;
/// Bytes of the calls of all connections that the driver has not done with, beyond calls of [`CALL_BYTES_FREE`].
pub const CALLS_BYTES_MAX: usize = 64 << 20;
/// The same for one connection, all of its calls counted; two of the longest lines.
pub const CALLS_BYTES_PER_CONNECTION_MAX: usize = 16 << 20;
/// A call of no more bytes never waits for those of other connections.
pub const CALL_BYTES_FREE: usize = 1 << 10;
/// What a line may have without counting against [`LINES_BYTES_MAX`].
pub const LINE_BYTES_FREE: usize = 64 << 10;
/// The most characters of what a message repeats of a line that could not be read.
pub const PARSE_ERROR_CHARS_MAX: usize = 300;
/// The most bytes of an answer that travel as text; the file holds all of it. Twenty of them, each byte escaped, fit a line.
pub const ANSWER_TEXT_BYTES_MAX: u64 = 64 << 10;
/// Most bytes that the answers in one reply take on its line, which has room for a little more.
pub const ANSWERS_BYTES_MAX: usize = 6 << 20;
/// Most bytes that the answers handed over by one wake take in its file.
pub const WAKE_BYTES_MAX: usize = 64 << 20;
/// The most workers of one page of a status; a client asks for the next.
pub const STATUS_PAGE_WORKERS_MAX: u32 = 2_000;
/// Most bytes of such a page, as far as paths and names can be large.
pub const STATUS_PAGE_BYTES_MAX: usize = 4 << 20;
/// Refusals written to the audit log in one [`AUDIT_WINDOW`]; what is over is counted.
pub const AUDIT_LINES_MAX: u32 = 200;
/// How long a window of the audit log is.
pub const AUDIT_WINDOW: Duration = Duration::from_secs(60);
/// The most bytes of a socket path: `sun_path` is 108 bytes with its NUL.
pub const SOCKET_PATH_BYTES_MAX: usize = 107;

// Parking and waking.

/// The most bytes of a context that is sent; a larger one must be kept by the worker in a file.
pub const CONTEXT_BYTES_MAX: usize = 1 << 20;
/// The most bytes of a context that a worker keeps in a file of its own.
pub const CONTEXT_FILE_BYTES_MAX: u64 = 1 << 30;
/// How long the disk may take for such a file, when it is saved and when it is handed over.
pub const CONTEXT_WITHIN: Duration = Duration::from_secs(120);
/// Admissions that may pass over a ready final wake (contract section 3).
pub const WAKE_BYPASS: u64 = 32;
/// The most that a tree may set for it: no parent starves.
pub const WAKE_BYPASS_MAX: u64 = 1_000_000;
/// How long a slot must have been to spare, in milliseconds, before an early wake takes it (contract section 3).
pub const EARLY_WAKE_DWELL_MS: u64 = 250;
/// How long a worker may take to answer a park request, in milliseconds.
pub const PARK_DEADLINE_MS: u64 = 10_000;
/// The longest time for which a worker that declines to park is left alone, in milliseconds: it must not keep a slot for ever.
pub const PARK_DECLINE_MS_MAX: u64 = 60_000;
/// How long a worker that did not park in time is left alone, in milliseconds.
pub const PARK_AGAIN_MS: u64 = 5_000;
/// How long a process that has parked may take to exit, in milliseconds.
pub const SETTLE_TO_EXIT_MS: u64 = 5_000;
/// How long a blocked worker's clients may take to come back after a restart of the broker, in milliseconds.
pub const REATTACH_MS: u64 = 10_000;

// Processes.

/// Time between TERM and KILL of a stop, in milliseconds.
pub const STOP_GRACE_MS: u64 = 5_000;
/// The longest such time.
pub const STOP_GRACE_MS_MAX: u64 = 3_600_000;
/// The longest of the other times that a tree may set, in milliseconds: a day.
pub const TIMING_MS_MAX: u64 = 24 * 60 * 60 * 1_000;
/// The same for what a main process leaves behind, in milliseconds (contract section 3).
pub const LEFTOVERS_GRACE_MS: u64 = 1_000;
/// The most leftovers that a report lists; all of them are ended nevertheless.
pub const LEFTOVERS_LISTED_MAX: usize = 256;
/// The most processes that are watched for one incarnation at a time: a fork bomb must not use up our descriptors.
pub const WATCHED_PER_INCARNATION_MAX: usize = 64;
/// How often one KILL chases processes that are forked meanwhile, before others get their turn.
pub const KILL_ROUNDS_MAX: usize = 64;
/// Further tries of a start that failed for want of something that may come back, or of a wake.
pub const START_RETRIES: u32 = 2;
/// The most that a tree may set.
pub const START_RETRIES_MAX: u32 = 100;
/// Pause before the first further try, in milliseconds; the n-th pause is n times as long.
pub const START_RETRY_MS: u64 = 1_000;

// The daemon's insides, as far as peers fill them.

/// Calls of all connections that may wait for the driver.
pub const DRIVER_INBOX_MAX: usize = 4_096;
/// The most inputs of one commit.
pub const BATCH_INPUTS_MAX: usize = 256;
/// Commits that may wait for the journal's writer at one time.
pub const COMMITS_WAITING_MAX: usize = 64;
/// Most commits that share one transaction.
pub const COMMITS_PER_TRANSACTION_MAX: usize = 64;
/// So much of the write-ahead log is worked off between two commits even when they follow each other without a pause.
pub const LOG_BACKLOG_BYTES_MAX: usize = 8 << 20;
/// The most bytes of one frame between broker and supervisor: an `execve` of the largest size that Linux takes, with room.
pub const LINK_FRAME_BYTES_MAX: usize = 8 << 20;
/// Frames that may wait for the supervisor to read them.
pub const LINK_OUTGOING_MAX: usize = 1_024;
/// Messages of the supervisor that may wait for the driver.
pub const LINK_INCOMING_MAX: usize = 1_024;

// Room and retention.

/// Less free than this on the file system of the state directory, and launches are refused.
pub const SPACE_LOW_BYTES: u64 = 16 << 20;
/// What the file takes that is given up when there is no room at all.
pub const BALLAST_BYTES: u64 = 4 << 20;
/// How long a start or a commit that found no room waits for the next try.
pub const NO_SPACE_RETRY: Duration = Duration::from_secs(1);
/// How long new work that was accepted before its commit found no room waits for an answer.
pub const NO_SPACE_ANSWER: Duration = Duration::from_secs(10);
/// How long a closed tree stays readable, in milliseconds: 30 days; 0 is no end by age.
pub const RETENTION_MS: u64 = 30 * 24 * 60 * 60 * 1_000;
/// Most ended workers of closed trees that are kept; beyond it the tree that was closed first goes.
pub const CLOSED_WORKERS_MAX: usize = 200_000;
/// After how many seconds without tree and client the daemon leaves.
pub const IDLE_EXIT_SECONDS: u64 = 600;

// Workers that speak, and what leads are owed.

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
/// Most messages, its task included, that one receiver may not have read.
pub const WORDS_OWED_MAX: usize = 1_000;
/// Most acknowledgements of one receiver that a repeat finds.
pub const ACKS_REMEMBERED_MAX: usize = 64;
/// Most stops of one lead that a repeat finds.
pub const STOPS_REMEMBERED_MAX: usize = 16;
/// Most interrupts of one tree that a repeat finds.
pub const INTERRUPTS_REMEMBERED_MAX: usize = 16;
/// Most processes of one root, besides the one that has its lease, whose usage goes on when they come back.
pub const ROOT_PROCESSES_REMEMBERED_MAX: usize = 8;
/// Most items of one look at what is owed.
pub const INBOX_ITEMS_MAX: usize = 1_000;
/// Most items of one `ack`, and executions of one `told`.
pub const ACK_ITEMS_MAX: usize = 10_000;
/// Most events of one answer.
pub const EVENTS_PAGE_MAX: u32 = 1_000;
/// Most bytes of items, as they are written, of one notification or one look at what is owed; more goes in several. A task or a message
/// that is larger goes alone.
pub const DELIVERY_BYTES_MAX: usize = 4 << 20;
/// Most bytes of events, as they are written, of one answer or notification.
pub const EVENTS_BYTES_MAX: usize = 4 << 20;
/// The most bytes of what a worker says of why its turn failed, as they are written; more is cut.
pub const REASON_BYTES_MAX: usize = 4 << 10;

/// Most trees of one answer to `daemon.gc`, and most that one call forgets.
pub const GC_TREES_MAX: usize = 1_000;
/// Most workers of the trees that one call forgets, if it is more than one tree.
pub const GC_WORKERS_MAX: usize = 10_000;

// Configuration.

/// Most bytes of a configuration file.
pub const CONFIG_BYTES_MAX: u64 = 1 << 20;

// Transcripts.

/// Most bytes of the transcript of one execution.
pub const TRANSCRIPT_BYTES_MAX: u64 = 64 << 20;
/// Lines of all transcripts that may wait to be written.
pub const TRANSCRIPT_LINES_WAITING_MAX: usize = 8_192;
/// And their bytes.
pub const TRANSCRIPT_BYTES_WAITING_MAX: usize = 32 << 20;
