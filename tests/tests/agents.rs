//! Workers that speak the worker protocol, on real daemons and real sockets: `fake-agent` plays them, by script or step by step.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

#[path = "agents/delivery.rs"]
mod delivery;
#[path = "agents/kills.rs"]
mod kills;
#[path = "agents/leads.rs"]
mod leads;
#[path = "agents/messages.rs"]
mod messages;
#[path = "agents/outcomes.rs"]
mod outcomes;
#[path = "agents/parking.rs"]
mod parking;
#[path = "agents/texts.rs"]
mod texts;
#[path = "agents/usage.rs"]
mod usage;
#[path = "agents/watchdogs.rs"]
mod watchdogs;
