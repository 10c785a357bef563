//! `roost gc`: what it lists, what it takes, what it leaves, and that the room comes back.

use std::fs;
use std::path::PathBuf;

use roost_tests::real::{Home, Tree};
use serde_json::{Value, json};

/// A closed tree with one worker that has written so many bytes, read or not.
fn closed<'h>(home: &'h Home, bytes: usize, is_read: bool) -> Tree<'h> {
    let tree = Tree::open(home, &[]);
    tree.spawn("w", &format!("head -c {bytes} /dev/zero | tr '\\0' x"));
    if is_read {
        tree.result("w");
    } else {
        tree.until_state("w", "ended");
    }
    tree.roost(["close"]).run().ok();
    tree
}

fn files(home: &Home) -> Vec<PathBuf> {
    let folders = ["executions", "transcripts"].map(|folder| fs::read_dir(home.state_dir().join(folder)).into_iter().flatten());
    folders.into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
}

fn ids(swept: &Value) -> Vec<String> {
    swept["trees"].as_array().unwrap().iter().map(|tree| tree["tree"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn what_is_old_and_read_goes_with_its_files_and_what_nobody_has_read_stays() {
    let home = Home::new();
    let (read, unread, open) = (closed(&home, 100_000, true), closed(&home, 10, false), Tree::open(&home, &[]));
    let before = files(&home);
    let gc = |flags: &[&str]| home.roost(["gc", "--json"]).args(flags).run().ok().json();
    assert_eq!(gc(&[])["trees"], json!([]), "nothing is 30 days old");
    let dry = gc(&["--older-than", "0", "--dry-run"]);
    assert_eq!((ids(&dry), &dry["workers"], &dry["kept_unread"]), (vec![read.id.clone()], &json!(1), &json!(1)));
    assert!(dry["bytes"].as_u64().unwrap() >= 100_000, "{dry}");
    assert_eq!(files(&home), before);
    let text = home.roost(["gc", "--older-than", "0"]).run().ok();
    assert!(text.text().starts_with(&format!("{}  closed ", read.id)), "{text}");
    for part in ["1 tree with 1 worker forgotten", "1 tree kept: nobody has read", "journal "] {
        assert!(text.text().contains(part), "{text}");
    }
    let left = files(&home);
    assert!(!left.is_empty() && left.len() < before.len(), "{left:?}");
    // Who was forgotten is unknown, who was not is as before.
    assert!(read.roost(["result", "w"]).run().code() != 0);
    assert_eq!(unread.answer("w"), "x".repeat(10));
    assert_eq!(ids(&gc(&["--older-than", "0"])), [unread.id.as_str()]);
    assert_eq!(home.roost(["status", "--json"]).run().ok().json()["trees"][0]["tree"], open.id.as_str());
    assert!(home.log().contains("forgotten"), "a sweep is logged");
}

#[test]
fn by_size_the_oldest_go_until_the_rest_fits() {
    let home = Home::new();
    let trees: Vec<Tree<'_>> = (0..3).map(|_| closed(&home, 1 << 20, true)).collect();
    let gc = |size: &str| home.roost(["gc", "--json", "--max-size", size]).run().ok().json();
    assert_eq!(ids(&gc("4M")), Vec::<String>::new());
    assert_eq!(ids(&gc("1500K")), [trees[0].id.as_str(), trees[1].id.as_str()]);
    assert_eq!(ids(&gc("0")), [trees[2].id.as_str()]);
    let refused = home.roost(["gc", "--max-size", "lots"]).run().expect(2);
    assert!(refused.err().contains("500M"), "{refused}");
}

#[test]
fn the_journal_gives_its_room_back_and_goes_on() {
    let home = Home::new();
    let tree = Tree::open(&home, &[]);
    // What tasks say lies in the journal.
    let text = "x".repeat(400_000);
    for number in 0..10 {
        let name = format!("w{number}");
        tree.launch(json!([{"argv": ["true"], "name": name, "task": text}]));
        tree.result(&name);
    }
    tree.roost(["close"]).run().ok();
    let kept = Tree::open(&home, &[]);
    kept.spawn("k", "echo kept");
    let swept = home.roost(["gc", "--json", "--older-than", "0"]).run().ok().json();
    let (before, after) = (swept["journal_bytes_before"].as_u64().unwrap(), swept["journal_bytes"].as_u64().unwrap());
    assert!(before > 4_000_000 && after < 1_000_000, "{swept}");
    let size = |name: &str| fs::metadata(home.state_dir().join(name)).map_or(0, |found| found.len());
    assert!(size("roost.db") + size("roost.db-wal") < 1_000_000);
    // The next broker reads what is left.
    home.kill_broker();
    assert_eq!(kept.answer("k"), "kept\n");
    kept.spawn("l", "echo more");
    assert_eq!(kept.answer("l"), "more\n");
    home.kill_daemon();
    assert_eq!(kept.roost(["result", "k", "--json"]).run().ok().json()["answer"], "kept\n");
}
