//! What the journal keeps of a worker that did nothing, from its launch to its outcome.

use roost_tests::real::{Home, Tree, journal_file};
use rusqlite::{Connection, OpenFlags};

use crate::daemon::{self, Client, NO_OP, task};
use crate::figure::{Figure, Target, Unit};
use crate::plan::Plan;

const BYTES_MAX: f64 = 500.0;

pub fn written(plan: &Plan) -> Vec<Figure> {
    let count = plan.counts.journalled;
    let home = daemon::daemon(plan);
    let tree = daemon::tree(&home, 8);
    run(&tree, 1);
    let before = at_rest(&home);
    home.start_daemon(&["--idle-exit", "0"]);
    run(&tree, count);
    let after = at_rest(&home);
    let each = (after - before) as f64 / count as f64;
    let journal = open(&home);
    let environments: i64 = journal.query_row("SELECT count(*) FROM environments", (), |row| row.get(0)).expect("a count");
    assert_eq!(environments, 1, "an environment is kept more than once");
    vec![Figure::alone(
        format!("bytes of the journal for each of {count} no-op workers"),
        Unit::Bytes,
        vec![each],
        Target::AtMost(BYTES_MAX),
    )]
}

fn run(tree: &Tree<'_>, count: usize) {
    let mut client = Client::new(tree);
    client.storm(count, &task(&[NO_OP]));
    client.wait(&[]);
}

/// Ends the daemon in order; then the log is in the file. How many bytes of it are in use.
fn at_rest(home: &Home) -> i64 {
    home.roost(["daemon", "stop"]).run().ok();
    let number = |name: &str| open(home).pragma_query_value(None, name, |row| row.get::<_, i64>(0)).expect("a number");
    (number("page_count") - number("freelist_count")) * number("page_size")
}

fn open(home: &Home) -> Connection {
    Connection::open_with_flags(journal_file(home), OpenFlags::SQLITE_OPEN_READ_ONLY).expect("the journal")
}
