//! `roost run` on a terminal, as a person sees it; its flags for where daemon and state are; the README's first command.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use roost_tests::real::{Home, Tree, outcome_of};
use serde_json::json;

/// What of this a terminal shows in its last line: nothing of what stood there before it was cleared.
fn last_line(written: &str) -> String {
    let line = written.rsplit('\n').next().unwrap_or_default();
    line.rsplit("\u{1b}[2K").next().unwrap_or_default().replace('\r', "")
}

#[test]
fn on_a_terminal_there_is_a_line_of_progress_and_it_goes_away() {
    let home = Home::new();
    let (mut screen, mut gate) = (home.fifo("screen"), home.fifo("gate"));
    home.script("worker", r#"roost spawn -- true >&2; read x <"$F/gate"; printf 'the answer\n'"#);
    // `script` makes a terminal; what is written to it comes out of the pipe.
    let script = home.sh(r#"exec script -qec 'stty rows 24 cols 100; exec roost run --cap 3 -- sh "$F/worker"' /dev/null >"$F/screen""#);
    let terminal = script.env("TERM", "xterm").start();
    // One lives, one is done; the clock goes on meanwhile.
    let shown = screen.until("done 1");
    assert!(shown.contains("live 1/3  queued 0"), "{shown:?}");
    assert!(last_line(&shown).contains("live 1/3"), "{shown:?}");
    gate.release(1);
    let rest = screen.until("the answer\r\n");
    terminal.end().ok();
    // Before the answer the line was cleared, and nothing of it is left on the screen.
    let before = rest.split("the answer").next().unwrap();
    assert_eq!(last_line(before), "", "{rest:?}");
    assert!(before.contains("\u{1b}[2K"), "{rest:?}");
}

#[test]
fn progress_is_for_terminals_alone() {
    let home = Home::new();
    let done = home.sh("roost run -- sh -c 'roost run -- true; echo x' 2>err; cat err").run().ok();
    assert_eq!(done.text(), "x\n");
}

/// The README's first command, as it stands there: without the build, which has been, and without this machine's own files.
#[test]
fn the_first_command_of_the_readme_does_what_it_says() {
    let home = Home::new();
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md")).unwrap();
    let command = readme.lines().find(|line| line.contains("examples/tally \"$HOME\"")).expect("the README counts a directory");
    let (build, run) = command.split_once(" && ").expect("a build and a run");
    assert_eq!(build, "cargo build --release --workspace --bins --examples");
    // A checkout with these programs in the place of released ones.
    let checkout = home.file("checkout");
    std::fs::create_dir_all(checkout.join("target")).unwrap();
    let roost = home.program("roost");
    std::os::unix::fs::symlink(roost.parent().unwrap(), checkout.join("target/release")).unwrap();
    std::os::unix::fs::symlink(home.example("tally").parent().unwrap(), checkout.join("examples")).unwrap();
    let top = home.file("mine");
    for (file, text) in [("a", "1\n2\n"), ("b c/d", "3\n"), ("b c/e/f", "no line")] {
        std::fs::create_dir_all(top.join(file).parent().unwrap()).unwrap();
        std::fs::write(top.join(file), text).unwrap();
    }
    let done = home.sh(run).cwd(&checkout).env("HOME", &top).env("CARGO_TARGET_DIR", checkout.join("target")).run().ok();
    assert_eq!(done.text(), format!("files 3\nlines 3\nbytes 13\nlargest {}\n", top.join("b c/e/f").display()), "{done}");
    assert!(done.stderr.is_empty(), "{done}");
}

/// Whoever names them gets a daemon of its own, whatever the variables say.
#[test]
fn state_directory_and_socket_can_be_named_by_flags() {
    let home = Home::new();
    let (state, socket) = (home.file("other state"), home.file("run/other.sock"));
    DirBuilder::new().mode(0o700).create(home.file("run")).unwrap();
    let flags = ["--state-dir", state.to_str().unwrap(), "--socket", socket.to_str().unwrap()];
    let with = |words: &[&str]| home.roost(words.iter().chain(&flags)).run();
    // The flags may stand anywhere before the command of a worker.
    let run = |words: &[&str]| home.roost(flags.iter().chain(words)).run();
    assert_eq!(
        run(&["run", "--", "sh", "-c", r#"echo "$ROOST_SOCKET $ROOST_STATE_DIR""#]).ok().text(),
        format!("{} {}\n", socket.display(), state.display())
    );
    let status = with(&["daemon", "status", "--json"]).ok().json();
    assert_eq!((&status["socket"], &status["state_dir"]), (&json!(socket), &json!(state)));
    assert!(state.join("roost.db").is_file() && !home.state_dir().exists(), "the variables name another place");
    // The daemon of the variables is another one, and knows nothing of the first.
    let tree = Tree::open(&home, &[]);
    assert_ne!(home.daemon_status()["supervisor_pid"], status["supervisor_pid"]);
    assert_eq!(with(&["status", "--json", "--tree", &tree.id]).code(), 1);
    // One flag alone names its own place; the other is where the variables say, and two daemons never share a state.
    let done = home.roost(["daemon", "start", "--socket"]).arg(&socket).run();
    assert_eq!(done.code(), 0, "somebody listens there: {done}");
    with(&["daemon", "stop"]).ok();
    assert!(!socket.exists());
    let done = home.roost(["daemon", "start", "--socket"]).arg(&socket).run().expect(4);
    assert!(done.err().contains(&home.daemon_status()["supervisor_pid"].to_string()), "{done}");
}

/// A command that cannot be started again fails, says why, and what its children had answered stays.
#[test]
fn a_command_whose_wake_fails_ends_and_its_childrens_results_can_be_read() {
    let home = Home::new();
    let (mut events, mut gate) = (home.fifo("events"), home.fifo("gate"));
    let tree = Tree::open(&home, &["--cap", "1", "--set", "start_retry=10ms", "--set", "start_retries=2"]);
    let kid = r#"roost spawn --name kid -- sh -c 'echo up >"$F/events"; read x <"$F/gate"; echo K' >&2"#;
    let program = home.script("program", &format!("#!/bin/sh\n{kid}; exec roost park"));
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    tree.roost(["spawn", "--name", "lead", "--descendants", "1", "--"]).arg(&program).run().ok();
    assert_eq!(events.line(), "up");
    tree.until_state("lead", "parked");
    std::fs::remove_file(&program).unwrap();
    gate.release(1);
    let result = tree.result("lead");
    assert_eq!(outcome_of(&result), "startup", "{result}");
    assert!(result["outcome"]["reason"].as_str().unwrap().contains(program.to_str().unwrap()), "{result}");
    assert_eq!((&result["answer"], &result["partial"]), (&json!(""), &json!(true)));
    assert_eq!(tree.roost(["result", "kid"]).run().ok().text(), "K\n");
    assert_eq!((tree.status()["trees"][0]["live"].as_u64(), home.workers().len()), (Some(0), 0));
}
