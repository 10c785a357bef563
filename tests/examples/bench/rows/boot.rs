//! How soon a daemon answers: over an empty journal, over one with many workers, and over one in which many more have ended.

use std::process::{Command, Stdio};

use roost_tests::real::Home;
use serde_json::json;

use crate::figure::{Figure, Target, Unit, quantile};
use crate::journal;
use crate::limits::seconds;
use crate::plan::Plan;
use crate::played::now;

const COLD_MAX: f64 = 0.05;
const RECOVERY_MAX: f64 = 1.0;
/// Noise, and not growth.
const GROWTH_MAX: f64 = 1.2;

pub fn boot(plan: &Plan) -> Vec<Figure> {
    let (queued, ended) = (plan.counts.queues[2], plan.counts.ended);
    let cold: Vec<f64> = (0..plan.rounds).map(|_| cold(plan)).collect();
    let over = |ended| {
        let home = Home::within(&plan.below);
        journal::generate(&home.state_dir(), queued, ended);
        home
    };
    let (few, many) = (over(0), over(ended));
    let rounds: Vec<_> = (0..plan.rounds).map(|_| (recovery(&many, queued), recovery(&few, queued))).collect();
    let measured = rounds.iter().map(|(many, _)| *many).collect();
    vec![
        Figure::alone("start of the daemon to its first reply", Unit::Seconds, cold, Target::AtMost(COLD_MAX)),
        Figure::alone(format!("the same over {queued} queued and {ended} ended"), Unit::Seconds, measured, Target::AtMost(RECOVERY_MAX)),
        Figure::ratio(
            format!("the same over {queued} queued and {ended} ended"),
            &rounds,
            format!("{queued} queued"),
            Target::AtMost(GROWTH_MAX),
        ),
    ]
}

/// The median of some starts, each over nothing.
fn cold(plan: &Plan) -> f64 {
    let starts = (0..plan.counts.starts).map(|_| first_reply(&Home::within(&plan.below))).collect::<Vec<_>>();
    quantile(&starts, 0.5)
}

/// Ends the daemon again, as a crash does: the journal stays as it is.
fn recovery(home: &Home, queued: usize) -> f64 {
    let took = first_reply(home);
    let status = home.daemon_status();
    assert_eq!(status["queued"], json!(queued));
    home.kill_daemon();
    took
}

fn first_reply(home: &Home) -> f64 {
    let mut command = Command::new(home.program("roostd"));
    command.args(["--detach", "--idle-exit", "0"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.env("ROOST_STATE_DIR", home.state_dir());
    let begun = now();
    assert!(command.status().expect("the daemon").success(), "{}", home.log());
    home.wire().call("daemon.status", &json!({})).expect("an operator may ask");
    seconds(begun, now())
}
