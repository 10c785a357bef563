//! A disk that says that it has room and takes nothing, as under a quota: new work that was accepted before that was known.

use std::time::Duration;

use roost_tests::real::{Home, Tree, kind_of, shim};
use serde_json::json;

/// The journal's log takes nothing as long as the flag is there.
const QUOTA: &str = r#"#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
ssize_t pwrite64(int fd, const void *from, size_t size, off64_t at) {
    static typeof(&pwrite64) real;
    if (!real) real = (typeof(&pwrite64))dlsym(RTLD_NEXT, "pwrite64");
    char link[64], path[1024];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length > 0 ? length : 0] = 0;
    if (strstr(path, "/roost.db-wal") && getenv("FLAG") && !access(getenv("FLAG"), F_OK)) {
        errno = EDQUOT;
        return -1;
    }
    return real(fd, from, size, at);
}
"#;

#[test]
fn new_work_that_finds_no_room_is_refused_in_the_end_and_is_not_done() {
    let home = Home::new();
    let shim = shim(&home, "quota", QUOTA);
    let flag = home.file("flag");
    home.command(home.program("roostd")).arg("--detach").env("LD_PRELOAD", &shim).env("FLAG", &flag).run().ok();
    let (mut events, mut gate) = (home.fifo("events"), home.fifo("gate"));
    let tree = Tree::open(&home, &["--cap", "2"]);
    tree.spawn("runs", r#"echo up >"$F/events"; read x <"$F/gate"; printf done"#);
    assert_eq!(events.line(), "up");
    let before = home.daemon();
    // What is in the way of the ballast is in nobody's way but its own.
    std::fs::remove_file(home.state_dir().join("ballast")).unwrap();
    std::fs::create_dir(home.state_dir().join("ballast")).unwrap();
    home.script("flag", "");
    for asked in [&["spawn", "--name", "more", "--json", "--", "true"][..], &["cap", "3", "--json"], &["open", "--json"]] {
        let refusal = tree.roost(asked).within(Duration::from_secs(60)).run().expect(1).json();
        assert_eq!(refusal["error"]["kind"], "no_space", "{refusal}");
    }
    let after = home.daemon();
    assert!(after.supervisor == before.supervisor && after.broker != before.broker, "{after:?}");
    let mut wire = tree.wire();
    assert_eq!(kind_of(&wire.call("pause", &json!({"paused": true})).unwrap_err()), "no_space");
    assert_eq!(tree.worker("runs")["state"], "running");
    std::fs::remove_file(&flag).unwrap();
    std::fs::remove_dir(home.state_dir().join("ballast")).unwrap();
    gate.release(1);
    assert_eq!(tree.answer("runs"), "done");
    tree.spawn("more", "printf more");
    assert_eq!((tree.answer("more").as_str(), home.daemon()), ("more", after));
    assert_eq!(tree.status()["trees"][0]["cap"], 2);
}
