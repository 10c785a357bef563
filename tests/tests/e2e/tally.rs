//! The main job: every directory of a real tree is a worker. Its totals are those of `find` and `wc`, at any cap.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use roost_tests::real::{Home, Sampler, Wire};
use serde_json::json;

use crate::many::MEMORY;

/// Names that break what is careless with names.
const ODD: [&[u8]; 12] = [
    b"plain",
    b"two words",
    b"new\nline",
    b"\xff\xfe not utf-8",
    b"-rf",
    b"it's \"quoted\"",
    b"$(echo x) `y`",
    b"back\\slash",
    b" leading and trailing ",
    "\u{e9}\u{1f980}".as_bytes(),
    b"*?[a]",
    b"tab\tbell\x07esc\x1b[2J",
];

/// A directory tree with odd names: wide (more than one launch of 20), deep, and with directories that hold nothing.
struct Forest {
    top: PathBuf,
    directories: usize,
    files: usize,
}

impl Forest {
    fn grow(top: PathBuf, directories: usize) -> Self {
        let mut forest = Self::plant(top.clone());
        // A chain deeper than any pool of slots.
        let mut deep = top.clone();
        for level in 0..30 {
            deep = forest.directory(&deep, level);
        }
        // One directory with 45 below it: three launches.
        let wide = forest.directory(&top, 3);
        for index in 0..45 {
            forest.directory(&wide, index);
        }
        let mut parents = vec![top];
        let mut index = 0;
        while forest.directories < directories {
            let parent = parents[index / 7].clone();
            parents.push(forest.directory(&parent, index));
            index += 1;
        }
        forest
    }

    /// One below the other, and nothing beside: deeper than any forest is wide. Short names, as a path has its bound too.
    fn chain(top: PathBuf, length: usize) -> Self {
        let mut forest = Self::plant(top.clone());
        let mut deep = top;
        for _ in 0..length {
            deep.push("d");
            fs::create_dir(&deep).unwrap();
            forest.directories += 1;
        }
        fs::write(deep.join("leaf"), "a line\n").unwrap();
        forest.files += 1;
        forest
    }

    /// The top with its largest file, and a link that is not followed.
    fn plant(top: PathBuf) -> Self {
        fs::create_dir(&top).unwrap();
        fs::write(top.join("largest -of\nall"), vec![b'\n'; 70_000]).unwrap();
        std::os::unix::fs::symlink("/", top.join("link")).unwrap();
        Self { top, directories: 0, files: 1 }
    }

    fn directory(&mut self, parent: &Path, index: usize) -> PathBuf {
        let mut name = ODD[index % ODD.len()].to_vec();
        name.extend_from_slice(format!("{}", self.directories).as_bytes());
        let path = parent.join(OsStr::from_bytes(&name));
        fs::create_dir(&path).unwrap();
        self.directories += 1;
        // Every third is empty; the others hold files with and without a last newline.
        for file in 0..index % 3 {
            let text = "a line\n".repeat(index % 11) + if file == 0 { "" } else { "no newline" };
            fs::write(path.join(OsStr::from_bytes(ODD[(index + file) % ODD.len()])), text).unwrap();
            self.files += 1;
        }
        path
    }

    /// What `find` and `wc` say.
    fn expected(&self, home: &Home) -> Vec<u8> {
        let count = |script: &str| {
            let done = home.sh(script).env("D", &self.top).run().ok();
            done.text().trim().to_owned()
        };
        let files = count(r#"find "$D" -type f -exec sh -c 'for f; do echo; done' _ {} + | wc -l"#);
        let lines = count(r#"find "$D" -type f -exec cat {} + | wc -l"#);
        let bytes = count(r#"find "$D" -type f -exec cat {} + | wc -c"#);
        assert_eq!(files, self.files.to_string());
        let mut text = format!("files {files}\nlines {lines}\nbytes {bytes}\nlargest ").into_bytes();
        text.extend_from_slice(self.top.join("largest -of\nall\n").as_os_str().as_bytes());
        text
    }
}

/// Says in which tree it is, and once it may go becomes the command that follows; a woken process need not say it again.
pub const TELLS: &str = r#"[ -n "${ROOST_WAKE-}" ] || { echo "$ROOST_TREE" >"$F/trees"; read x <"$F/go"; }; exec "$0" "$@""#;

fn tally(cap: u32, plant: impl FnOnce(PathBuf) -> Forest) {
    let home = Home::in_memory();
    let forest = plant(home.file("tree"));
    let expected = forest.expected(&home);
    home.start_daemon(&[]);
    let before = home.descriptors();
    let sampler = home.sample();
    let budget = (forest.directories + 1).to_string();
    let (mut trees, mut go) = (home.fifo("trees"), home.fifo("go"));
    let run = home
        .roost(["run", "--cap", &cap.to_string(), "--budget", &budget, "--", "sh", "-c", TELLS])
        .arg(home.program("examples/tally"))
        .arg(&forest.top)
        .start();
    let tree = trees.line();
    // It stands still until it was seen: the others may be shorter than a look.
    sampler.until(1);
    go.release(1);
    let (_, most_live) = follow(&home, &tree);
    let done = run.end_within(Duration::from_secs(150)).ok();
    let samples = sampler.stop();
    assert_eq!(String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&expected));
    // B19, the kernel's view: never more than the cap. And with room and work for more than one, more than one lived at a time.
    assert!(samples.count > 20 && (1..=cap as usize).contains(&samples.most), "{} live at cap {cap}", samples.most);
    assert!(most_live <= u64::from(cap) && (cap == 1 || most_live > 1), "at cap {cap} at most {most_live} lived");
    let peak = home.peak_kib();
    assert!(peak < MEMORY, "{peak} KiB at most");
    rests(&home, before);
}

/// R3: nothing lives, no slot is used, no zombie is left, and the daemon has as many descriptors as before.
fn rests(home: &Home, before: (usize, usize)) {
    assert!(home.workers().is_empty());
    let status = home.daemon_status();
    assert_eq!((&status["live"], &status["queued"], &status["trees"]), (&json!(0), &json!(0), &json!(0)));
    assert_eq!(home.zombies(), 0);
    let after = home.descriptors();
    assert!(after.0.abs_diff(before.0) <= 3 && after.1.abs_diff(before.1) <= 3, "{before:?} -> {after:?}");
}

// B19.
#[test]
fn a_thousand_directories_at_cap_1() {
    tally(1, |top| Forest::grow(top, 1_000));
}

#[test]
fn a_thousand_directories_at_cap_2() {
    tally(2, |top| Forest::grow(top, 1_000));
}

// The tree of 2,000 workers whose live processes are sampled.
#[test]
fn two_thousand_directories_at_cap_8() {
    tally(8, |top| Forest::grow(top, 2_000));
}

// As deep as nobody nests by hand: every ancestor of the one that runs is parked.
#[test]
fn a_chain_of_300_at_cap_1() {
    tally(1, |top| Forest::chain(top, 300));
}

#[test]
fn tally_starts_itself_under_roost_and_says_what_is_missing() {
    let home = Home::new();
    let forest = Forest::grow(home.file("tree"), 80);
    let done = home.command(home.program("examples/tally")).arg(&forest.top).run().ok();
    assert_eq!(done.stdout, forest.expected(&home));
    let done = home.roost(["run", "--budget", "50", "--"]).arg(home.program("examples/tally")).arg(&forest.top).run().expect(1);
    assert!(done.err().contains("--budget"), "{done}");
}

#[test]
fn the_same_with_blocking_waits_lends_slots() {
    let home = Home::new();
    if !home.has_python("examples/tally_wait.py") {
        return;
    }
    let forest = Forest::grow(home.file("tree"), 60);
    let expected = forest.expected(&home);
    home.start_daemon(&[]);
    let sampler = home.sample();
    let (mut trees, mut go) = (home.fifo("trees"), home.fifo("go"));
    let run = home
        .roost(["run", "--cap", "1", "--budget", "200", "--", "sh", "-c", TELLS, "python3"])
        .arg(home.example("tally_wait.py"))
        .arg(&forest.top)
        .within(Duration::from_secs(90))
        .start();
    go.release(1);
    // Whoever waits is shown as blocked while another has its slot.
    let (most_blocked, most_live) = follow(&home, &trees.line());
    let done = run.end_within(Duration::from_secs(90)).ok();
    assert_eq!(String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&expected));
    let samples = Sampler::stop(sampler);
    assert!(most_blocked >= 30, "a chain of 30 waits above its leaf; {most_blocked} were shown as blocked");
    assert!(most_live <= 1, "{most_live}");
    assert!(samples.most as u64 <= 1 + most_blocked, "{} processes, {most_blocked} blocked", samples.most);
}

/// Follows the tree to its end; returns how many were blocked and live at most.
fn follow(home: &Home, tree: &str) -> (u64, u64) {
    let mut wire = home.wire();
    wire.call("attach", &json!({"tree": tree})).unwrap();
    let first = wire.call("watch", &json!({})).unwrap();
    let (mut blocked, mut live) = (0, 0);
    let mut see = |progress: &serde_json::Value| {
        blocked = blocked.max(progress["blocked"].as_u64().unwrap());
        live = live.max(progress["live"].as_u64().unwrap());
        ["live", "queued", "parked", "blocked", "finishing"].iter().all(|count| progress[count] == 0) && progress["completed"] != 0
    };
    let mut over = see(&first);
    while !over {
        let notification = Wire::answer(&mut wire, Duration::from_secs(60)).expect("progress");
        over = see(&notification["params"]);
    }
    (blocked, live)
}

#[test]
fn a_directory_that_has_gone_counts_nothing_and_one_that_came_is_told() {
    let home = Home::new();
    let tally = home.example("tally");
    let child = |directory: &str, descendants: &str| {
        let run = home.roost(["run", "--descendants", descendants, "--"]).arg(&tally).args(["--child", "--"]);
        run.arg(home.file(directory)).run()
    };
    let gone = child("gone", "0").ok();
    assert_eq!((&gone.json()["files"], &gone.json()["largest"]), (&json!(0), &json!(null)));
    fs::create_dir_all(home.file("top/new")).unwrap();
    let said = child("top", "0").expect(1).err();
    assert!(said.contains("1 directories below it") && said.contains("start tally again"), "{said}");
}
