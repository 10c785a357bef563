//! One typed method per request. How long each may take and whether it is sent again after a broken connection is said here.

use std::time::{Duration, Instant};

use roost_proto::limits::{ACK_ITEMS_MAX, CONTEXT_BYTES_MAX};
use roost_proto::message::daemon::{
    DaemonGc, DaemonGcReply, DaemonMetrics, DaemonMetricsReply, DaemonRestart, DaemonRestartReply, DaemonStatus, DaemonStatusReply,
    DaemonStop, DaemonStopReply,
};
use roost_proto::message::deliver::{Ack, AckReply, Inbox, InboxReply};
use roost_proto::message::events::{EventsReply, ReadEvents};
use roost_proto::message::launch::{Launch, Receipt};
use roost_proto::message::park::{Park, ParkReply};
use roost_proto::message::result::{ReadResult, ResultReply, Told, Wait, WaitReply};
use roost_proto::message::session::Identity;
use roost_proto::message::status::{Status, StatusReply};
use roost_proto::message::stop::{Interrupt, InterruptReply, Stop, StopReply};
use roost_proto::message::tree::{Attach, Cap, CapReply, Close, Closed, Open, Opened, Pause, PauseReply, Progress, Settings, Watch};
use roost_proto::message::usage::{ReadUsage, UsageReply};
use roost_proto::message::words::{Message, MessageReply, TellLead, TellLeadReply};
use roost_proto::message::worker::{ParkDecline, ParkDeclineReply, ParkReady, ParkReadyReply, Report, ReportReply, Settle, SettleReply};
use roost_proto::rpc::ErrorKind;

use crate::connection::Connection;
use crate::error::Error;
use crate::policy::Policy;
use crate::submit;

impl Connection {
    /// Opens a tree, or attaches to the open one of this key. The connection speaks as its root afterwards.
    pub fn open(&mut self, settings: Settings, key: Option<String>, ephemeral: bool) -> Result<Opened, Error> {
        let request = Open { request_id: submit::request_id()?, key, settings, ephemeral };
        let opened = self.call_with(Policy::BRIEF, || request.clone())?;
        self.speak_as_root(&opened);
        Ok(opened)
    }

    /// Attaches to an open tree as its root.
    pub fn attach(&mut self, request: &Attach) -> Result<Opened, Error> {
        let opened = self.call_with(Policy::BRIEF, || request.clone())?;
        self.speak_as_root(&opened);
        Ok(opened)
    }

    /// Launches 1 to 20 tasks, all or nothing. With `foreground` it blocks until all have ended.
    pub fn launch(&mut self, request: &Launch) -> Result<Receipt, Error> {
        let policy = if request.foreground { Policy::WAITS } else { Policy::BRIEF };
        self.call_with(policy, || request.clone())
    }

    /// Blocks until direct children have ended.
    pub fn wait(&mut self, request: &Wait) -> Result<WaitReply, Error> {
        let left = left_of(request.timeout_ms);
        self.call_with(Policy::WAITS, || Wait { timeout_ms: left(), ..request.clone() })
    }

    /// Says that the ends of a `wait` with `tell_later` are known now, in as many calls as it takes.
    pub fn told(&mut self, request: &Told) -> Result<(), Error> {
        for executions in request.executions.chunks(ACK_ITEMS_MAX) {
            self.call_with(Policy::BRIEF, || Told { executions: executions.to_vec() })?;
        }
        Ok(())
    }

    /// Reads a result; with `wait` it blocks until there is one.
    pub fn result(&mut self, request: &ReadResult) -> Result<ResultReply, Error> {
        let policy = if request.wait { Policy::WAITS } else { Policy::BRIEF };
        let left = left_of(request.timeout_ms);
        self.call_with(policy, || ReadResult { timeout_ms: left(), ..request.clone() })
    }

    /// One page of the state of a tree, or of the list of trees.
    pub fn status(&mut self, request: &Status) -> Result<StatusReply, Error> {
        self.call_with(Policy::BRIEF, || request.clone())
    }

    /// The state of a tree, all pages of it.
    pub fn status_all(&mut self, request: &Status) -> Result<StatusReply, Error> {
        let mut whole = self.status(request)?;
        while let Some(after) = whole.next.take() {
            let page = self.status(&Status { after: Some(after), ..request.clone() })?;
            whole.trees = page.trees;
            whole.workers.extend(page.workers);
            whole.next = page.next.filter(|next| *next != after);
        }
        Ok(whole)
    }

    /// Stops direct children and what descends from them.
    pub fn stop(&mut self, request: &Stop) -> Result<StopReply, Error> {
        let policy = if request.no_wait { Policy::BRIEF } else { Policy::WAITS };
        self.call_with(policy, || request.clone())
    }

    /// Stops everything of the tree.
    pub fn interrupt(&mut self, request: &Interrupt) -> Result<InterruptReply, Error> {
        let policy = if request.no_wait { Policy::BRIEF } else { Policy::WAITS };
        self.call_with(policy, || request.clone())
    }

    /// Reads or sets the cap.
    pub fn cap(&mut self, request: &Cap) -> Result<CapReply, Error> {
        self.call_with(Policy::BRIEF, || request.clone())
    }

    /// Holds or releases admissions.
    pub fn pause(&mut self, request: &Pause) -> Result<PauseReply, Error> {
        self.call_with(Policy::BRIEF, || request.clone())
    }

    /// Closes the tree.
    pub fn close(&mut self, request: &Close) -> Result<Closed, Error> {
        let policy = if request.now { Policy::WAITS } else { Policy::BRIEF };
        let mut tries = 0;
        let closed = self.call_with(policy, || {
            tries += 1;
            request.clone()
        });
        match closed {
            // The first try closed it, and its answer was lost.
            Err(error) if tries > 1 && error.refusal() == Some(ErrorKind::TreeClosed) => Ok(Closed { stopped: 0 }),
            other => other,
        }
    }

    /// Asks for `progress` notifications; [`crate::Watcher`] reads them.
    pub(crate) fn watch(&mut self) -> Result<Progress, Error> {
        self.call_with(Policy::BRIEF, || Watch {})
    }

    /// Saves the context of the calling worker. Once this has returned `Ok` the process must exit.
    pub fn park(&mut self, request: &Park) -> Result<ParkReply, Error> {
        let bytes = request.context.as_ref().map_or(0, |context| context.0.len());
        if bytes > CONTEXT_BYTES_MAX {
            return Err(Error::TooLarge { what: "the context", bytes, limit: CONTEXT_BYTES_MAX });
        }
        // A file is read before it is answered, however large it is.
        let policy = if request.context_path.is_some() { Policy::WAITS } else { Policy::BRIEF };
        let mut tries = 0;
        let parked = self.call_with(policy, || {
            tries += 1;
            request.clone()
        });
        match parked {
            // The first try parked us, and its answer was lost: what is left to do is the same, to exit.
            Err(error) if tries > 1 && error.refusal() == Some(ErrorKind::Parked) => Ok(ParkReply {}),
            other => other,
        }
    }

    /// Sends words to a direct child; one that has ended and was saved is resumed by them.
    pub fn message(&mut self, request: &Message) -> Result<MessageReply, Error> {
        self.call_with(Policy::BRIEF, || request.clone())
    }

    /// Sends words to the caller's lead.
    pub fn tell_lead(&mut self, request: &TellLead) -> Result<TellLeadReply, Error> {
        self.call_with(Policy::BRIEF, || request.clone())
    }

    /// Reads what the caller is owed, and takes nothing of it in.
    pub fn inbox(&mut self) -> Result<InboxReply, Error> {
        self.call_with(Policy::BRIEF, || Inbox {})
    }

    /// Takes items in; only the holder of the lease may. After a break the second try finds gone what the first has taken in.
    pub fn ack(&mut self, request: &Ack) -> Result<AckReply, Error> {
        self.call_with(Policy::BRIEF, || request.clone())
    }

    /// One page of what a tree has used.
    pub fn usage(&mut self, request: &ReadUsage) -> Result<UsageReply, Error> {
        self.call_with(Policy::BRIEF, || request.clone())
    }

    /// What a tree has used, all pages of it.
    pub fn usage_all(&mut self, request: &ReadUsage) -> Result<UsageReply, Error> {
        let mut whole = self.usage(request)?;
        while let Some(after) = whole.next.take() {
            let page = self.usage(&ReadUsage { after: Some(after), ..request.clone() })?;
            whole.totals = page.totals;
            whole.workers.extend(page.workers);
            whole.next = page.next.filter(|next| *next != after);
        }
        Ok(whole)
    }

    /// Events of a tree, as many as fit; [`crate::EventReader`] reads on and follows.
    pub fn events(&mut self, request: &ReadEvents) -> Result<EventsReply, Error> {
        self.call_with(Policy::BRIEF, || request.clone())
    }

    /// Says how a worker's work stands.
    pub(crate) fn report(&mut self, request: &Report) -> Result<ReportReply, Error> {
        self.call_with(Policy::BRIEF, || request.clone())
    }

    /// Ends a worker's turn.
    pub(crate) fn settle(&mut self, request: &Settle) -> Result<SettleReply, Error> {
        self.call_with(Policy::BRIEF, || request.clone())
    }

    /// Answers a request to park with a saved context.
    pub(crate) fn park_ready(&mut self, request: &ParkReady) -> Result<ParkReadyReply, Error> {
        self.call_with(Policy::BRIEF, || request.clone())
    }

    /// Answers a request to park with no.
    pub(crate) fn park_decline(&mut self, request: &ParkDecline) -> Result<ParkDeclineReply, Error> {
        self.call_with(Policy::BRIEF, || request.clone())
    }

    /// How the daemon is.
    pub fn daemon_status(&mut self) -> Result<DaemonStatusReply, Error> {
        self.call_with(Policy::BRIEF, || DaemonStatus {})
    }

    /// What is counted of its work, as OpenMetrics text.
    pub fn daemon_metrics(&mut self) -> Result<DaemonMetricsReply, Error> {
        self.call_with(Policy::BRIEF, || DaemonMetrics {})
    }

    /// Ends the daemon; blocks until nothing runs any more.
    pub fn daemon_stop(&mut self, request: &DaemonStop) -> Result<DaemonStopReply, Error> {
        self.call_with(Policy::ONCE, || request.clone())
    }

    /// Forgets closed trees. A repeat is another sweep, which finds what is left.
    pub fn daemon_gc(&mut self, request: &DaemonGc) -> Result<DaemonGcReply, Error> {
        self.call_with(Policy::WAITS, || request.clone())
    }

    /// Starts the broker anew.
    pub fn daemon_restart(&mut self) -> Result<DaemonRestartReply, Error> {
        self.call_with(Policy::ONCE, || DaemonRestart {})
    }

    fn speak_as_root(&mut self, opened: &Opened) {
        self.speak_as(Identity { tree: opened.tree, worker: None, token: opened.token, epoch: None });
    }
}

/// What is left of a time limit at each try: a broken connection must not make it longer.
pub(crate) fn left_of(timeout_ms: Option<u64>) -> impl Fn() -> Option<u64> {
    let since = Instant::now();
    move || {
        let left = Duration::from_millis(timeout_ms?).saturating_sub(since.elapsed());
        // Rounded up, so that the first try carries the limit as it was given.
        Some(u64::try_from(left.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX))
    }
}
