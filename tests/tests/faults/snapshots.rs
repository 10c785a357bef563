//! A snapshot for which there is no room: the daemon goes on without it, says so, and writes it later. Nothing is lost either way.

use roost_tests::real::{Home, SmallDisk, Tree, journal_file, shim};
use rusqlite::{Connection, OpenFlags};
use serde_json::json;

/// Records after which a snapshot is due.
const DUE: u64 = 10_000;
/// And after which it is tried again.
const AGAIN: u64 = 1_000;

/// So many records that change nothing in the end. Returns the cap that was set last.
fn records(tree: &Tree<'_>, count: u64) -> u64 {
    let mut wire = tree.wire();
    let mut cap = 0;
    for sent in (0..count).step_by(100) {
        for one in 0..100 {
            cap = 5 + (sent + one) % 2;
            wire.send("cap", &json!({"cap": cap}));
        }
        for _ in 0..100 {
            let answer = wire.answer(std::time::Duration::from_secs(60)).expect("an answer");
            assert!(answer["error"].is_null(), "{answer}");
        }
    }
    cap
}

/// The records that snapshots were made of. Only after the daemon has ended in order.
fn snapshots(home: &Home) -> Vec<u64> {
    let connection = Connection::open_with_flags(journal_file(home), OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let mut statement = connection.prepare("SELECT seq FROM snapshots").unwrap();
    statement.query_map((), |row| row.get::<_, i64>(0)).unwrap().map(|seq| u64::try_from(seq.unwrap()).unwrap()).collect()
}

fn restart(home: &Home) {
    home.roost(["daemon", "stop", "--now"]).run().ok();
    home.roost(["daemon", "start"]).run().ok();
}

#[test]
fn on_a_nearly_full_disk_a_snapshot_is_put_off_and_written_when_there_is_room() {
    let home = Home::new();
    let Some(disk) = SmallDisk::mount(&home.state_dir(), 64 << 10) else { return };
    let tree = Tree::open(&home, &["--cap", "1"]);
    tree.spawn("told", "printf told");
    assert_eq!(tree.answer("told"), "told");
    tree.spawn("untold", "printf untold");
    tree.until_state("untold", "ended");
    let pids = home.daemon();
    disk.fill_up_to(14 << 20);
    let cap = records(&tree, DUE + 200);
    assert!(home.log().contains("no snapshot was written"), "{}", home.log());
    assert_eq!(home.daemon(), pids);
    // Without it the next broker reads all records.
    home.kill_broker();
    assert_eq!(tree.roost(["cap", "--json"]).run().ok().json()["cap"], cap);
    disk.make_room();
    records(&tree, AGAIN + 200);
    restart(&home);
    assert_eq!(tree.roost(["cap", "--json"]).run().ok().json()["cap"], cap);
    assert_eq!(tree.answer("untold"), "untold");
    home.roost(["daemon", "stop"]).run().ok();
    assert!(matches!(snapshots(&home)[..], [seq] if seq > DUE), "{:?}", snapshots(&home));
}

/// A disk that has room for small commits and for no large one, as long as the flag is there.
const QUOTA: &str = r#"#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static size_t unsynced;
static int is_log(int fd) {
    char link[64], path[1024];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    return strstr(path, "/roost.db-wal") != NULL;
}
#define REAL(name) static typeof(&name) real; if (!real) real = (typeof(&name))dlsym(RTLD_NEXT, #name)
int fsync(int fd) { REAL(fsync); if (is_log(fd)) unsynced = 0; return real(fd); }
int fdatasync(int fd) { REAL(fdatasync); if (is_log(fd)) unsynced = 0; return real(fd); }
ssize_t pwrite64(int fd, const void *from, size_t size, off64_t at) {
    REAL(pwrite64);
    if (is_log(fd) && (unsynced += size) > 500 << 10 && getenv("FLAG") && !access(getenv("FLAG"), F_OK)) {
        unsynced = 0;
        errno = ENOSPC;
        return -1;
    }
    return real(fd, from, size, at);
}
"#;

#[test]
fn a_snapshot_that_does_not_fit_takes_nothing_with_it() {
    let home = Home::new();
    let shim = shim(&home, "quota", QUOTA);
    let flag = home.script("flag", "");
    home.command(home.program("roostd")).arg("--detach").env("LD_PRELOAD", &shim).env("FLAG", &flag).run().ok();
    let tree = Tree::open(&home, &["--cap", "1", "--budget", "10000"]);
    tree.roost(["pause"]).run().ok();
    let tasks = home.script("tasks", &json!(vec![json!({"argv": ["true"]}); 20]).to_string());
    for _ in 0..60 {
        tree.roost(["spawn", "--tasks"]).arg(&tasks).run().ok();
    }
    let pids = home.daemon();
    let cap = records(&tree, DUE);
    assert!(home.log().contains("there is no room for it"), "{}", home.log());
    assert!(!home.log().contains("is full"), "{}", home.log());
    std::fs::remove_file(&flag).unwrap();
    records(&tree, AGAIN + 200);
    assert_eq!(home.daemon(), pids);
    home.kill_daemon();
    home.roost(["daemon", "start"]).run().ok();
    let status = tree.status();
    assert_eq!((status["workers"].as_array().unwrap().len(), &status["trees"][0]["cap"]), (1_200, &json!(cap)));
    home.roost(["daemon", "stop", "--now"]).run().ok();
    assert!(matches!(snapshots(&home)[..], [seq] if seq > DUE), "{:?}", snapshots(&home));
}
