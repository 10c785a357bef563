//! A log that cannot be written: no reason to die of it.

use std::fs;

use roost_tests::real::{Home, SmallDisk, Tree, Watched};

#[test]
fn a_log_that_cannot_be_opened_is_named_and_nothing_starts() {
    let home = Home::new();
    fs::create_dir_all(home.state_dir().join("daemon.log")).unwrap();
    let done = home.roost(["status"]).run().expect(4);
    assert!(done.err().contains("daemon.log") && done.err().contains("irectory"), "{done}");
    fs::remove_dir(home.state_dir().join("daemon.log")).unwrap();
    home.roost(["status"]).run().ok();
}

#[test]
fn a_log_that_does_not_take_any_more_ends_nobody() {
    let home = Home::new();
    // The log alone is on the full disk; everything else has room.
    let Some(disk) = SmallDisk::mount(&home.file("log"), 1 << 10) else { return };
    fs::create_dir_all(home.state_dir()).unwrap();
    std::os::unix::fs::symlink(home.file("log").join("daemon.log"), home.state_dir().join("daemon.log")).unwrap();
    // Every connection and every start makes lines.
    let start = home.command(home.program("roostd")).arg("--detach").env("ROOST_LOG", "debug");
    start.run().ok();
    let before = home.daemon();
    disk.fill_up_to(0);
    let tree = Tree::open(&home, &["--cap", "2"]);
    tree.spawn("a", "printf a");
    assert_eq!(tree.answer("a"), "a");
    assert_eq!(home.daemon(), before, "both write to the log, and neither died of it");
    Watched::new(before.broker).kill();
    tree.spawn("b", "printf b");
    assert_eq!((tree.answer("b").as_str(), home.daemon().supervisor), ("b", before.supervisor));
    home.roost(["daemon", "stop"]).run().ok();
}
