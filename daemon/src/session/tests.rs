//! The wing over a real socket, with the test in the place of the driver. Nothing sleeps: every test waits for what must come.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use roost_core::command::Claim;
use roost_not_tested::not_tested;
use roost_proto::id::{Epoch, Token, TreeId, WorkerId};
use roost_proto::limits::{
    CALLS_PER_CONNECTION_MAX, HELLO_BYTES_MAX, LINE_BYTES_FREE, LINE_BYTES_MAX, OUTPUT_BYTES_MAX, RESULTS_PER_CONNECTION_MAX,
};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::*;

/// Far beyond what anything here takes; a test that waits in vain fails by it.
const PATIENCE: Duration = Duration::from_secs(60);
const HELLO: &str = r#"{"jsonrpc":"2.0","id":1,"method":"hello","params":{"protocol_min":1,"protocol_max":1,"client":"test 0"}}"#;

struct World {
    path: PathBuf,
    inbox: mpsc::Receiver<Arrival>,
    serving: JoinHandle<std::io::Error>,
    _dir: tempfile::TempDir,
}

fn world(bounds: Bounds) -> World {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let (sender, inbox) = mpsc::channel(8);
    let serving = tokio::spawn(accept::serve(listener.into(), sender, bounds, std::path::Path::new("/nowhere")));
    World { path, inbox, serving, _dir: dir }
}

struct Client(BufReader<UnixStream>);

impl World {
    async fn next(&mut self) -> FromSession {
        timeout(PATIENCE, self.inbox.recv()).await.expect("the driver hears something").expect("the wing is there").message
    }

    /// A client, and what the driver hears of it.
    async fn connect(&mut self) -> (Client, ConnectionId, mpsc::Sender<Outgoing>) {
        let client = Client(BufReader::new(UnixStream::connect(&self.path).await.unwrap()));
        let FromSession::Connected { connection, outgoing } = self.next().await else { panic!("something else came first") };
        (client, connection, outgoing)
    }

    /// The same after a hello.
    async fn greeted(&mut self) -> (Client, ConnectionId, mpsc::Sender<Outgoing>) {
        let (mut client, connection, outgoing) = self.connect().await;
        client.send(HELLO).await;
        self.welcome(&outgoing, Caller::Operator).await;
        assert_eq!(client.line().await["result"]["ok"], true);
        (client, connection, outgoing)
    }

    async fn welcome(&mut self, outgoing: &mpsc::Sender<Outgoing>, caller: Caller) {
        let Command::Hello { call, .. } = self.command().await.0 else { panic!("no hello") };
        answer(outgoing, call, Some(caller)).await;
    }

    async fn command(&mut self) -> (Command, Payload) {
        let FromSession::Command { command, payload } = self.next().await else { panic!("no command") };
        (command, payload)
    }

    async fn gone(&mut self) -> (ConnectionId, Vec<CallId>) {
        let FromSession::Gone { connection, calls } = self.next().await else { panic!("something else came first") };
        (connection, calls)
    }

    /// A call by which tests tell calls apart: its cap, its number, its caller.
    async fn asked(&mut self) -> (u64, CallId, Caller) {
        let Command::Cap { call, caller, cap: Some(cap) } = self.command().await.0 else { panic!("no cap") };
        (cap.into(), call, caller)
    }
}

impl Client {
    async fn send(&mut self, line: &str) {
        self.bytes(format!("{line}\n").as_bytes()).await;
    }

    async fn bytes(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).await.unwrap();
    }

    /// The next line; null at the end.
    async fn line(&mut self) -> Value {
        let mut line = String::new();
        match timeout(PATIENCE, self.0.read_line(&mut line)).await.expect("a line comes") {
            Ok(0) => Value::Null,
            Ok(_) => serde_json::from_str(&line).unwrap(),
            // What was sent and not read turns the end into this.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => Value::Null,
            Err(error) => panic!("{error}"),
        }
    }

    async fn refused(&mut self, id: impl Into<Value>, kind: &str) -> String {
        let line = self.line().await;
        let message = line["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert_eq!((&line["id"], &line["error"]["data"]["kind"]), (&id.into(), &json!(kind)), "{line}");
        format!("{message} {}", line["error"]["data"]["hint"])
    }
}

async fn answer(outgoing: &mpsc::Sender<Outgoing>, call: CallId, becomes: Option<Caller>) {
    let becomes = becomes.map(Standing::of);
    let result = RawValue::from_string(r#"{"ok":true}"#.into()).unwrap();
    outgoing.send(Outgoing::Answer { call, result, becomes }).await.map_err(|_| "closed").unwrap();
}

fn asking(id: u64, cap: u64) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"cap","params":{{"cap":{cap}}}}}"#)
}

#[tokio::test]
async fn lines_may_come_byte_by_byte_or_all_at_once() {
    let mut world = world(Bounds::default());
    let (mut client, connection, outgoing) = world.connect().await;
    for byte in HELLO.as_bytes() {
        client.bytes(&[*byte]).await;
        tokio::task::yield_now().await;
    }
    client.bytes(b"\r\n").await;
    world.welcome(&outgoing, Caller::Operator).await;
    client.line().await;
    client.send(&format!("\n{}\n\r\n{}", asking(2, 20), asking(3, 30))).await;
    for tree in [20, 30] {
        let (seen, call, caller) = world.asked().await;
        assert_eq!((seen, connection_of(call), caller), (tree, connection, Caller::Operator));
    }
}

#[tokio::test]
async fn garbage_is_refused_by_its_kind_and_the_connection_goes_on() {
    let mut world = world(Bounds::default());
    let (mut client, _, _outgoing) = world.greeted().await;
    let deep = "[".repeat(1_000_000);
    let deep_call = format!(r#"{{"jsonrpc":"2.0","id":9,"method":"status","params":{deep}{}}}"#, "]".repeat(1_000_000));
    let deep_known = format!(r#"{{"jsonrpc":"2.0","id":9,"method":"park","params":{{"context":{deep}{}}}}}"#, "]".repeat(1_000_000));
    for (line, id, kind) in [
        ("hello?", Value::Null, "parse"),
        ("{\"jsonrpc\":\"2.0\",\"id\":7,", Value::Null, "parse"),
        (&deep, Value::Null, "parse"),
        ("[]", Value::Null, "invalid_request"),
        ("7", Value::Null, "invalid_request"),
        (r#"[{"jsonrpc":"2.0","id":7,"method":"status"}]"#, Value::Null, "invalid_request"),
        (r#"{"jsonrpc":"1.0","id":7,"method":"status"}"#, 7.into(), "invalid_request"),
        (r#"{"id":7,"method":"status"}"#, 7.into(), "invalid_request"),
        (r#"{"jsonrpc":"2.0","id":7,"method":null}"#, 7.into(), "invalid_request"),
        (r#"{"jsonrpc":"2.0","id":"x","method":"status"}"#, Value::Null, "invalid_request"),
        (r#"{"jsonrpc":"2.0","id":-1,"method":"status"}"#, Value::Null, "invalid_request"),
        (&deep_call, 9.into(), "invalid_params"),
        (&deep_known, 9.into(), "invalid_params"),
        (r#"{"jsonrpc":"2.0","id":8,"method":"pause"}"#, 8.into(), "invalid_params"),
    ] {
        client.send(line).await;
        client.refused(id, kind).await;
    }
    client.bytes(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}\n").await;
    client.refused(Value::Null, "parse").await;
    client.send(r#"{"jsonrpc":"2.0","id":8,"method":"cap","params":{"cap":"many"}}"#).await;
    let message = client.refused(8, "invalid_params").await;
    assert!(message.contains("`cap`") && message.contains("\"many\"") && message.contains("column"), "{message}");
    client.send(r#"{"jsonrpc":"2.0","id":8,"method":"pause","params":{}}"#).await;
    assert!(client.refused(8, "invalid_params").await.contains("`paused`"));
    client.send(&format!(r#"{{"jsonrpc":"2.0","id":8,"method":"cap","params":{{"cap":"{}"}}}}"#, "x".repeat(1_000_000))).await;
    let message = client.refused(8, "invalid_params").await;
    assert!(message.len() < 1_000 && message.contains("column 1000009"), "{message}");
    client.send(&asking(3, 30)).await;
    assert_eq!(world.asked().await.0, 30);
}

#[tokio::test]
async fn unknown_methods_are_named_and_unknown_fields_are_not_minded() {
    let mut world = world(Bounds::default());
    let (mut client, _, _outgoing) = world.greeted().await;
    client.send(r#"{"jsonrpc":"2.0","id":2,"method":"fly\u001b[2J"}"#).await;
    let message = client.refused(2, "unknown_method").await;
    assert!(message.contains("fly") && message.contains("daemon.restart") && !message.contains('\u{1b}'), "{message}");
    // A notification is neither obeyed nor answered.
    client.send(r#"{"jsonrpc":"2.0","method":"fly"}"#).await;
    client.send(r#"{"jsonrpc":"2.0","method":"status","params":{"tree":"t1"}}"#).await;
    client.send(r#"{"later":[1],"jsonrpc":"2.0","id":3,"method":"cap","params":{"cap":30,"later":{"a":[]}}}"#).await;
    assert_eq!(world.asked().await.0, 30);
}

#[tokio::test]
async fn a_line_without_end_is_given_up_at_the_limit() {
    for (greeted, limit) in [(true, LINE_BYTES_MAX), (false, HELLO_BYTES_MAX)] {
        let mut world = world(Bounds::default());
        let (client, connection, _outgoing) = if greeted { world.greeted().await } else { world.connect().await };
        let (reading, mut writing) = client.0.into_inner().into_split();
        let writer = tokio::spawn(async move {
            let chunk = vec![b'x'; 64 << 10];
            let mut sent = 0;
            while sent < 64 << 20 && writing.write_all(&chunk).await.is_ok() {
                sent += chunk.len();
            }
            sent
        });
        assert_eq!(world.gone().await, (connection, vec![]));
        let sent = timeout(PATIENCE, writer).await.unwrap().unwrap();
        // What the socket itself holds comes on top.
        assert!(sent >= limit && sent < limit + (2 << 20), "{sent} bytes were taken");
        let mut reading = BufReader::new(reading);
        let mut line = String::new();
        reading.read_line(&mut line).await.unwrap();
        assert!(line.contains("too_large"), "{line}");
    }
}

#[tokio::test]
async fn nothing_comes_before_hello_and_hello_comes_once() {
    let mut world = world(Bounds::default());
    let (mut client, _, outgoing) = world.connect().await;
    client.send(&asking(5, 50)).await;
    assert!(client.refused(5, "hello_first").await.contains("`hello`"));
    client.send(r#"{"jsonrpc":"2.0","id":6,"method":"fly"}"#).await;
    client.refused(6, "hello_first").await;
    client.send(&HELLO.replace("\"protocol_min\":1,\"protocol_max\":1", "\"protocol_min\":7,\"protocol_max\":9,\"new\":0")).await;
    let message = client.refused(1, "protocol_version").await;
    assert!(message.contains("7 to 9") && message.contains("1 to 1"), "{message}");
    client.send(&HELLO.replace("\"client\"", "\"klient\"")).await;
    assert!(client.refused(1, "invalid_params").await.contains("`client`"));
    client.send(HELLO).await;
    world.welcome(&outgoing, Caller::Operator).await;
    assert_eq!(client.line().await["result"]["ok"], true);
    client.send(HELLO).await;
    client.refused(1, "invalid_request").await;
}

#[tokio::test]
async fn a_refused_hello_leaves_a_stranger() {
    let mut world = world(Bounds::default());
    let (mut client, _, outgoing) = world.connect().await;
    client.send(&format!("{HELLO}\n{}", asking(2, 20))).await;
    let Command::Hello { call, claim: None } = world.command().await.0 else { panic!("no hello") };
    let error = ErrorObject::new(roost_proto::rpc::ErrorKind::UnknownIdentity, "no", None);
    outgoing.send(Outgoing::Refuse { call, error }).await.map_err(|_| "closed").unwrap();
    client.refused(1, "unknown_identity").await;
    client.refused(2, "hello_first").await;
}

#[tokio::test]
async fn who_calls_is_known_before_the_next_line_is_read() {
    let mut world = world(Bounds::default());
    let (mut client, _, outgoing) = world.connect().await;
    // All in one piece: the answers decide as whom each next call is made.
    let open = r#"{"jsonrpc":"2.0","id":2,"method":"open","params":{"request_id":"r"}}"#;
    let attach = r#"{"jsonrpc":"2.0","id":4,"method":"attach","params":{"tree":"t7"}}"#;
    client.send(&[HELLO, open, &asking(3, 30), attach, &asking(5, 50)].join("\n")).await;
    let worker = Caller::Worker { worker: WorkerId(3), epoch: Epoch(2) };
    let Command::Hello { call, .. } = world.command().await.0 else { panic!("no hello") };
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    assert!(world.inbox.is_empty(), "a line was read before hello was answered");
    answer(&outgoing, call, Some(worker)).await;
    let Command::Open { call, open } = world.command().await.0 else { panic!("no open") };
    assert_eq!((open.request_id.as_str(), open.settings.cap, open.ephemeral), ("r", 8, false));
    answer(&outgoing, call, Some(Caller::Root(TreeId(6)))).await;
    assert_eq!(world.asked().await.2, Caller::Root(TreeId(6)));
    let Command::Attach { call, tree: TreeId(7) } = world.command().await.0 else { panic!("no attach") };
    answer(&outgoing, call, Some(Caller::Root(TreeId(7)))).await;
    assert_eq!(world.asked().await.2, Caller::Root(TreeId(7)));
}

#[tokio::test]
async fn a_claim_carries_the_callers_ancestors() {
    let mut world = world(Bounds::default());
    let (mut client, _, _outgoing) = world.connect().await;
    let token = Token::new([7; 16]);
    let identity = format!(r#""identity":{{"tree":"t1","worker":"w2","token":"{}","epoch":3}}"#, token.reveal());
    client.send(&HELLO.replace(r#""client":"test 0""#, &format!(r#""client":"a\u001b[2J",{identity}"#))).await;
    let Command::Hello { claim: Some(claim), .. } = world.command().await.0 else { panic!("no claim") };
    let lineage = peer::lineage(std::process::id());
    assert_eq!(lineage[0].pid, std::process::id());
    assert_eq!(claim, Claim { tree: TreeId(1), worker: Some(WorkerId(2)), token, epoch: Some(Epoch(3)), lineage, role: None });
}

#[tokio::test]
async fn calls_are_answered_in_any_order_and_the_rest_is_reported() {
    let mut world = world(Bounds::default());
    let (mut client, connection, outgoing) = world.greeted().await;
    let lines: Vec<String> = (0..4).map(|n| asking(100 + n, n)).collect();
    client.send(&lines.join("\n")).await;
    let mut calls = Vec::new();
    for n in 0..4 {
        let (tree, call, _) = world.asked().await;
        assert_eq!((tree, connection_of(call)), (n, connection));
        calls.push(call);
    }
    for n in [2, 0] {
        answer(&outgoing, calls[n], None).await;
        assert_eq!(client.line().await["id"], 100 + n);
    }
    // A call that is answered twice, or never was, changes nothing.
    answer(&outgoing, calls[0], Some(Caller::Root(TreeId(9)))).await;
    outgoing.send(Outgoing::Progress(some_progress())).await.map_err(|_| "closed").unwrap();
    let line = client.line().await;
    assert_eq!((&line["method"], &line["params"]["tree"], &line["id"]), (&json!("progress"), &json!("t5"), &Value::Null));
    drop(client);
    assert_eq!(world.gone().await, (connection, vec![calls[1], calls[3]]));
    assert!(outgoing.is_closed());
}

#[tokio::test]
async fn no_more_calls_wait_than_the_limit() {
    let mut world = world(Bounds::default());
    let (mut client, _, outgoing) = world.greeted().await;
    let mut last = CallId(0);
    for n in 0..CALLS_PER_CONNECTION_MAX as u64 {
        client.send(&asking(n, n)).await;
        last = world.asked().await.1;
    }
    client.send(&asking(1_000, 0)).await;
    client.refused(1_000, "limit").await;
    answer(&outgoing, last, None).await;
    client.line().await;
    client.send(&asking(1_001, 77)).await;
    assert_eq!(world.asked().await.0, 77);
}

#[tokio::test]
async fn a_peer_that_is_gone_in_the_middle_of_a_line_is_gone() {
    let mut world = world(Bounds::default());
    let (mut client, connection, _outgoing) = world.greeted().await;
    client.bytes(&asking(2, 20).as_bytes()[..20]).await;
    drop(client);
    assert_eq!(world.gone().await, (connection, vec![]));
}

#[tokio::test]
async fn a_peer_that_only_writes_no_more_gets_its_answers() {
    let mut world = world(Bounds::default());
    let (mut client, connection, outgoing) = world.greeted().await;
    client.bytes(format!("{}\n{}", asking(2, 20), "{\"half").as_bytes()).await;
    client.0.get_mut().shutdown().await.unwrap();
    let (_, call, _) = world.asked().await;
    client.refused(Value::Null, "parse").await;
    answer(&outgoing, call, None).await;
    assert_eq!(client.line().await["id"], 2);
    assert_eq!(client.line().await, Value::Null);
    assert_eq!(world.gone().await, (connection, vec![]));

    // Gone altogether after that, nobody waits for its answers any more.
    let (mut client, connection, _outgoing) = world.greeted().await;
    client.send(&asking(2, 20)).await;
    client.0.get_mut().shutdown().await.unwrap();
    let (_, call, _) = world.asked().await;
    drop(client);
    assert_eq!(world.gone().await, (connection, vec![call]));
}

#[tokio::test]
async fn a_silent_peer_is_shown_out() {
    let mut world = world(Bounds { hello_within: Duration::from_millis(50), ..Bounds::default() });
    let (mut client, connection, _outgoing) = world.connect().await;
    client.bytes(b"{\"half").await;
    client.refused(Value::Null, "hello_first").await;
    assert_eq!(client.line().await, Value::Null);
    assert_eq!(world.gone().await, (connection, vec![]));
}

#[tokio::test]
async fn a_peer_that_reads_nothing_is_given_up_and_stalls_nobody() {
    let mut world = world(Bounds { read_within: Duration::from_millis(100), ..Bounds::default() });
    let (_silent, slow, flood) = world.greeted().await;
    let (mut client, _, outgoing) = world.greeted().await;
    // The driver's way: never waiting for a channel.
    let mut taken = 0;
    loop {
        match flood.try_send(Outgoing::Progress(some_progress())) {
            Ok(()) => taken += 1,
            Err(mpsc::error::TrySendError::Full(_)) if flood.is_closed() => break,
            Err(mpsc::error::TrySendError::Full(_)) => tokio::task::yield_now().await,
            Err(mpsc::error::TrySendError::Closed(_)) => break,
        }
        if taken % 1_000 == 500 {
            client.send(&asking(2, 20)).await;
            let (_, call, _) = world.asked().await;
            answer(&outgoing, call, None).await;
            assert_eq!(client.line().await["id"], 2);
            taken += 1;
        }
    }
    assert_eq!(world.gone().await, (slow, vec![]));
    // Its own buffer, the channel, and what the socket holds.
    let bytes = taken * serde_json::to_string(&some_progress()).unwrap().len();
    assert!(bytes < OUTPUT_BYTES_MAX + (2 << 20), "{bytes} bytes were taken for a peer that reads nothing");
}

#[tokio::test]
async fn a_connection_that_the_driver_drops_ends_with_what_was_said() {
    let mut world = world(Bounds::default());
    let (mut client, connection, outgoing) = world.greeted().await;
    client.send(&asking(2, 20)).await;
    let (_, call, _) = world.asked().await;
    answer(&outgoing, call, None).await;
    drop(outgoing);
    assert_eq!(client.line().await["id"], 2);
    assert_eq!(client.line().await, Value::Null);
    assert_eq!(world.gone().await, (connection, vec![]));
}

#[tokio::test]
async fn one_connection_too_many_is_told_so_and_room_is_used_again() {
    let mut world = world(Bounds { connections: 2, ..Bounds::default() });
    let (_one, _, _first) = world.greeted().await;
    let (two, second, _second) = world.greeted().await;
    let mut third = Client(BufReader::new(UnixStream::connect(&world.path).await.unwrap()));
    assert!(third.refused(Value::Null, "limit").await.contains('2'));
    assert_eq!(third.line().await, Value::Null);
    drop(two);
    assert_eq!(world.gone().await.0, second);
    let (_four, fourth, _fourth) = world.greeted().await;
    assert_ne!(fourth, second);
}

#[tokio::test]
async fn another_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        return not_tested("only root can be somebody else");
    }
    use std::os::unix::fs::PermissionsExt;
    let mut world = world(Bounds::default());
    std::fs::set_permissions(world.path.parent().unwrap(), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::set_permissions(&world.path, std::fs::Permissions::from_mode(0o777)).unwrap();
    let path = world.path.clone();
    // Linux keeps a user per thread, and the kernel tells the one of the thread that connects.
    let connecting = std::thread::spawn(move || {
        rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(65_534)).unwrap();
        std::os::unix::net::UnixStream::connect(path).unwrap()
    });
    let stranger = connecting.join().unwrap();
    stranger.set_nonblocking(true).unwrap();
    let mut stranger = Client(BufReader::new(UnixStream::from_std(stranger).unwrap()));
    assert!(stranger.refused(Value::Null, "unknown_identity").await.contains("another user"));
    assert_eq!(stranger.line().await, Value::Null);
    // The driver has heard nothing of it.
    world.greeted().await;
}

/// In a process of its own: the limit holds for a whole process.
#[test]
fn accepting_goes_on_when_descriptors_are_back() {
    let mut alone = std::process::Command::new(std::env::current_exe().unwrap());
    alone.args(["--ignored", "--exact", "session::tests::accepting_without_descriptors", "--test-threads=1"]);
    let output = alone.output().unwrap();
    assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).contains("1 passed"), "{output:?}");
}

#[tokio::test]
#[ignore = "run by accepting_goes_on_when_descriptors_are_back"]
async fn accepting_without_descriptors() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    use std::os::fd::AsRawFd;
    let mut world = world(Bounds::default());
    let mut clients: Vec<_> = (0..3).map(|_| std::os::unix::net::UnixStream::connect(&world.path).unwrap()).collect();
    let mut limit = getrlimit(Resource::Nofile);
    let enough = limit.current;
    // The lowest free one is given out next: there is that one, for one of the three.
    let next = clients[0].try_clone().unwrap().as_raw_fd();
    limit.current = Some(u64::try_from(next).unwrap() + 1);
    setrlimit(Resource::Nofile, limit).unwrap();
    for _ in 0..2 {
        let FromSession::Connected { connection, .. } = world.next().await else { panic!("nobody came") };
        // The end of its client, or of its channel, gives the descriptor to the next one.
        assert_eq!(world.gone().await.0, connection);
        drop(clients.remove(0));
    }
    limit.current = enough;
    setrlimit(Resource::Nofile, limit).unwrap();
    let FromSession::Connected { outgoing, .. } = world.next().await else { panic!("nobody came") };
    drop(outgoing);
}

#[tokio::test]
async fn serving_ends_with_the_driver_or_the_listener() {
    let mut world = world(Bounds::default());
    let (mut client, _, _outgoing) = world.greeted().await;
    drop(world.inbox);
    let error = timeout(PATIENCE, world.serving).await.unwrap().unwrap();
    assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
    let mut rest = Vec::new();
    client.0.read_to_end(&mut rest).await.unwrap();
    assert!(world.path.exists(), "the socket's path belongs to the supervisor");

    let (no_listener, _other) = std::os::unix::net::UnixStream::pair().unwrap();
    let (sender, _inbox) = mpsc::channel(1);
    let error = timeout(PATIENCE, serve(OwnedFd::from(no_listener), sender, "/nowhere".into())).await.unwrap();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
}

#[tokio::test]
async fn a_launch_crosses_the_socket_byte_by_byte() {
    let mut world = world(Bounds::default());
    let (mut client, _, _outgoing) = world.greeted().await;
    let launch = json!({"jsonrpc": "2.0", "id": 2, "method": "launch", "params": {
        "request_id": "r", "foreground": true,
        "submitter": {"env": [["A", {"bytes": [255, 61, 254]}], ["ROOST_TOKEN", "x"]], "cwd": "/", "umask": 0o22},
        "tasks": [{"argv": ["/bin/echo", {"bytes": [128, 10]}], "task": "t\u{2028}x", "cwd": "tmp", "env": {"B": "2"}}],
    }});
    client.send(&launch.to_string()).await;
    let (Command::Launch { launch, caller: Caller::Operator, .. }, Payload::Launch(payload)) = world.command().await else {
        panic!("no launch")
    };
    assert_eq!((launch.request_id.as_str(), launch.tasks[0].stem.as_str(), launch.foreground), ("r", "echo", true));
    let task = &payload[0];
    assert_eq!(task.argv, ["/bin/echo".into(), Bytes(vec![128, 10])]);
    assert_eq!(*task.env, [("A".into(), Bytes(vec![255, 61, 254]))]);
    assert_eq!((&task.env_extra[..], &task.cwd, task.umask), (&[("B".into(), "2".into())][..], &"/tmp".into(), 0o22));
    assert_eq!(task.task, "t\u{2028}x");
}

#[tokio::test]
async fn a_peer_that_asks_for_much_has_one_large_answer_on_its_way() {
    let mut world = world(Bounds::default());
    let (mut client, _, outgoing) = world.greeted().await;
    let read = |id: u64, method: &str, params: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
    client.send(&[read(1, "status", "{}"), read(2, "result", r#"{"name":"n"}"#), asking(3, 30)].join("\n")).await;
    let Command::Status { call, .. } = world.command().await.0 else { panic!("no status") };
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    assert!(world.inbox.is_empty(), "a second read was passed on before the first was answered");
    answer(&outgoing, call, None).await;
    let Command::Result { call, .. } = world.command().await.0 else { panic!("no result") };
    answer(&outgoing, call, None).await;
    assert_eq!(world.asked().await.0, 30);
    client.line().await;
    client.line().await;
    for method in ["events", "usage", "inbox"] {
        client.send(&[read(4, method, "{}"), asking(5, 50)].join("\n")).await;
        let call = match world.next().await {
            FromSession::Events { call, .. } => call,
            FromSession::Command { command: Command::Usage { call, .. } | Command::Speak { call, .. }, .. } => call,
            FromSession::Command { .. }
            | FromSession::Connected { .. }
            | FromSession::Gone { .. }
            | FromSession::DaemonStatus { .. }
            | FromSession::Metrics { .. }
            | FromSession::Restart { .. }
            | FromSession::Watch { .. } => panic!("something else than {method}"),
        };
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        assert!(world.inbox.is_empty(), "another call was passed on before {method} was answered");
        answer(&outgoing, call, None).await;
        assert_eq!(world.asked().await.0, 50);
        client.line().await;
    }
    // Calls that wait do not stop those after them, and are counted.
    let waiting: Vec<String> =
        (0..=RESULTS_PER_CONNECTION_MAX as u64).map(|n| read(100 + n, "result", r#"{"name":"n","wait":true}"#)).collect();
    client.send(&[waiting.join("\n"), asking(9, 90)].join("\n")).await;
    let mut calls = Vec::new();
    for _ in 0..RESULTS_PER_CONNECTION_MAX {
        let Command::Result { call, wait: true, .. } = world.command().await.0 else { panic!("no result") };
        calls.push(call);
    }
    client.refused(100 + RESULTS_PER_CONNECTION_MAX as u64, "limit").await;
    assert_eq!(world.asked().await.0, 90);
    answer(&outgoing, calls[3], None).await;
    assert_eq!(client.line().await["id"], 103);
    client.send(&waiting[0]).await;
    assert!(matches!(world.command().await.0, Command::Result { .. }));
}

#[tokio::test]
async fn a_peer_whose_calls_are_too_much_is_read_later_and_stalls_nobody() {
    let mut world = world(Bounds { calls_bytes_each: 64 << 10, calls_bytes: 96 << 10, ..Bounds::default() });
    let (mut client, _, _outgoing) = world.greeted().await;
    let (mut other, _, _other_outgoing) = world.greeted().await;
    let words = |id: u64| {
        let text = "x".repeat(40 << 10);
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tell_lead","params":{{"request_id":"r","text":"{text}"}}}}"#)
    };
    client.send(&[words(2), words(3)].join("\n")).await;
    // The driver keeps it, as on a full disk.
    let kept = timeout(PATIENCE, world.inbox.recv()).await.unwrap().unwrap();
    other.send(&[words(2), asking(3, 30)].join("\n")).await;
    let Some(Arrival { message: FromSession::Command { command: Command::Speak { call, .. }, .. }, room }) = world.inbox.recv().await
    else {
        panic!("no words")
    };
    let first = connection_of(call);
    assert_eq!(world.asked().await.0, 30);
    assert!(world.inbox.is_empty(), "the second of one peer is here while the first is kept");
    drop(kept);
    let (Command::Speak { call, .. }, _) = world.command().await else { panic!("no words") };
    assert_ne!(connection_of(call), first);
    drop(room);
}

#[tokio::test]
async fn a_stranger_gives_its_place_to_the_next_peer_and_one_with_a_name_does_not() {
    let mut world = world(Bounds { connections: 2, ..Bounds::default() });
    let (_known, _, _first) = world.greeted().await;
    let (mut silent, second, _second) = world.connect().await;
    let mut third = Client(BufReader::new(UnixStream::connect(&world.path).await.unwrap()));
    silent.refused(Value::Null, "limit").await;
    assert_eq!(silent.line().await, Value::Null);
    let mut outgoing = None;
    for _ in 0..2 {
        match world.next().await {
            FromSession::Connected { outgoing: there, .. } => outgoing = Some(there),
            FromSession::Gone { connection, .. } => assert_eq!(connection, second),
            FromSession::Command { .. }
            | FromSession::DaemonStatus { .. }
            | FromSession::Metrics { .. }
            | FromSession::Restart { .. }
            | FromSession::Events { .. }
            | FromSession::Watch { .. } => {
                panic!("something else came")
            }
        }
    }
    let outgoing = outgoing.unwrap();
    third.send(HELLO).await;
    world.welcome(&outgoing, Caller::Operator).await;
    assert_eq!(third.line().await["result"]["ok"], true);
    // Now both have said who they are.
    let mut fourth = Client(BufReader::new(UnixStream::connect(&world.path).await.unwrap()));
    assert!(fourth.refused(Value::Null, "limit").await.contains('2'));
}

#[tokio::test]
async fn long_lines_share_one_store_and_give_it_back() {
    let mut world = world(Bounds { lines_bytes: 1 << 20, ..Bounds::default() });
    let (mut one, first, _one) = world.greeted().await;
    let (mut other, second, _other) = world.greeted().await;
    let piece = vec![b' '; 700 << 10];
    one.bytes(&piece).await;
    // Answered only after all before it was taken in.
    one.send(&asking(2, 20)).await;
    assert_eq!(world.asked().await.0, 20);
    // The line is over, its bytes are free.
    other.bytes(&piece).await;
    other.send(&asking(3, 30)).await;
    assert_eq!(world.asked().await.0, 30);
    one.bytes(&piece).await;
    let (reading, mut writing) = other.0.into_inner().into_split();
    let (wrote, gone) = tokio::join!(writing.write_all(&piece), world.gone());
    assert_eq!(gone.0, second);
    drop(wrote);
    let mut line = String::new();
    let mut reading = BufReader::new(reading);
    reading.read_line(&mut line).await.unwrap();
    assert!(line.contains("\"id\":3") || line.contains("limit"), "{line}");
    one.send(&asking(4, 40)).await;
    assert_eq!((world.asked().await.0, first), (40, first));
}

#[tokio::test]
async fn a_long_line_without_end_is_given_up() {
    let mut world = world(Bounds { line_within: Duration::from_millis(100), ..Bounds::default() });
    let (mut client, connection, _outgoing) = world.greeted().await;
    client.bytes(&vec![b' '; LINE_BYTES_FREE / 2]).await;
    client.send(&asking(2, 20)).await;
    assert_eq!(world.asked().await.0, 20);
    client.bytes(&vec![b' '; LINE_BYTES_FREE + 1]).await;
    client.refused(Value::Null, "limit").await;
    assert_eq!(world.gone().await.0, connection);
}

fn some_progress() -> Progress {
    let counts = roost_core::view::TreeCounts { tree: TreeId(5), cap: 1, queued: 0, counts: Default::default(), paused: false };
    translate::progress(&counts)
}
