//! The rows of the table, in its order: each measures both sides, round by round where times are compared, and yields figures.

mod boot;
mod calls;
mod command;
mod company;
mod memory;
mod nested;
mod parking;
mod queue;
mod slots;
mod stop;
mod storm;
mod written;

use crate::figure::Figure;
use crate::plan::Plan;

/// A row and how it is measured.
pub type Row = (&'static str, fn(&Plan) -> Vec<Figure>);

pub const ROWS: [Row; 14] = [
    ("storm", storm::storm),
    ("launch", calls::one_client),
    ("clients", calls::many_clients),
    ("slot", slots::reused),
    ("completion", slots::told),
    ("parking", parking::parking),
    ("nested", nested::nested),
    ("queue", queue::flat),
    ("memory", memory::memory),
    ("journal", written::written),
    ("command", command::command),
    ("start", boot::boot),
    ("company", company::company),
    ("stop", stop::stop),
];
