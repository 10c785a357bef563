//! The seeds: what real peers say, and what they should not.

use std::path::Path;
use std::sync::Arc;

use roost_core::event::{Event, Record};
use roost_core::time::{Mono, Now};
use roost_proto::id::{Epoch, ExecutionId, Incarnation, WorkerId};
use roost_proto::link::{ChildReport, ExitStatus, Manager, ProcessIdentity, Signal, SpawnOrder, Stdin, ToBroker, ToSupervisor, encode};
use roost_tests::block_on::block_on;
use roost_tests::decoders;
use roostd::journal::{Batch, ClockMark, Journal, Spec};

/// All: corpus, name, bytes.
pub fn all(scratch: &Path) -> Vec<(&'static str, String, Vec<u8>)> {
    let mut seeds = Vec::new();
    seeds.extend(frames().into_iter().map(|(name, bytes)| ("frame", name.to_owned(), bytes)));
    seeds.extend(calls().into_iter().map(|(name, bytes)| ("rpc", name, bytes)));
    seeds.extend(links().into_iter().map(|(name, bytes)| ("link", name.to_owned(), bytes)));
    seeds.extend(journals(scratch).into_iter().map(|(name, bytes)| ("journal", name.to_owned(), bytes)));
    seeds
}

fn frames() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("empty", vec![]),
        ("one-by-one", "\u{1}{\"a\":1}\n{\"b\":\"\u{2028}\u{2029}\u{85}\"}\r\n\r\n\n{\"half\":".into()),
        ("at-once", b"\xff\n\r\n\r\r\na\0b\rc\n\xff\xfe\0\nx".to_vec()),
        ("ends-of-lines-only", b"\x03\n\n\r\n\r\r\r\n\n".to_vec()),
        ("brackets", [b"\x10".as_slice(), &[b'['; 3_000], b"\n"].concat()),
    ]
}

fn calls() -> Vec<(String, Vec<u8>)> {
    let submitter = r#""submitter":{"env":[["A","1"],["B",{"bytes":[255,61]}],["ROOST_X","y"]],"cwd":"/","umask":18}"#;
    let settings = r#"{"cap":3,"budget":9,"blocked_wait":"refuse","leftovers":"keep","on_parent_failure":"adopt","stop_grace_ms":5,"depth_max":7,"group_caps":{"w":1}}"#;
    let methods = [
        ("hello", r#"{"protocol_min":1,"protocol_max":1,"client":"x","identity":{"tree":"t1","worker":"w2","token":"00112233445566778899aabbccddeeff","epoch":3}}"#.to_owned()),
        ("hello", r#"{"protocol_min":7,"protocol_max":2,"client":""}"#.to_owned()),
        ("open", format!(r#"{{"request_id":"r","key":"k","ephemeral":true,"settings":{settings}}}"#)),
        ("attach", r#"{"tree":"t1"}"#.to_owned()),
        ("cap", r#"{"cap":4}"#.to_owned()),
        ("pause", r#"{"paused":true}"#.to_owned()),
        ("close", r#"{"now":false}"#.to_owned()),
        ("watch", "{}".to_owned()),
        ("launch", format!(r#"{{"request_id":"r","foreground":true,"generation":4,{submitter},"tasks":[{{"name":"n","argv":["sh","-c",{{"bytes":[128,10]}}],"cwd":"tmp","env":{{"Z":"1"}},"task":"t\u2028","max_subagents_allowed":"rest","group":"w","timeout_ms":5}}]}}"#)),
        ("launch", format!(r#"{{"request_id":"","{}":1,{submitter},"tasks":[{{"argv":[]}}]}}"#, "later".repeat(20))),
        ("wait", r#"{"request_id":"r","names":["a","\u001b[2J"],"any":true,"timeout_ms":18446744073709551615}"#.to_owned()),
        ("result", r#"{"name":"n","wait":true,"timeout_ms":0,"tree":"t9"}"#.to_owned()),
        ("status", r#"{"tree":"t1","name":"n","after":"w4"}"#.to_owned()),
        ("stop", r#"{"names":["n","n","../../x"],"no_wait":true}"#.to_owned()),
        ("interrupt", r#"{"no_wait":true}"#.to_owned()),
        ("park", r#"{"context":{"bytes":[0,255,10]}}"#.to_owned()),
        ("daemon.status", "{}".to_owned()),
        ("daemon.stop", r#"{"now":true,"timeout_ms":5}"#.to_owned()),
        ("daemon.restart", "{}".to_owned()),
        ("fly\u{7}", "null".to_owned()),
        ("told", r#"{"executions":["x1","x18446744073709551615"]}"#.to_owned()),
        ("message", r#"{"request_id":"r","name":"\u001b[2J","text":"t\u2028\u0000","max_subagents_allowed":9007199254740992}"#.to_owned()),
        ("tell_lead", r#"{"request_id":"r","text":"half\r\n"}"#.to_owned()),
        ("inbox", r#"{"after":7,"tree":"t1"}"#.to_owned()),
        ("ack", r#"{"items":[1,1,0,18446744073709551615]}"#.to_owned()),
        ("report", r#"{"activity":"tool","text":"so far","usage":{"sequence":3,"input":1,"output":2,"cache_read":3,"cache_write":4,"cost":9007199254740991,"cost_unknown":true,"turns":1,"tool_calls":2,"context_tokens":70}}"#.to_owned()),
        ("settle", r#"{"request_id":"r","answer":"a\u009b2J","context":{"path":"/x/\u0007"},"ended":{"aborted":true,"truncated":true,"wrapped_up":true,"error":{"kind":"provider","message":"\u001b]0;"}},"usage":{"sequence":1,"input":0,"output":0,"cache_read":0,"cache_write":0,"cost":0,"turns":0,"tool_calls":0}}"#.to_owned()),
        ("park_ready", r#"{"context":{"bytes":{"bytes":[0,255,10]}}}"#.to_owned()),
        ("park_decline", r#"{"not_before_ms":18446744073709551615}"#.to_owned()),
        ("usage", r#"{"name":"n","each":true,"tree":"t1"}"#.to_owned()),
        ("events", r#"{"from":1,"follow":true,"tree":"t1"}"#.to_owned()),
        ("daemon.gc", r#"{"older_than_ms":18446744073709551615,"max_bytes":0,"dry_run":true}"#.to_owned()),
        ("daemon.metrics", "{}".to_owned()),
    ];
    let mut seeds: Vec<(String, Vec<u8>)> = methods
        .into_iter()
        .enumerate()
        .map(|(number, (method, params))| {
            let name = method.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
            let line =
                format!(r#"{{"jsonrpc":"2.0","id":{number},"method":{},"params":{params}}}"#, serde_json::to_string(method).unwrap());
            (format!("call-{number:02}-{name}"), line.into_bytes())
        })
        .collect();
    let odd: [(&str, Vec<u8>); 9] = [
        ("no-json", b"hello?".to_vec()),
        ("not-utf8", b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}".to_vec()),
        ("half", b"{\"jsonrpc\":\"2.0\",\"id\":7,".to_vec()),
        ("deep", vec![b'['; 10_000]),
        (
            "deep-params",
            [br#"{"jsonrpc":"2.0","id":1,"method":"park","params":{"context":"#.as_slice(), &[b'['; 5_000], &[b']'; 5_000], b"}}"].concat(),
        ),
        ("batch", br#"[{"jsonrpc":"2.0","id":7,"method":"status"}]"#.to_vec()),
        ("lone-surrogate", br#"{"jsonrpc":"2.0","id":7,"method":"stop","params":{"names":["\ud83d"]}}"#.to_vec()),
        (
            "variant-with-escape",
            br#"{"jsonrpc":"2.0","id":7,"method":"open","params":{"request_id":"r","settings":{"leftovers":"a\u001b[2Jb\u202e\u0007"}}}"#
                .to_vec(),
        ),
        ("twice", br#"{"jsonrpc":"2.0","id":7,"id":8,"method":"status","method":"stop"}"#.to_vec()),
    ];
    seeds.extend(odd.into_iter().map(|(name, line)| (format!("odd-{name}"), line)));
    seeds
}

pub fn links() -> Vec<(&'static str, Vec<u8>)> {
    let incarnation = Incarnation { execution: ExecutionId(7), epoch: Epoch(2) };
    let process = ProcessIdentity { pid: 7, start_ticks: 99 };
    let order = SpawnOrder {
        incarnation,
        argv: vec![b"sh".to_vec(), vec![0xff, 10]],
        env: vec![(b"A".to_vec(), vec![])],
        cwd: b"/".to_vec(),
        umask: 0o22,
        stdin: Stdin::File(b"/x".to_vec()),
        stdout_path: b"/o".to_vec(),
        stderr_path: b"/e".to_vec(),
        leftovers_grace_ms: Some(1_000),
    };
    let to_supervisor = [
        ToSupervisor::Hello { version: 1 },
        ToSupervisor::Spawn(Box::new(order)),
        ToSupervisor::Signal { incarnation, signal: Signal::Term },
        ToSupervisor::Forget { incarnation },
        ToSupervisor::Adopt { incarnation, process: Some(process), stdout_path: b"/o".to_vec(), leftovers_grace_ms: Some(1_000) },
        ToSupervisor::Status { line: "fine".into() },
        ToSupervisor::Ready,
        ToSupervisor::Shutdown,
        ToSupervisor::Restart,
        ToSupervisor::Alive,
    ];
    let report = ChildReport { incarnation, process, exited: Some(ExitStatus::Signal(9)), alive: false };
    let to_broker = [
        ToBroker::Hello {
            version: 1,
            supervisor_pid: 5,
            boot_id: "b".into(),
            children: vec![report],
            manager: Some(Manager { beat_ms: Some(30_000) }),
        },
        ToBroker::Spawned { incarnation, process },
        ToBroker::SpawnFailed { incarnation, reason: "no such directory".into(), transient: false },
        ToBroker::Exited { incarnation, status: ExitStatus::Code(3), leftovers: vec![4, 5] },
        ToBroker::Emptied { incarnation },
        ToBroker::NeverStarted { incarnation },
        ToBroker::Terminate,
    ];
    let up: Vec<u8> = to_supervisor.iter().flat_map(|message| encode(message).unwrap()).collect();
    let down: Vec<u8> = to_broker.iter().flat_map(|message| encode(message).unwrap()).collect();
    vec![
        ("to-supervisor", [vec![1], up].concat()),
        ("to-broker", [vec![0], down].concat()),
        ("length-of-4-gib", vec![1, 0xff, 0xff, 0xff, 0xff, 0, 0]),
        ("inner-length-of-16-eib", [vec![0, 12, 0, 0, 0, 2, 0, 0, 0], vec![0xff; 8]].concat()),
        ("other-wire", b"\x01GET / HTTP/1.1\r\n\r\n".to_vec()),
    ]
}

fn record(seq: u64) -> Record {
    let at = Now { mono: Mono(seq * 10), wall_ms: 1_700_000_000_000 + seq };
    Record { seq, at, event: Event::Blocked { worker: WorkerId(seq) } }
}

fn journals(directory: &Path) -> Vec<(&'static str, Vec<u8>)> {
    let batch = |seqs: std::ops::RangeInclusive<u64>| {
        let spec = Spec {
            argv: vec!["sh".into()],
            env: Arc::new(vec![("PATH".into(), "/bin".into())]),
            env_extra: vec![],
            cwd: "/".into(),
            umask: 0o22,
            task: "text".into(),
        };
        Batch {
            specs: vec![(WorkerId(*seqs.start()), spec)],
            contexts: vec![(WorkerId(*seqs.start()), b"context".to_vec())],
            clock: Some(ClockMark { boot_id: "boot".into(), mono_ms: 10, offset_ms: 20 }),
            records: seqs.map(record).collect(),
            ..Batch::default()
        }
    };
    if directory.exists() {
        std::fs::remove_dir_all(directory).unwrap();
    }
    std::fs::create_dir_all(directory).unwrap();
    let read = |name: &str| std::fs::read(directory.join(name)).unwrap_or_default();
    let (journal, _) = Journal::open(directory).unwrap();
    block_on(journal.commit(batch(1..=3))).unwrap();
    drop(journal);
    let closed = decoders::packed(&read("roost.db"), &[]);
    let (journal, _) = Journal::open(directory).unwrap();
    block_on(journal.commit(batch(4..=6))).unwrap();
    block_on(journal.commit(batch(7..=9))).unwrap();
    // As a crash would leave it: the log is not worked off while this is read.
    let crashed = decoders::packed(&read("roost.db"), &read("roost.db-wal"));
    drop(journal);
    let torn = crashed[..crashed.len() - 1_000].to_vec();
    let mut newer = closed.clone();
    // `user_version`, at 60 of the file's header.
    newer[4 + 60..4 + 64].copy_from_slice(&9_u32.to_be_bytes());
    vec![
        ("empty", decoders::packed(&[], &[])),
        ("no-database", decoders::packed(b"SQLite format 3\0 and then nothing of it", &[])),
        ("log-without-file", decoders::packed(&[], b"\x37\x7f\x06\x82 a log")),
        ("sound-closed", closed),
        ("sound-crashed", crashed),
        ("torn-log", torn),
        ("newer-format", newer),
    ]
}
