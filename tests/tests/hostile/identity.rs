//! Who is nobody: another user, a guessed token, an old epoch, a token in the hands of a process that is not the worker's.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};

use roost_tests::real::{Home, Tree, Wire, is_root, kind_of};
use serde_json::{Value, json};

/// Says one thing over the socket as another user and prints the answer. Perl, because it is on every Debian, and because `roost`
/// itself looks at owners first.
const SPEAK: &str = r#"
use Socket;
$SIG{PIPE} = 'IGNORE';
socket(S, PF_UNIX, SOCK_STREAM, 0) or die;
connect(S, sockaddr_un($ARGV[0])) or do { print "$!"; exit };
syswrite(S, "$ARGV[1]\n");
while (sysread(S, $piece, 65536)) { print $piece }
"#;

#[test]
fn another_user_is_refused_by_the_directory_and_by_the_daemon() {
    if !is_root() {
        return;
    }
    let home = Home::new();
    let tree = Tree::open(&home, &[]);
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "hello", "params": {"protocol_min": 1, "protocol_max": 1, "client": "x",
        "identity": {"tree": tree.id, "token": tree.token}}});
    let speak = |socket: &std::path::Path| {
        home.command("setpriv")
            .args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "/usr/bin/perl", "-e", SPEAK])
            .arg(socket)
            .arg(hello.to_string())
            .run()
            .ok()
            .text()
            .to_owned()
    };
    // The directory is 0700.
    fs::set_permissions(home.dir(), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(speak(&home.socket()).trim(), "Permission denied");
    // With directory and socket opened wide by hand, the peer's user is still looked at: the right token does not help.
    fs::set_permissions(home.state_dir(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(home.socket(), fs::Permissions::from_mode(0o666)).unwrap();
    let answer: Value = serde_json::from_str(speak(&home.socket()).trim()).unwrap();
    assert_eq!(kind_of(&answer["error"]), "unknown_identity", "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("another user"), "{answer}");
    fs::set_permissions(home.state_dir(), fs::Permissions::from_mode(0o700)).unwrap();
    let log = home.log();
    assert!(log.contains("a process of another user was refused"));
    tree.status();
}

/// What a worker's process knows of itself.
fn secrets(home: &Home, tree: &Tree<'_>) -> Value {
    let script = r#"printf '{"worker":"%s","token":"%s","epoch":%s}' "$ROOST_WORKER" "$ROOST_TOKEN" "$ROOST_EPOCH" >"$F/secrets"
        echo told >"$F/events"; exec sleep 600"#;
    let mut events = home.fifo("events");
    tree.spawn("w", script);
    assert_eq!(events.line(), "told");
    let mut secrets: Value = serde_json::from_str(&home.read("secrets")).unwrap();
    secrets["tree"] = json!(tree.id);
    secrets
}

#[test]
fn whoever_is_not_the_worker_is_refused_in_the_same_words_and_it_is_written_down() {
    let home = Home::new();
    let tree = Tree::open(&home, &[]);
    let right = secrets(&home, &tree);
    let with = |name: &str, value: Value| {
        let mut changed = right.clone();
        changed[name] = value;
        changed
    };
    let hello = |identity: Value| Wire::connect(&home.socket()).hello(Some(identity)).unwrap_err();
    // All right but the process: a replay of its token by the test, which is not below the worker.
    let replay = hello(right.clone());
    let other_tree = Tree::open(&home, &[]);
    for wrong in [
        with("token", json!("0".repeat(32))),
        with("worker", json!("w999")),
        with("tree", json!("t1")),
        with("tree", json!(other_tree.id)),
        with("epoch", Value::Null),
        json!({"tree": tree.id, "token": right["token"]}),
        json!({"tree": other_tree.id, "token": tree.token}),
    ] {
        assert_eq!(hello(wrong.clone()), replay, "{wrong}");
    }
    assert_eq!(kind_of(&replay), "unknown_identity");
    // An older incarnation hears that it is one, if its token is right; with a wrong one it hears nothing of the kind.
    assert_eq!(kind_of(&hello(with("epoch", json!(0)))), "stale_epoch");
    let mut wrong = with("epoch", json!(0));
    wrong["token"] = json!("f".repeat(32));
    assert_eq!(hello(wrong), replay);
    let log = home.log();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains(" audit: ")).collect();
    assert_eq!(lines.len(), 10, "{lines:?}");
    assert!(lines.iter().all(|line| line.contains("WARN") && line.contains("verb=\"hello\"") && line.contains("process ")), "{lines:?}");
    assert!(!log.contains(right["token"].as_str().unwrap()) && !log.contains(&tree.token));
}

#[test]
fn a_socket_in_somebody_elses_directory_is_not_used() {
    if !is_root() {
        return;
    }
    let home = Home::new();
    fs::create_dir(home.state_dir()).unwrap();
    fs::set_permissions(home.state_dir(), fs::Permissions::from_mode(0o700)).unwrap();
    chown(home.state_dir(), Some(65_534), Some(65_534)).unwrap();
    let done = home.command(home.program("roostd")).run();
    assert_ne!(done.code(), 0, "{done}");
    assert!(done.err().contains(home.state_dir().to_str().unwrap()), "{done}");
    chown(home.state_dir(), Some(0), Some(0)).unwrap();
}
