//! What a worker is started with: its submitter's environment, directory and umask, clean signals and descriptors, no terminal.

use std::collections::BTreeMap;
use std::time::Duration;

use roost_tests::real::{Home, Tree, Watched, find, outcome_of};
use serde_json::json;

fn variables(output: &[u8]) -> BTreeMap<String, String> {
    let pairs = output.split(|byte| *byte == 0).filter(|pair| !pair.is_empty());
    pairs.filter_map(|pair| std::str::from_utf8(pair).ok()?.split_once('=')).map(|(k, v)| (k.into(), v.into())).collect()
}

// B07.
#[test]
fn a_worker_has_its_submitters_environment_and_none_of_the_daemons() {
    let home = Home::new();
    let daemon = home.command(home.program("roostd")).arg("--detach");
    daemon.env("A", "daemon").env("ONLY_DAEMON", "1").env("PATH", "/usr/bin:/bin").run().ok();
    let tree = Tree::open(&home, &[]);
    let programs = home.program("roost").parent().unwrap().to_str().unwrap().to_owned();
    let path = format!("/tmp/x:{programs}:/usr/bin:/bin");
    let submit = |args: &[&str]| {
        let client = tree.roost(args).env("A", "client").env("ONLY_CLIENT", "1").env("E", "").env("M", "l1\nl2").env("PATH", &path);
        client.env("ROOST_WAKE", "1").env("ROOST_CONTEXT", "/nowhere").env("ROOST_NO_START", "1").run().ok();
    };
    submit(&["spawn", "--name", "w", "--", "env", "-0"]);
    let script = "roost spawn --name child --env Z=1 -- env -0 >&2; roost spawn --name sibling -- env -0 >&2; exec env -0";
    submit(&["spawn", "--name", "lead", "--descendants", "2", "--", "sh", "-c", script]);
    tree.roost(["wait", "w", "lead"]).run().ok();
    let of = |name: &str| variables(&tree.roost(["result", name, "--raw"]).run().ok().stdout);
    let (w, lead, child, sibling) = (of("w"), of("lead"), of("child"), of("sibling"));
    for worker in [&w, &child, &sibling] {
        let has = |name: &str| worker.get(name).map(String::as_str);
        assert_eq!((has("A"), has("ONLY_CLIENT"), has("E"), has("M")), (Some("client"), Some("1"), Some(""), Some("l1\nl2")));
        assert_eq!((has("PATH"), has("ONLY_DAEMON")), (Some(path.as_str()), None));
        assert_eq!((has("ROOST_WAKE"), has("ROOST_CONTEXT"), has("ROOST_NO_START")), (None, None, None));
        assert_eq!(has("ROOST_STATE_DIR"), home.state_dir().to_str());
    }
    assert_eq!((child.get("Z").map(String::as_str), sibling.get("Z"), lead.get("Z")), (Some("1"), None, None));
    let tokens: Vec<&String> = [&w, &lead, &child, &sibling].iter().map(|worker| &worker["ROOST_TOKEN"]).collect();
    for (index, token) in tokens.iter().enumerate() {
        let holders = [&w, &lead, &child, &sibling].iter().filter(|worker| worker.values().any(|value| value == *token)).count();
        assert_eq!(holders, 1, "token {index}");
    }
}

#[test]
fn a_program_is_looked_up_on_the_submitters_path() {
    let home = Home::new();
    home.command(home.program("roostd")).arg("--detach").env("PATH", "/usr/bin:/bin").run().ok();
    std::fs::create_dir(home.file("bin")).unwrap();
    std::fs::copy("/bin/echo", home.file("bin/only-here")).unwrap();
    let path = format!("{}:/usr/bin:/bin", home.file("bin").display());
    assert_eq!(home.roost(["run", "--", "only-here", "found"]).env("PATH", path).run().ok().text(), "found\n");
}

// B08 (a), (b), and what goes with it.
#[test]
fn a_worker_has_no_terminal_an_empty_input_and_a_session_of_its_own() {
    let home = Home::new();
    let (mut events, mut gate) = (home.fifo("events"), home.fifo("gate"));
    let tree = Tree::open(&home, &[]);
    tree.roost(["spawn", "--name", "cat", "--", "cat"]).run().ok();
    let tty = tree.spawn("tty", "read x </dev/tty; echo $?");
    assert_eq!(tty["status"], "started");
    let done = tree.roost(["wait", "cat", "tty"]).within(Duration::from_secs(10)).run().ok();
    assert!(done.took < Duration::from_secs(2), "{done}");
    assert_eq!((tree.answer("cat").as_str(), tree.answer("tty").trim() != "0"), ("", true));
    tree.spawn("w", r#"echo up >"$F/events"; read x <"$F/gate""#);
    assert_eq!(events.line(), "up");
    let worker = find(tree.pid("w")).unwrap();
    assert_eq!((worker.session, worker.terminal), (worker.pid, 0));
    let pids = home.daemon();
    for pid in [pids.supervisor, pids.broker] {
        let process = find(pid).unwrap();
        assert_eq!(process.terminal, 0);
        assert_ne!(process.session, find(std::process::id()).unwrap().session);
    }
    gate.release(1);
    tree.answer("w");
}

#[test]
fn signals_descriptors_directory_and_umask_are_clean() {
    let home = Home::new();
    std::fs::create_dir(home.file("there")).unwrap();
    // The client ignores signals and holds descriptors; none of it reaches the worker, its umask and directory do.
    let script = r#"trap '' INT HUP PIPE TERM USR1; exec 7</dev/null 8</etc/passwd; umask 027; cd "$F/there"
        exec roost run -- sh -c 'grep -E "^Sig(Ign|Blk|Cgt)" /proc/self/status; umask; pwd; ls -l /proc/self/fd | wc -l'"#;
    let done = home.sh(script).run().ok();
    let lines: Vec<&str> = done.text().lines().collect();
    let zero = "0000000000000000";
    for name in ["SigBlk", "SigIgn"] {
        assert!(lines.contains(&format!("{name}:\t{zero}").as_str()), "{done}");
    }
    assert_eq!(lines[3..5], ["0027", home.file("there").to_str().unwrap()], "{done}");
    // Standard input, output, error, the directory being listed, and the head line.
    assert_eq!(lines[5].trim(), "5", "{done}");
}

// B09 (a).
#[test]
fn a_directory_that_is_gone_is_named_and_the_slot_is_free() {
    let home = Home::new();
    let mut gate = home.fifo("gate");
    let tree = Tree::open(&home, &["--cap", "1"]);
    tree.spawn("blocker", r#"read x <"$F/gate""#);
    let gone = home.file("gone");
    std::fs::create_dir(&gone).unwrap();
    tree.spawn_with("w", &["--cwd", gone.to_str().unwrap()], "pwd");
    tree.spawn("next", "echo next");
    std::fs::remove_dir(&gone).unwrap();
    gate.release(1);
    let result = tree.result("w");
    let reason = result["outcome"]["reason"].as_str().unwrap();
    assert_eq!(outcome_of(&result), "spawn");
    assert!(reason.contains(gone.to_str().unwrap()) && !reason.contains("sh"), "{reason}");
    assert_eq!(tree.answer("next"), "next\n");
    let reply = tree.roost(["wait", "--json"]).run().json();
    let told: Vec<&str> = reply["ended"].as_array().unwrap().iter().map(|end| end["name"].as_str().unwrap()).collect();
    assert_eq!(told, ["blocker"], "what `result` has consumed is not told again");
}

// B09 (b).
#[test]
fn a_start_that_fails_touches_no_sibling() {
    let home = Home::new();
    // With this stack Linux takes a quarter of it as arguments, which is less than the daemon takes.
    home.sh("ulimit -s 8192; exec roostd --detach").run().ok();
    let long = [vec!["/bin/echo".to_owned()], vec!["x".repeat(100_000); 30]].concat();
    let tree = Tree::open(&home, &[]);
    let tasks = json!([
        {"name": "a", "argv": ["echo", "a"]}, {"name": "b", "argv": ["/no/such/bin"]}, {"name": "c", "argv": ["echo", "c"]},
        {"name": "long", "argv": long},
    ]);
    tree.roost(["spawn", "--tasks", "-"]).stdin(tasks.to_string()).run().ok();
    let reply = tree.roost(["wait", "--json"]).run().expect(1).json();
    assert_eq!(reply["ended"].as_array().unwrap().len(), 4);
    assert_eq!((tree.answer("a").as_str(), tree.answer("c").as_str()), ("a\n", "c\n"));
    let b = tree.result("b");
    assert!(outcome_of(&b) == "spawn" && b["outcome"]["reason"].as_str().unwrap().contains("/no/such/bin"), "{b}");
    // Arguments that the kernel does not take are none that are tried again.
    let long = tree.result("long");
    assert!(outcome_of(&long) == "spawn" && long["outcome"]["reason"].as_str().unwrap().contains("too large"), "{long}");
    // A script whose interpreter is missing says so too.
    std::fs::write(home.file("script"), "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(home.file("script"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let script = home.file("script");
    tree.roost(["spawn", "--name", "d", "--", script.to_str().unwrap()]).run().ok();
    let d = tree.result("d");
    assert!(outcome_of(&d) == "spawn" && d["outcome"]["reason"].as_str().unwrap().contains("script"), "{d}");
}

// B09 (c).
#[test]
fn a_daemon_whose_directory_is_gone_works_on() {
    let home = Home::new();
    let gone = home.file("gone");
    std::fs::create_dir(&gone).unwrap();
    home.command(home.program("roostd")).arg("--detach").cwd(&gone).run().ok();
    std::fs::remove_dir(&gone).unwrap();
    assert_eq!(home.roost(["run", "--cwd", "/tmp", "--", "pwd"]).run().ok().text(), "/tmp\n");
    // A client in a directory that is gone cannot say where its worker belongs, and says that.
    let done = home.sh(r#"mkdir "$F/x"; cd "$F/x"; rmdir "$F/x"; roost run -- pwd"#).run();
    assert!(done.code() != 0 && done.err().contains("directory"), "{done}");
}

#[test]
fn a_worker_that_takes_its_time_is_watched_by_pid() {
    // What `status` calls the pid is the worker's main process, and it ends when that ends.
    let home = Home::new();
    let (mut events, mut gate) = (home.fifo("events"), home.fifo("gate"));
    let tree = Tree::open(&home, &[]);
    tree.spawn("w", r#"echo $$ >"$F/events"; read x <"$F/gate""#);
    let own: u32 = events.line().parse().unwrap();
    assert_eq!(tree.pid("w"), own);
    let process = Watched::new(own);
    gate.release(1);
    process.await_end();
    assert!(tree.until_state("w", "ended")["pid"].is_null());
}
