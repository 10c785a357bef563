//! The requests of the public socket, one file per family, and the rule of their versions.
//!
//! Every request is a struct; [`Request`] ties it to its method name and its reply. Unknown fields are ignored, unknown methods
//! are refused by name. A new optional field keeps [`PROTOCOL_VERSION`]; anything else raises it.

pub mod daemon;
pub mod deliver;
pub mod events;
pub mod launch;
pub mod park;
pub mod result;
pub mod session;
pub mod status;
pub mod stop;
mod subject;
pub mod timing;
pub mod tree;
pub mod usage;
pub mod words;
pub mod worker;

use serde::{Serialize, de::DeserializeOwned};

/// The version of the public protocol that this build speaks.
pub const PROTOCOL_VERSION: u32 = 1;

/// A request and what answers it.
pub trait Request: Serialize + DeserializeOwned {
    /// The JSON-RPC method.
    const METHOD: &'static str;
    /// The `result` of the answer.
    type Reply: Serialize + DeserializeOwned;
}

macro_rules! requests {
    ($($request:ty => $reply:ty, $method:literal;)*) => {$(
        impl Request for $request {
            const METHOD: &'static str = $method;
            type Reply = $reply;
        }
    )*
        /// All methods, for `unknown_method` errors and tests.
        pub const METHODS: &[&str] = &[$($method),*];

        /// Shows every request with its reply, in the order of [`METHODS`].
        #[cfg(feature = "schema")]
        pub(crate) fn show_requests(to: &mut impl crate::schema::Visitor) {
            $(to.request::<$request, $reply>($method);)*
        }
    };
}

requests! {
    session::Hello => session::Welcome, "hello";
    tree::Open => tree::Opened, "open";
    tree::Attach => tree::Opened, "attach";
    tree::Cap => tree::CapReply, "cap";
    tree::Pause => tree::PauseReply, "pause";
    tree::Close => tree::Closed, "close";
    tree::Watch => tree::Progress, "watch";
    launch::Launch => launch::Receipt, "launch";
    result::Wait => result::WaitReply, "wait";
    result::Told => result::ToldReply, "told";
    result::ReadResult => result::ResultReply, "result";
    status::Status => status::StatusReply, "status";
    stop::Stop => stop::StopReply, "stop";
    stop::Interrupt => stop::InterruptReply, "interrupt";
    park::Park => park::ParkReply, "park";
    words::Message => words::MessageReply, "message";
    words::TellLead => words::TellLeadReply, "tell_lead";
    deliver::Inbox => deliver::InboxReply, "inbox";
    deliver::Ack => deliver::AckReply, "ack";
    worker::Report => worker::ReportReply, "report";
    worker::Settle => worker::SettleReply, "settle";
    worker::ParkReady => worker::ParkReadyReply, "park_ready";
    worker::ParkDecline => worker::ParkDeclineReply, "park_decline";
    usage::ReadUsage => usage::UsageReply, "usage";
    events::ReadEvents => events::EventsReply, "events";
    daemon::DaemonStatus => daemon::DaemonStatusReply, "daemon.status";
    daemon::DaemonMetrics => daemon::DaemonMetricsReply, "daemon.metrics";
    daemon::DaemonStop => daemon::DaemonStopReply, "daemon.stop";
    daemon::DaemonRestart => daemon::DaemonRestartReply, "daemon.restart";
    daemon::DaemonGc => daemon::DaemonGcReply, "daemon.gc";
}

macro_rules! notifications {
    ($($params:ty, $method:expr;)*) => {
        /// The methods of all notifications that a daemon sends.
        pub const NOTIFICATIONS: &[&str] = &[$($method),*];

        /// Shows the parameters of every notification, in the order of [`NOTIFICATIONS`].
        #[cfg(feature = "schema")]
        pub(crate) fn show_notifications(to: &mut impl crate::schema::Visitor) {
            $(to.notification::<$params>($method);)*
        }
    };
}

notifications! {
    tree::Progress, tree::PROGRESS;
    deliver::Delivery, deliver::DELIVER;
    deliver::Withdrawal, deliver::WITHDRAW;
    deliver::ParkAsk, deliver::PARK;
    deliver::LeaseLost, deliver::LEASE_LOST;
    events::EventsReply, events::EVENTS;
}
