// Generated from the Rust types in proto/src. Do not edit: ROOST_REGENERATE=1 cargo test -p roost-proto-schema

/** The protocol version that these types are of. */
export const PROTOCOL_VERSION = 1;

/** Each method: what it takes and what it answers. */
export interface Methods {
  "hello": { params: Hello; result: Welcome };
  "open": { params: Open; result: Opened };
  "attach": { params: Attach; result: Opened };
  "cap": { params: Cap; result: CapReply };
  "pause": { params: Pause; result: PauseReply };
  "close": { params: Close; result: Closed };
  "watch": { params: Watch; result: Progress };
  "launch": { params: Launch; result: Receipt };
  "wait": { params: Wait; result: WaitReply };
  "told": { params: Told; result: ToldReply };
  "result": { params: ReadResult; result: ResultReply };
  "status": { params: Status; result: StatusReply };
  "stop": { params: Stop; result: StopReply };
  "interrupt": { params: Interrupt; result: InterruptReply };
  "park": { params: Park; result: ParkReply };
  "message": { params: Message; result: MessageReply };
  "tell_lead": { params: TellLead; result: TellLeadReply };
  "inbox": { params: Inbox; result: InboxReply };
  "ack": { params: Ack; result: AckReply };
  "report": { params: Report; result: ReportReply };
  "settle": { params: Settle; result: SettleReply };
  "park_ready": { params: ParkReady; result: ParkReadyReply };
  "park_decline": { params: ParkDecline; result: ParkDeclineReply };
  "usage": { params: ReadUsage; result: UsageReply };
  "events": { params: ReadEvents; result: EventsReply };
  "daemon.status": { params: DaemonStatus; result: DaemonStatusReply };
  "daemon.metrics": { params: DaemonMetrics; result: DaemonMetricsReply };
  "daemon.stop": { params: DaemonStop; result: DaemonStopReply };
  "daemon.restart": { params: DaemonRestart; result: DaemonRestartReply };
  "daemon.gc": { params: DaemonGc; result: DaemonGcReply };
}

/** Each notification that a daemon sends: what it carries. */
export interface Notifications {
  "progress": Progress;
  "deliver": Delivery;
  "withdraw": Withdrawal;
  "park": ParkAsk;
  "lease_lost": LeaseLost;
  "events": EventsReply;
}

/** Takes items in: they have entered the caller's input and are not owed any more. Only the lease holder may. */
export type Ack = {
  /** Repeating an acknowledgement gets the same answer: by this id, or by the process that holds the lease. Somebody else is told
   * `gone`. */
  request_id?: string | null,
  /** Their numbers. */
  items: Array<number>,
};

/** Answer to [`Ack`]. */
export type AckReply = {
  /** Taken in, now or by an earlier `ack` whose answer may have been lost: the caller's to use, once. */
  accepted: Array<number>,
  /** Not owed any more, and never taken in: read by another way. To be dropped. */
  gone: Array<number>,
};

/** What a worker does. */
export type Activity = "busy" | "tool" | "idle";

/** A task's share of the budget: a number, or `"rest"` for all that the launcher has left (a job of one task only). */
export type Allowance = number | Rest;

/** What a daemon sends: an answer (with `id`), or a notification (with `method`). */
export type Answer = {
  /** Always `"2.0"`. */
  jsonrpc: Version,
  /** The call that is answered; `None` when the call's id could not be read. */
  id?: number | null,
  /** The method of a notification. */
  method?: string | null,
  /** The parameters of a notification. */
  params?: unknown,
  /** The reply. */
  result?: unknown,
  /** Or the error. */
  error?: ErrorObject | null,
};

/** Attaches to an open tree as its root: the daemon's user may. */
export type Attach = {
  /** Which tree. */
  tree: TreeId,
};

/** A plain command cannot be parked under its feet: what its blocked wait does when others need its slot. */
export type BlockedWait = "lend" | "refuse";

/** Bytes that are usually text. */
export type Bytes = string | { bytes: number[] };

/** What a client sends. */
export type Call = {
  /** Always `"2.0"`. */
  jsonrpc: Version,
  /** Chosen by the client; the answer carries it. Without an id the call is a notification and gets no answer. */
  id?: number | null,
  /** The method. */
  method: string,
  /** Its parameters, read once the method is known. */
  params?: unknown,
};

/** Reads or (root only) sets the cap. */
export type Cap = {
  /** The new cap, at least 1. */
  cap?: number | null,
};

/** Answer to [`Cap`]. */
export type CapReply = {
  /** The cap that holds now. */
  cap: number,
  /** Workers that hold a slot. */
  live: number,
  /** Workers in the queue. */
  queued: number,
};

/** What a worker can do. */
export type Capability = "park" | "steer";

/** Closes the tree (root only): no launch is taken any more, its results stay readable. */
export type Close = {
  /** Stop what is active first; otherwise active work makes `close` fail with `active`. */
  now?: boolean,
};

/** Answer to [`Close`]. */
export type Closed = {
  /** How many active workers were stopped for it. */
  stopped: number,
};

/** Forgets closed trees with their results and files, the oldest first, and gives the journal's room back. A tree stays while its root
 * is owed a result that nobody has read. */
export type DaemonGc = {
  /** Those that were closed at least so many milliseconds ago. Without this and `max_bytes`: those that retention says. */
  older_than_ms?: number | null,
  /** The oldest, until outputs and transcripts of all closed trees that are left take no more bytes than this. */
  max_bytes?: number | null,
  /** Only say what would go. */
  dry_run?: boolean,
};

/** Answer to [`DaemonGc`]. */
export type DaemonGcReply = {
  /** The trees that are gone, or would be. */
  trees: Array<SweptTree>,
  /** There are more of them: the next call goes on. */
  more: boolean,
  /** How many there were in all, those that `more` stands for included. */
  total: number,
  /** How many workers those have. */
  workers: number,
  /** What their outputs and transcripts take. */
  bytes: number,
  /** How many trees stay for results that nobody has read. */
  kept_unread: number,
  /** What the journal's files took before. */
  journal_bytes_before: number,
  /** What they take now. */
  journal_bytes: number,
};

/** Asks for what is counted of the daemon's work. */
export type DaemonMetrics = Record<symbol, never>;

/** Answer to [`DaemonMetrics`]. */
export type DaemonMetricsReply = {
  /** OpenMetrics text. Counters begin at the start of the broker. */
  text: string,
};

/** Starts the broker anew with the installed binary. Workers and the supervisor stay. */
export type DaemonRestart = Record<symbol, never>;

/** Answer to [`DaemonRestart`]: the old broker is leaving. */
export type DaemonRestartReply = {
  /** The broker that leaves. */
  broker_pid: number,
};

/** Asks how the daemon is. */
export type DaemonStatus = Record<symbol, never>;

/** Answer to [`DaemonStatus`]. */
export type DaemonStatusReply = {
  /** The supervisor's process. */
  supervisor_pid: number,
  /** The broker's process. */
  broker_pid: number,
  /** The daemon's version. */
  version: string,
  /** The protocol version that it speaks. */
  protocol: number,
  /** The listening socket. */
  socket: string,
  /** The state directory. */
  state_dir: string,
  /** Open trees. */
  trees: number,
  /** Workers that hold a slot, over all trees. */
  live: number,
  /** Workers that wait for one, over all trees. */
  queued: number,
  /** Open connections, this one included. */
  connections: number,
  /** The cap over all trees, when there is one. */
  cap?: number | null,
};

/** Ends the daemon. Queued and parked work stays on disk and goes on at the next start. */
export type DaemonStop = {
  /** Stop live workers (TERM, then KILL) instead of waiting for them. */
  now?: boolean,
  /** Milliseconds to wait for live workers; then the stop is called off with `draining`, naming them. */
  timeout_ms?: number | null,
};

/** Answer to [`DaemonStop`]: nothing runs any more, and the daemon is leaving. */
export type DaemonStopReply = {
  /** How many live workers were stopped. */
  stopped: number,
};

/** Items, in order. All that stand in one delivery are one prompt. */
export type Delivery = {
  /** Whether this alone should start a turn when the receiver is idle. */
  wake: boolean,
  /** Direct children that have not ended. */
  active_children: number,
  /** What is owed. */
  items: Array<Item>,
};

/** How completions reach a lead's model: a setting of the tree. The lead's client carries it out. */
export type DeliveryMode = "steer" | "follow_up" | "next_turn" | "passive";

/** The number of an incarnation (one OS process) of an execution, from 1. A frame of an older epoch has no effect. */
export type Epoch = number;

/** What a program needs to know of an error. */
export type ErrorData = {
  /** Which of the closed list. */
  kind: ErrorKind,
  /** What to do next. */
  hint?: string | null,
};

/** Every error that the daemon answers with. */
export type ErrorKind = "parse" | "invalid_request" | "unknown_method" | "invalid_params" | "too_large" | "hello_first" | "protocol_version" | "unknown_identity" | "stale_epoch" | "no_tree" | "tree_closed" | "not_root" | "not_worker" | "unknown_worker" | "bad_name" | "name_taken" | "bad_value" | "task_count" | "budget" | "depth" | "bad_cwd" | "request_id_reused" | "stopping" | "interrupted" | "parked" | "lead_parked" | "lead_gone" | "not_steerable" | "not_resumable" | "stale_lease" | "already_connected" | "read_only" | "backpressure" | "deadlock" | "active" | "draining" | "no_space" | "limit" | "internal";

/** A JSON-RPC error object. */
export type ErrorObject = {
  /** The JSON-RPC code. */
  code: number,
  /** What is wrong, for a person. */
  message: string,
  /** The same for a program. */
  data: ErrorData,
};

/** Answer to [`ReadEvents`], as many as fit; `next` is where to go on. */
export type EventsReply = {
  /** The tree. */
  tree: TreeId,
  /** The events, without a gap. */
  events: Array<NumberedEvent>,
  /** The number after the last one here. */
  next: number,
  /** The number of the tree's next event: when it equals `next`, this is all. */
  end: number,
};

/** One launch or one resume of a worker: the key for accounting and de-duplication. */
export type ExecutionId = string;

/** Why an execution failed. */
export type Failure = { "kind": "spawn",
  /** The real cause, naming the directory or program at fault. */
  reason: string,
} | { "kind": "startup",
  /** What the last try said. */
  reason: string,
} | { "kind": "exit",
  /** The exit code. */
  code: number,
} | { "kind": "crash",
  /** The signal's number. */
  signal: number,
} | { "kind": "timeout" } | { "kind": "lost" } | { "kind": "context_corrupt",
  /** What is wrong with it; empty in records that are older than this field. */
  reason?: string,
} | { "kind": "parent_failed" } | { "kind": "protocol",
  /** How. */
  reason: string,
} | { "kind": "provider",
  /** What the provider said. */
  message: string,
} | { "kind": "truncated" } | { "kind": "turn_limit",
  /** What it said about it. */
  message: string,
} | { "kind": "idle_timeout" } | { "kind": "no_answer" };

/** Must come first on a connection; anything else before it is refused with `hello_first`. */
export type Hello = {
  /** The oldest protocol version that the client speaks. */
  protocol_min: number,
  /** The newest one. */
  protocol_max: number,
  /** Program and version, for the log. */
  client: string,
  /** The capability that the client holds; without one it is an operator, who may look and may open trees. */
  identity?: Identity | null,
  /** What the connection wants to be beyond making calls; absent: nothing, and nothing is pushed to it. */
  role?: RoleAsked | null,
  /** What a worker can do beyond the least. */
  capabilities?: Array<Capability>,
};

/** What `ROOST_TREE`, `ROOST_WORKER`, `ROOST_TOKEN` and `ROOST_EPOCH` say. */
export type Identity = {
  /** The tree. */
  tree: TreeId,
  /** The worker; `None` for the root. */
  worker?: WorkerId | null,
  /** The token of that worker, or of the root. */
  token: Token,
  /** The incarnation of the worker that calls. */
  epoch?: Epoch | null,
};

/** Reads what the caller is owed. Nothing is taken in by that. */
export type Inbox = Record<symbol, never>;

/** Answer to [`Inbox`]. */
export type InboxReply = {
  /** The items, in order, as many as fit a line. */
  items: Array<Item>,
  /** How many more there are. */
  more: number,
};

/** Stops everything of the tree that runs, is queued or is parked (root only). */
export type Interrupt = {
  /** Repeating it gets the same answer, and leaves alone what was launched in between. */
  request_id?: string | null,
  /** Answer as soon as it is on disk, not when the last process is gone. */
  no_wait?: boolean,
};

/** Answer to [`Interrupt`]. */
export type InterruptReply = {
  /** How many workers were active; 0 means that there was nothing to do. */
  stopped: number,
  /** The tree's new interrupt generation. */
  generation: number,
};

/** What an interrupt of the root reaches. */
export type InterruptScope = "all" | "foreground" | "none";

/** One thing owed. */
export type Item = {
  /** Its number in this mailbox. */
  seq: number,
} & ({ "type": "task",
  /** The text. */
  text: string,
} | { "type": "completion",
  /** The answer as text; bytes that are not UTF-8 are replaced here and kept in the file. */
  answer: string,
  /** How many bytes the whole answer has. */
  answer_bytes: number,
  /** Whether `answer` is only the first part of it. */
  answer_truncated: boolean,
  /** Whether the answer is what a failed or stopped worker had written so far. */
  partial: boolean,
  /** Whether its last message was cut at a length limit of the model. */
  length_limited?: boolean,
  /** Whether its lead was told this before: read, or announced and taken in. */
  told_before?: boolean,
  /** What it used, alone and with all below it; absent where nothing was ever reported. */
  usage?: UsageTotals | null,
  /** Whether a part of its transcript could not be written. */
  lossy?: boolean,
  /** The file that holds the answer byte by byte; absent when the worker never had a process. */
  answer_path?: string | null,
  /** Processes that its own left behind, in a tree that keeps those: as they were when each of its processes ended. */
  leftovers?: Array<number>,
  /** The worker's name. */
  name: string,
  /** The worker. */
  worker: WorkerId,
  /** Its execution: the key for de-duplication. */
  execution: ExecutionId,
  /** The job that launched it. */
  job: JobId,
  /** Its index in that job, from 0. */
  task_index: number,
  /** How it ended. */
  outcome: Outcome,
} | { "type": "lead_message",
  /** The message. */
  message: MessageId,
  /** The text. */
  text: string,
} | { "type": "child_message",
  /** The message. */
  message: MessageId,
  /** The child's name. */
  from: string,
  /** The child. */
  worker: WorkerId,
  /** The text. */
  text: string,
} | { "type": "notice",
  /** The child's name. */
  from: string,
  /** The child. */
  worker: WorkerId,
  /** Its execution. */
  execution: ExecutionId,
  /** What that turn answered. */
  text: string,
} | { "type": "undelivered",
  /** The message. */
  message: MessageId,
  /** Whom it was for. */
  to: string,
  /** Why it was not read. */
  reason: string,
  /** The message's text. */
  text: string,
});

/** One launch call, or one resume. */
export type JobId = string;

/** Which completions are told together. A group is what one lead launched without a longer pause than `join_window_ms`, two workers or
 * more. */
export type Join = "async" | "group" | "smart";

/** Launches 1 to 20 tasks as one job, all or nothing. */
export type Launch = {
  /** The same id with the same content returns the same receipt; with other content it is an error. */
  request_id: string,
  /** The tasks, in the order of their places. */
  tasks: Array<Task>,
  /** What the workers get from their submitter. */
  submitter: Submitter,
  /** Answer only when all have ended, with their results, which count as consumed. */
  foreground?: boolean,
  /** Answer at once, and yet somebody waits for it: it counts as launched in the foreground for interrupts. */
  attended?: boolean,
  /** The interrupt generation that the caller knows; a launch of an older one is refused with `interrupted`. */
  generation?: number | null,
};

/** Another connection has taken the lease: nothing is pushed here any more, and an `ack` is refused with `stale_lease`. */
export type LeaseLost = Record<symbol, never>;

/** Processes that outlive their worker's main process. */
export type Leftovers = "end" | "keep";

/** Sends words to a direct child, without waiting for it. A child that has ended and was saved is resumed by it: a new execution,
 * through the queue, with the settings that it was launched with. */
export type Message = {
  /** The same id with the same content is one message, and gets the same answer. */
  request_id: string,
  /** The child's name. */
  name: string,
  /** The text. */
  text: string,
  /** The child's new allowance. What is above the highest so far is drawn from its original launcher; nothing is refunded. */
  max_subagents_allowed?: number | null,
};

/** One message to a worker or to a lead. */
export type MessageId = string;

/** Answer to [`Message`]. It is on disk; whether it was read, the event stream tells, and a message that never was comes back as an
 * item `undelivered`. */
export type MessageReply = {
  /** The message. */
  message: MessageId,
  /** What became of it. */
  sent: Sent,
};

/** What a settled worker does next. */
export type Next = "exit" | "wait" | "go_on";

/** One event. */
export type NumberedEvent = {
  /** Its number in its tree, from 1, without gaps. */
  number: number,
  /** When, in Unix milliseconds; for display, never for order. */
  at_ms: number,
} & ({ "event": "opened",
} | { "event": "created",
  /** The worker's lead; absent for the root. */
  lead?: WorkerId | null,
  /** The job. */
  job: JobId,
  /** Its index in the job. */
  task_index: number,
  /** Whether its worker is there already. */
  resume: boolean,
  /** Its group, where the tree caps that. */
  group?: string | null,
  /** The worker's name. */
  name: string,
  /** The worker. */
  worker: WorkerId,
  /** Its execution. */
  execution: ExecutionId,
} | { "event": "queued",
  /** The worker's name. */
  name: string,
  /** The worker. */
  worker: WorkerId,
  /** Its execution. */
  execution: ExecutionId,
} | { "event": "started",
  /** The worker's name. */
  name: string,
  /** The worker. */
  worker: WorkerId,
  /** Its execution. */
  execution: ExecutionId,
} | { "event": "running",
  /** Which process. */
  epoch: Epoch,
  /** The worker's name. */
  name: string,
  /** The worker. */
  worker: WorkerId,
  /** Its execution. */
  execution: ExecutionId,
} | { "event": "start_retried",
  /** The worker's name. */
  name: string,
  /** The worker. */
  worker: WorkerId,
  /** Its execution. */
  execution: ExecutionId,
} | { "event": "blocked",
  /** The worker's name. */
  name: string,
  /** The worker. */
  worker: WorkerId,
  /** Its execution. */
  execution: ExecutionId,
} | { "event": "slot_lent",
  /** The worker's name. */
  name: string,
  /** The worker. */
  worker: WorkerId,
  /** Its execution. */
  execution: ExecutionId,
} | { "event": "wait_over",
  /** The worker's name. */
  name: string,
  /** The worker. */
  worker: WorkerId,
  /** Its execution. */
  execution: ExecutionId,
} | { "event": "unblocked",
  /** The worker's name. */
  name: string,
  /** The worker. */
  worker: WorkerId,
  /** Its execution. */
  execution: ExecutionId,
} | { "event": "waiting",
  /** The worker's name. */
  name: string,
  /** The worker. */
  worker: WorkerId,
  /** Its execution. */
  execution: ExecutionId,
} | { "event": "resumed",
  /** The worker's name. */
  name: string,
  /** The worker. */
  worker: WorkerId,
  /** Its execution. */
  execution: ExecutionId,
} | { "event": "park_asked",
  /** The worker's name. */
  name: string,
  /** The worker. */
  worker: WorkerId,
  /** Its execution. */
  execution: ExecutionId,
} | { "event": "park_cancelled",
  /** The worker's name. */
  name: string,
  /** The worker. */
  worker: WorkerId,
  /** Its execution. */
  execution: ExecutionId,
} | { "event": "parked",
  /** The worker's name. */
  name: string,
  /** The worker. */
  worker: WorkerId,
  /** Its execution. */
  execution: ExecutionId,
} | { "event": "woken",
  /** Whether its subtree has settled. */
  settled: boolean,
  /** The worker's name. */
  name: string,
  /** The worker. */
  worker: WorkerId,
  /** Its execution. */
  execution: ExecutionId,
} | { "event": "message",
  /** To whom; absent: to the root. */
  to?: WorkerId | null,
  /** From whom; absent: from the root. */
  from?: WorkerId | null,
  /** The message. */
  message: MessageId,
} | { "event": "delivered",
  /** Who; absent: the root. */
  to?: WorkerId | null,
  /** The numbers of the items. */
  items: Array<number>,
} | { "event": "undelivered",
  /** Which. */
  messages: Array<MessageId>,
} | { "event": "consumed",
  /** Whose. */
  workers: Array<WorkerId>,
} | { "event": "stopping",
  /** The worker's name. */
  name: string,
  /** The worker. */
  worker: WorkerId,
  /** Its execution. */
  execution: ExecutionId,
} | { "event": "reowned",
  /** Its new lead; absent: the root. */
  lead?: WorkerId | null,
  /** The worker's name. */
  name: string,
  /** The worker. */
  worker: WorkerId,
  /** Its execution. */
  execution: ExecutionId,
} | { "event": "finishing",
  /** The worker's name. */
  name: string,
  /** The worker. */
  worker: WorkerId,
  /** Its execution. */
  execution: ExecutionId,
} | { "event": "ended",
  /** How. */
  outcome: Outcome,
  /** What it has used. */
  usage?: UsageTotals | null,
  /** The worker's name. */
  name: string,
  /** The worker. */
  worker: WorkerId,
  /** Its execution. */
  execution: ExecutionId,
} | { "event": "cap_set",
  /** To what. */
  cap: number,
} | { "event": "pause_set",
  /** Held? */
  paused: boolean,
} | { "event": "interrupted",
} | { "event": "backlog",
  /** Whose; absent: the root's. */
  of?: WorkerId | null,
  /** How many. */
  items: number,
} | { "event": "closed",
});

/** Active descendants of a worker that failed. */
export type OnParentFailure = "stop" | "adopt";

/** Opens a tree, or attaches to the open one of the same key. */
export type Open = {
  /** Repeating a request id returns the tree that it opened. */
  request_id: string,
  /** A name by which a later session of the same root finds its tree again. */
  key?: string | null,
  /** Settings of a new tree; ignored when the key finds one. */
  settings?: Partial<Settings>,
  /** Close the tree by itself once its root's connections are gone and nothing of it is active (`roost run`). */
  ephemeral?: boolean,
};

/** Answer to [`Open`] and [`Attach`]. The connection speaks as the root of this tree from now on. */
export type Opened = {
  /** The tree. */
  tree: TreeId,
  /** The root's token. */
  token: Token,
  /** Whether the tree is new. */
  created: boolean,
  /** Its settings. */
  settings: Settings,
};

/** The one terminal record of an execution. */
export type Outcome = { "status": "completed" } | { "status": "wrapped_up" } | { "status": "aborted",
  /** What cut it off. */
  reason: string,
} | { "status": "failed" } & Failure | { "status": "stopped" };

/** Saves the caller's context. Once answered, the process must exit; the same argv is started again when there is something
 * to wake for: a child's completion, or no active descendant any more. */
export type Park = {
  /** What the next process finds in the file named by `ROOST_CONTEXT`. */
  context?: Bytes | null,
  /** Instead of it: the absolute path of a file of the worker's own, which `ROOST_CONTEXT` names then. Its length and digest are
   * kept; it must be what it was when the worker is woken, and is never removed. */
  context_path?: Bytes | null,
};

/** Save your context and say `park_ready`, or `park_decline`. */
export type ParkAsk = {
  /** Milliseconds after which the request is called off. */
  deadline_ms?: number | null,
};

/** The other answer to a `park` notification. */
export type ParkDecline = {
  /** Milliseconds for which it should not be asked again; bounded by the daemon. */
  not_before_ms?: number,
};

/** Answer to [`ParkDecline`]. */
export type ParkDeclineReply = Record<symbol, never>;

/** The answer to a `park` notification: the context is saved, the process may exit. */
export type ParkReady = {
  /** Repeating it gets the same answer, and does not answer a later request to park. */
  request_id?: string | null,
  /** What the next process goes on from; absent: what the last settle saved is still right. */
  context?: SavedContext | null,
};

/** Answer to [`ParkReady`]. */
export type ParkReadyReply = {
  /** True: it is parked on disk, the process must exit now. False: something came first, go on. */
  parked: boolean,
};

/** Answer to [`Park`]: the context is on disk. */
export type ParkReply = Record<symbol, never>;

/** Holds or releases admissions (root only). Nothing that runs is touched. */
export type Pause = {
  /** Whether admissions are held. */
  paused: boolean,
};

/** Answer to [`Pause`]. */
export type PauseReply = {
  /** Whether admissions are held now. */
  paused: boolean,
};

/** Where a task went. */
export type Placement = "started" | "queued";

/** How a tree stands. */
export type Progress = {
  /** The tree. */
  tree: TreeId,
  /** The cap. */
  cap: number,
  /** Workers that hold a slot. */
  live: number,
  /** Workers in the queue. */
  queued: number,
  /** Workers whose context is saved and whose process is gone. */
  parked: number,
  /** Live workers that wait and have lent their slot. */
  blocked: number,
  /** Workers that have answered while descendants are active. */
  finishing: number,
  /** Executions that completed. */
  completed: number,
  /** Executions that failed. */
  failed: number,
  /** Executions that were stopped. */
  stopped: number,
  /** Whether admissions are held. */
  paused: boolean,
};

/** Reads events of the caller's tree, and with `follow` goes on as notifications. Who reads too slowly is cut off, and goes on by number. */
export type ReadEvents = {
  /** The tree, for an operator. */
  tree?: TreeId | null,
  /** The first number wanted, from 1. */
  from?: number,
  /** Go on with what comes. */
  follow?: boolean,
};

/** Reads a worker's result. For its lead, a result that is read counts as consumed and is not announced afterwards. */
export type ReadResult = {
  /** The worker's name. */
  name?: string,
  /** Instead of a name: this execution, also an earlier one of its worker. */
  execution?: ExecutionId | null,
  /** Instead of a name: the task of this job that `task_index` names. */
  job?: JobId | null,
  /** The task of the job, from 0. */
  task_index?: number | null,
  /** Block until it has ended (the lead only). */
  wait?: boolean,
  /** With `wait`: the caller's name for this call. A worker that is parked inside of it makes it again with the same one. */
  request_id?: string | null,
  /** Milliseconds after which a `wait` answers with the state as it is. */
  timeout_ms?: number | null,
  /** The tree, for an operator. */
  tree?: TreeId | null,
};

/** Asks for the usage of the caller's tree: the root sees all of it, a worker itself and what is below it. */
export type ReadUsage = {
  /** The tree, for an operator. */
  tree?: TreeId | null,
  /** Only this worker and what is below it. */
  name?: string | null,
  /** With a line for each worker. */
  each?: boolean,
  /** Only workers after this one. */
  after?: WorkerId | null,
};

/** The answer to [`Launch`]; on disk before it is sent. */
export type Receipt = {
  /** The job. */
  job: JobId,
  /** One entry per task, in order. */
  tasks: Array<TaskReceipt>,
  /** What the launcher should know, for instance that it takes in fewer results than it asks for. */
  warnings?: Array<string>,
  /** With `foreground`: the results, in the same order. */
  results?: Array<WorkerResult>,
};

/** How the work stands. Any report shows that the worker is alive; nothing has to be reported for its own sake. */
export type Report = {
  /** What the worker does now. */
  activity?: Activity | null,
  /** What this process has used since it started. */
  usage?: UsageReport | null,
  /** What it would answer if it ended now: kept, and labelled partial, should it end badly. Replaces the text before it. */
  text?: string | null,
};

/** Answer to [`Report`]. */
export type ReportReply = Record<symbol, never>;

/** The word `rest`. */
export type Rest = "rest";

/** Answer to [`ReadResult`]. */
export type ResultReply = { "ended": WorkerResult } | { "active": {
  /** The worker's name. */
  name: string,
  /** Its state, as in `status`. */
  state: WorkerState,
  /** Whether a `wait` ran out of time. */
  timed_out: boolean,
} };

/** As what a connection may speak. */
export type Role = "root" | "worker" | "observer" | "operator";

/** What a connection asks to be. */
export type RoleAsked = "root" | "worker" | "observer";

/** How a worker speaks. */
export type Runner = "command" | "worker";

/** A saved context: bytes in the message, or a file of the worker's own that stays as it is until the wake. */
export type SavedContext = { "bytes": Bytes } | { "path": Bytes };

/** What became of a message at once. */
export type Sent = { "status": "steering",
  /** Its execution. */
  execution: ExecutionId,
} | { "status": "after_end",
  /** The execution that ends. */
  execution: ExecutionId,
} | { "status": "resumed",
  /** The job of the resume. */
  job: JobId,
  /** The new execution. */
  execution: ExecutionId,
  /** Whether it has a slot. */
  placement: Placement,
  /** Its place in the queue, from 1. */
  place?: number | null,
};

/** What holds for a whole tree. Only the cap can be changed later. */
export type Settings = {
  /** Most live worker processes, at least 1. */
  cap: number,
  /** Budget slots: most workers that may ever be launched, at most 2^53-1. */
  budget: number,
  /** What a blocked wait of a plain command does under pressure. */
  blocked_wait: BlockedWait,
  /** What happens to processes that a worker leaves behind. */
  leftovers: Leftovers,
  /** What happens to active descendants of a worker that fails. */
  on_parent_failure: OnParentFailure,
  /** Milliseconds between TERM and KILL of a stop. */
  stop_grace_ms: number,
  /** Deepest nesting: a worker of the root has depth 1. */
  depth_max: number,
  /** What an interrupt reaches. */
  interrupt_scope: InterruptScope,
  /** How completions reach a lead's model. */
  delivery: DeliveryMode,
  /** Which completions are told together; never with `steer`. */
  join: Join,
  /** Most live workers per group, for groups that are named here. */
  group_caps: { [key in string]: number },
  /** Times and tries. */
  timing: Timing,
};

/** The worker has ended its turn and nothing will continue by itself. */
export type Settle = {
  /** Repeating it after a lost connection gets the same answer and changes nothing more. */
  request_id: string,
  /** What this turn answered; absent when it has said nothing new. An earlier turn's answer never takes its place. */
  answer?: string | null,
  /** What is needed to go on from here in another process: without one the worker cannot be parked or resumed. */
  context?: SavedContext | null,
  /** How the turn ended. */
  ended?: TurnEnd,
  /** The last word on what this process has used. */
  usage?: UsageReport | null,
};

/** Answer to [`Settle`]. */
export type SettleReply = {
  /** What is next. */
  next: Next,
};

/** Looks at a tree (root, worker) or at all trees (operator). */
export type Status = {
  /** Which tree, for an operator; without it the reply lists the trees. */
  tree?: TreeId | null,
  /** Only this worker and what descends from it. */
  name?: string | null,
  /** Continue after this worker: `next` of the page before. */
  after?: WorkerId | null,
};

/** Answer to [`Status`]. */
export type StatusReply = {
  /** The trees that were asked for. */
  trees: Array<TreeStatus>,
  /** The workers of the one tree, in the order of their launch; an operator who named no tree gets none. */
  workers: Array<WorkerStatus>,
  /** There are more: ask again with `after`. */
  next?: WorkerId | null,
};

/** Stops direct children and all that descends from them. One bad name, and nothing is touched. */
export type Stop = {
  /** Repeating it gets the same answer, and stops nobody who was resumed since; with other names it is an error. */
  request_id?: string | null,
  /** Which children. */
  names: Array<string>,
  /** Answer as soon as the stop is on disk, not when the last process is gone. */
  no_wait?: boolean,
};

/** Answer to [`Stop`]. */
export type StopReply = {
  /** One entry per name, in order. */
  workers: Array<Stopped>,
};

/** The two answers to a stop; what the journal says decides. */
export type StopResult = "stopped" | "already_settled";

/** What a stop did to one worker. */
export type Stopped = {
  /** The worker's name. */
  name: string,
  /** What was done. */
  result: StopResult,
};

/** The surroundings of the process that submits. */
export type Submitter = {
  /** Its whole environment. `ROOST_*` variables in it are replaced, never passed on. */
  env: Array<[Bytes, Bytes]>,
  /** Its working directory, absolute. */
  cwd: Bytes,
  /** Its file mode creation mask. */
  umask: number,
};

/** A tree that [`DaemonGc`] takes. */
export type SweptTree = {
  /** Which. */
  tree: TreeId,
  /** Its key. */
  key?: string | null,
  /** When it was closed. */
  closed_at_ms: number,
  /** How many workers it has. */
  workers: number,
  /** What their outputs and transcripts take. */
  bytes: number,
};

/** One task. */
export type Task = {
  /** Program and arguments. The program is looked up on the task's `PATH`. */
  argv: Array<Bytes>,
  /** How the worker speaks. */
  runner?: Runner,
  /** The text that the worker finds on its standard input; for the runner `worker`, the first item that it is delivered. */
  task?: string,
  /** A name that is unique in the tree; one is made up when absent. */
  name?: string | null,
  /** Working directory, absolute or relative to the submitter's. */
  cwd?: Bytes | null,
  /** Variables to set on top of the submitter's environment. */
  env?: { [name in string]: Bytes } | [Bytes, Bytes][],
  /** How many descendants it may launch over its life. */
  max_subagents_allowed?: Allowance,
  /** The group whose cap it counts against as well. */
  group?: string | null,
  /** Wall time in milliseconds from its first start, parked time included. */
  timeout_ms?: number | null,
};

/** What became of one task at acceptance. */
export type TaskReceipt = {
  /** The worker's name. */
  name: string,
  /** The worker. */
  worker: WorkerId,
  /** Its execution. */
  execution: ExecutionId,
  /** Started or queued. */
  status: Placement,
  /** Its place in the queue, from 1. */
  place?: number | null,
  /** Why it waits. */
  reason?: string | null,
};

/** Sends words to the caller's lead. Not a completion. Fails with `lead_parked` while the lead is parked. */
export type TellLead = {
  /** The same id with the same content is one message. */
  request_id: string,
  /** The text. */
  text: string,
};

/** Answer to [`TellLead`]. */
export type TellLeadReply = {
  /** The message. */
  message: MessageId,
};

/** Times and tries that hold for a whole tree. 0 is off; times are milliseconds. */
export type Timing = {
  /** A process that has parked is killed if it has not exited by then; 0 is never. */
  settle_to_exit_ms: number,
  /** Between TERM and KILL of what a main process leaves behind; 0 is KILL at once. */
  leftovers_grace_ms: number,
  /** Further tries of a start that failed for want of something that may come back, or of a wake; 0 is none. */
  start_retries: number,
  /** Pause before the first further try; the n-th is n times as long. */
  start_retry_ms: number,
  /** How long a slot must have been to spare before an early wake takes it; 0 is at once. */
  early_wake_dwell_ms: number,
  /** Admissions that may pass over a ready final wake, at least 1. */
  wake_bypass: number,
  /** A worker that was asked to park and has not answered by then is left alone for a while; 0 is no deadline. */
  park_deadline_ms: number,
  /** For how long. */
  park_again_ms: number,
  /** A process that speaks the protocol is killed and started again if it has not said hello by then; 0 is never. */
  startup_ms: number,
  /** A worker that speaks and shows no sign of life for so long, outside of a tool, has failed; 0 is never. */
  idle_ms: number,
  /** How long a completion is held back before its lead takes it in, so that a reading of it comes first; 0 is not at all. */
  hold_ms: number,
  /** Launches of one lead without a longer pause between them are told of together, where `join` says so. */
  join_window_ms: number,
  /** How long the first completion of such a group waits for the others; 0 is not at all. */
  join_hold_ms: number,
  /** How long the first straggler waits for the others; 0 is not at all. */
  join_straggler_ms: number,
};

/** A 128-bit capability. Compared in constant time, never printed by `Debug`; in text 32 hexadecimal digits. */
export type Token = string;

/** The caller has the ends that a [`Wait`] with `tell_later` answered with: they are not announced any more. */
export type Told = {
  /** Their executions. */
  executions: Array<ExecutionId>,
};

/** Answer to [`Told`]. */
export type ToldReply = Record<symbol, never>;

/** One root session and all that descends from it. Random, so that two state directories never share one. */
export type TreeId = string;

/** One tree. */
export type TreeStatus = {
  /** Its key, if it was opened with one. */
  key?: string | null,
  /** Most live workers per group, where it caps groups. */
  group_caps?: { [key in string]: number },
  /** Budget slots that the root may still reserve. */
  budget_remaining: number,
  /** The budget. */
  budget: number,
  /** When it was opened, Unix milliseconds. */
  opened_at_ms: number,
  /** When it was closed, Unix milliseconds. */
  closed_at_ms?: number | null,
  /** The tree. */
  tree: TreeId,
  /** The cap. */
  cap: number,
  /** Workers that hold a slot. */
  live: number,
  /** Workers in the queue. */
  queued: number,
  /** Workers whose context is saved and whose process is gone. */
  parked: number,
  /** Live workers that wait and have lent their slot. */
  blocked: number,
  /** Workers that have answered while descendants are active. */
  finishing: number,
  /** Executions that completed. */
  completed: number,
  /** Executions that failed. */
  failed: number,
  /** Executions that were stopped. */
  stopped: number,
  /** Whether admissions are held. */
  paused: boolean,
};

/** How a turn ended, as its worker sees it. The daemon draws the outcome from it by the order of contract section 9. */
export type TurnEnd = {
  /** It was cut off before it was through, for instance at a hard turn limit. */
  aborted?: boolean,
  /** Its last message failed. */
  error?: TurnError | null,
  /** It was told to come to an end (a soft limit) and did. */
  wrapped_up?: boolean,
  /** Its last message was cut at a length limit. With text it is an answer all the same. */
  truncated?: boolean,
};

/** What was wrong with the last message of a turn. */
export type TurnError = {
  /** In which part of the work. */
  kind: TurnErrorKind,
  /** In words. */
  message: string,
};

/** In which part of its work a turn failed. */
export type TurnErrorKind = "provider" | "turn_limit" | "protocol";

/** Counters of what was used so far. All of them only grow within one process. */
export type Usage = {
  /** Input tokens that no cache served. */
  input: number,
  /** Output tokens. */
  output: number,
  /** Input tokens read from a cache. */
  cache_read: number,
  /** Input tokens written to a cache. */
  cache_write: number,
  /** Cost in nano-dollars, of what has a known price. */
  cost: number,
  /** Whether some of it has no known price: then `cost` is less than the true cost, and 0 is not "free". */
  cost_unknown?: boolean,
  /** Model turns. */
  turns: number,
  /** Tool calls, delegation included. */
  tool_calls: number,
};

/** Answer to [`ReadUsage`]. */
export type UsageReply = {
  /** Which tree. */
  tree: TreeId,
  /** Of the whole that was asked for. `own` is the root's own, or that of the named worker. */
  totals: UsageTotals,
  /** Each worker, in the order of launch. */
  workers?: Array<WorkerUsage>,
  /** There are more after this one. */
  next?: WorkerId | null,
};

/** What a worker says it has used, cumulative over its process. */
export type UsageReport = {
  /** Numbers the reports of one process, from 1. One that is not newer than the last changes nothing. */
  sequence: number,
  /** How large its context is now, in tokens: a snapshot, never summed. */
  context_tokens?: number | null,
  /** Input tokens that no cache served. */
  input: number,
  /** Output tokens. */
  output: number,
  /** Input tokens read from a cache. */
  cache_read: number,
  /** Input tokens written to a cache. */
  cache_write: number,
  /** Cost in nano-dollars, of what has a known price. */
  cost: number,
  /** Whether some of it has no known price: then `cost` is less than the true cost, and 0 is not "free". */
  cost_unknown?: boolean,
  /** Model turns. */
  turns: number,
  /** Tool calls, delegation included. */
  tool_calls: number,
};

/** What a worker has used, alone and with all below it. */
export type UsageTotals = {
  /** Its own, over all its executions and processes. */
  own: Usage,
  /** The same with all its descendants, each execution once. */
  total: Usage,
  /** How many workers the total is of: identities, itself included, the root never. */
  workers: number,
  /** Whether some process of them was ended before it could report the last of it. */
  partial?: boolean,
  /** The context size that it last reported, in tokens. */
  context_tokens?: number | null,
};

/** The only version of JSON-RPC that is spoken. */
export type Version = "2.0";

/** Blocks until direct children have ended. Aborting it aborts only the wait. */
export type Wait = {
  /** Repeating it after a lost connection gets the same answer. */
  request_id: string,
  /** Which children; empty for all that the caller has launched and whose end it was not told yet. */
  names?: Array<string>,
  /** Answer at the first end instead of the last. */
  any?: boolean,
  /** The caller says with [`Told`] when it has taken the answer in; until then nothing of it counts as told, whatever dies in between. */
  tell_later?: boolean,
  /** Milliseconds after which the call answers with `timed_out`. */
  timeout_ms?: number | null,
};

/** Answer to [`Wait`]. */
export type WaitReply = {
  /** The children that have ended, in the order of their ends. */
  ended: Array<WorkerEnd>,
  /** The ones that have not. */
  pending?: Array<string>,
  /** Whether the time was over first. */
  timed_out: boolean,
};

/** What a woken command finds on its standard input, as one line of JSON. */
export type Wake = {
  /** Why it was woken. */
  reason: WakeReason,
  /** Direct children that have not ended yet. */
  active_children: number,
  /** What it is owed, in order; each is handed over once. */
  items: Array<Item>,
};

/** Why a worker was woken. */
export type WakeReason = "settled" | "completion";

/** Asks for a [`Progress`] now and a `progress` notification after every change, until the connection ends. */
export type Watch = Record<symbol, never>;

/** Answer to [`Hello`]. */
export type Welcome = {
  /** The version that this connection speaks. */
  protocol: number,
  /** The daemon's version. */
  daemon: string,
  /** As what the client was recognised. */
  role: Role,
  /** Budget slots that the caller may still reserve; absent for an operator. */
  budget_remaining?: number | null,
  /** The tree's interrupt generation: a launch that carries an older one is refused. */
  generation?: number | null,
  /** For the holder of a root's lease: its number. */
  lease?: number | null,
  /** For holders of a lease and for workers: how completions are to be taken in. */
  delivery?: DeliveryMode | null,
  /** Milliseconds for which a completion is to be held back before it is taken in, so that a reading of it comes first. */
  hold_ms?: number | null,
  /** For a worker: who it is. */
  worker?: WorkerWelcome | null,
};

/** These items were read by another way; who has not taken them in must drop them. */
export type Withdrawal = {
  /** Their numbers. */
  items: Array<number>,
};

/** How one worker ended. */
export type WorkerEnd = {
  /** The worker's name. */
  name: string,
  /** The worker. */
  worker: WorkerId,
  /** Its execution: the key for de-duplication. */
  execution: ExecutionId,
  /** The job that launched it. */
  job: JobId,
  /** Its index in that job, from 0. */
  task_index: number,
  /** How it ended. */
  outcome: Outcome,
};

/** A durable worker. Unique in its daemon's state directory, never reused. */
export type WorkerId = string;

/** The whole result of an execution. */
export type WorkerResult = {
  /** The answer as text; bytes that are not UTF-8 are replaced here and kept in the file. */
  answer: string,
  /** How many bytes the whole answer has. */
  answer_bytes: number,
  /** Whether `answer` is only the first part of it. */
  answer_truncated: boolean,
  /** Whether the answer is what a failed or stopped worker had written so far. */
  partial: boolean,
  /** Whether its last message was cut at a length limit of the model. */
  length_limited?: boolean,
  /** Whether its lead was told this before: read, or announced and taken in. */
  told_before?: boolean,
  /** What it used, alone and with all below it; absent where nothing was ever reported. */
  usage?: UsageTotals | null,
  /** Whether a part of its transcript could not be written. */
  lossy?: boolean,
  /** The file that holds the answer byte by byte; absent when the worker never had a process. */
  answer_path?: string | null,
  /** Processes that its own left behind, in a tree that keeps those: as they were when each of its processes ended. */
  leftovers?: Array<number>,
  /** The worker's name. */
  name: string,
  /** The worker. */
  worker: WorkerId,
  /** Its execution: the key for de-duplication. */
  execution: ExecutionId,
  /** The job that launched it. */
  job: JobId,
  /** Its index in that job, from 0. */
  task_index: number,
  /** How it ended. */
  outcome: Outcome,
};

/** The states of a worker. */
export type WorkerState = "queued" | "starting" | "running" | "waiting" | "blocked" | "parking" | "parked" | "wake_ready" | "waking" | "stopping" | "finishing" | "ended";

/** One worker. */
export type WorkerStatus = {
  /** Its name. */
  name: string,
  /** The worker. */
  worker: WorkerId,
  /** Its lead; absent when that is the root. */
  lead?: WorkerId | null,
  /** Its execution. */
  execution: ExecutionId,
  /** The job that launched it. */
  job: JobId,
  /** Its index in that job, from 0. */
  task_index: number,
  /** How deep it is: 1 for a worker of the root. */
  depth: number,
  /** Its group, where its tree caps that. */
  group?: string | null,
  /** Its state. */
  state: WorkerState,
  /** Its place in the queue, from 1, when queued. */
  place?: number | null,
  /** Why it waits, in words. */
  reason?: string | null,
  /** How it ended. */
  outcome?: Outcome | null,
  /** Processes so far. */
  epoch: Epoch,
  /** The live process. */
  pid?: number | null,
  /** Processes that its own left behind, in a tree that keeps those: as they were when each of its processes ended. */
  leftovers?: Array<number>,
  /** Direct children that have not ended. */
  active_children: number,
  /** Budget slots that it may still reserve. */
  budget_remaining: number,
  /** When it was accepted, Unix milliseconds. */
  accepted_at_ms: number,
  /** When it first started, Unix milliseconds. */
  started_at_ms?: number | null,
  /** When it ended, Unix milliseconds. */
  ended_at_ms?: number | null,
  /** Its standard output files, one per process, oldest first. */
  stdout_paths: Array<string>,
  /** Its standard error files, one per process, oldest first. */
  stderr_paths: Array<string>,
};

/** The usage of one worker. */
export type WorkerUsage = {
  /** Its name. */
  name: string,
  /** The worker. */
  worker: WorkerId,
  /** Its lead; absent for a child of the root. */
  lead?: WorkerId | null,
  /** How many executions it had. */
  executions: number,
  /** Its own, over all its executions and processes. */
  own: Usage,
  /** The same with all its descendants, each execution once. */
  total: Usage,
  /** How many workers the total is of: identities, itself included, the root never. */
  workers: number,
  /** Whether some process of them was ended before it could report the last of it. */
  partial?: boolean,
  /** The context size that it last reported, in tokens. */
  context_tokens?: number | null,
};

/** What a worker's process is told about itself. */
export type WorkerWelcome = {
  /** Its name. */
  name: string,
  /** Its execution. */
  execution: ExecutionId,
  /** Whether it goes on from a saved context, which `ROOST_CONTEXT` names. */
  wakes: boolean,
  /** The request id of the call in which the process before it was parked: to be made again, with the same id. */
  continues?: string | null,
};
