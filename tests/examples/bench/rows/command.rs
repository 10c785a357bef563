//! By the command: `roost spawn` of one task, and how soon that task begins on an idle queue.

use std::process::{Command, Stdio};

use roost_tests::real::{Home, Tree};

use crate::daemon::{self, Client, NO_OP, outputs, stamps};
use crate::figure::{Figure, Target, quantile};
use crate::limits::seconds;
use crate::plan::Plan;
use crate::played::{now, own};

pub fn command(plan: &Plan) -> Vec<Figure> {
    let home = daemon::daemon(plan);
    let tree = daemon::tree(&home, 8);
    let mut client = Client::new(&tree);
    let own = own();
    let (mut calls, mut starts) = (Vec::new(), Vec::new());
    for _ in 0..plan.rounds {
        let (mut limits, mut spawns, mut asked) = (Vec::new(), Vec::new(), Vec::new());
        let before = outputs(&home).len();
        for _ in 0..plan.counts.commands {
            limits.push(timed(Command::new(NO_OP)));
            asked.push(now());
            spawns.push(timed(spawn(&home, &tree, &own)));
            client.wait(&[]);
        }
        let began = outputs(&home).into_iter().skip(before).map(|text| stamps(&text).0);
        let until: Vec<f64> = asked.iter().zip(began).map(|(asked, began)| seconds(*asked, began)).collect();
        let limit = quantile(&limits, 0.5);
        calls.push((quantile(&spawns, 0.5), limit));
        starts.push((quantile(&until, 0.5), limit));
    }
    vec![
        Figure::ratio("`roost spawn` of one task, p50", &calls, "running `true` once", Target::AtMost(2.0)),
        Figure::ratio(
            "`roost spawn` to the first word of its task on an idle queue, p50",
            &starts,
            "running `true` once",
            Target::AtMost(3.0),
        ),
    ]
}

fn spawn(home: &Home, tree: &Tree<'_>, own: &str) -> Command {
    let mut command = Command::new(home.program("roost"));
    command.args(["spawn", "--", own, "play-stamp"]);
    command.env("ROOST_STATE_DIR", home.state_dir()).env("ROOST_TREE", &tree.id).env("ROOST_TOKEN", &tree.token);
    command
}

/// Seconds from its start to its end.
fn timed(mut command: Command) -> f64 {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let begun = now();
    let status = command.status().expect("a program that can be started");
    let took = seconds(begun, now());
    assert!(status.success());
    took
}
