//! Whatever bytes arrive, however they are cut: the decoders give the same messages, or an error, and never panic.

use proptest::prelude::*;
use roost_proto::bytes::Bytes;
use roost_proto::frame::Lines;
use roost_proto::id::{Epoch, ExecutionId, Incarnation};
use roost_proto::link::{Decoder, ExitStatus, SpawnOrder, Stdin, ToBroker, ToSupervisor, encode};
use roost_proto::message::launch::Task;
use roost_proto::rpc::Call;

/// Bytes in which line ends, quotes and brackets are frequent.
fn lively() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![3 => Just(b'\n'), 1 => Just(b'\r'), 2 => Just(b'"'), 1 => Just(b'{'), 1 => Just(b'['), 8 => any::<u8>()];
    proptest::collection::vec(byte, 0..400)
}

/// The sizes of the pieces in which bytes arrive.
fn cuts() -> impl Strategy<Value = Vec<usize>> {
    proptest::collection::vec(1_usize..40, 1..40)
}

/// Cuts bytes into pieces of these sizes, over and over.
fn pieces<'a>(bytes: &'a [u8], sizes: &[usize]) -> Vec<&'a [u8]> {
    let mut rest = bytes;
    let mut found = Vec::new();
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            return found;
        }
        let (piece, later) = rest.split_at((*size).min(rest.len()));
        found.push(piece);
        rest = later;
    }
    found
}

fn incarnation() -> impl Strategy<Value = Incarnation> {
    (any::<u64>(), any::<u32>()).prop_map(|(execution, epoch)| Incarnation { execution: ExecutionId(execution), epoch: Epoch(epoch) })
}

fn to_broker() -> impl Strategy<Value = ToBroker> {
    let status = prop_oneof![any::<i32>().prop_map(ExitStatus::Code), any::<i32>().prop_map(ExitStatus::Signal), Just(ExitStatus::Unknown)];
    prop_oneof![
        (incarnation(), status, proptest::collection::vec(any::<u32>(), 0..5))
            .prop_map(|(incarnation, status, leftovers)| ToBroker::Exited { incarnation, status, leftovers }),
        (incarnation(), ".*", any::<bool>()).prop_map(|(incarnation, reason, transient)| ToBroker::SpawnFailed {
            incarnation,
            reason,
            transient
        }),
        incarnation().prop_map(|incarnation| ToBroker::Emptied { incarnation }),
        Just(ToBroker::Terminate),
    ]
}

fn order() -> impl Strategy<Value = SpawnOrder> {
    let word = || proptest::collection::vec(any::<u8>(), 0..30);
    let words = proptest::collection::vec(word(), 0..5);
    let env = proptest::collection::vec((word(), word()), 0..5);
    let stdin = prop_oneof![Just(Stdin::Null), Just(Stdin::Pipe), word().prop_map(Stdin::File)];
    (incarnation(), words, env, stdin, any::<u32>(), any::<Option<u64>>()).prop_map(
        |(incarnation, argv, env, stdin, umask, leftovers_grace_ms)| {
            let path = b"/x".to_vec();
            SpawnOrder {
                incarnation,
                argv,
                env,
                cwd: path.clone(),
                umask,
                stdin,
                stdout_path: path.clone(),
                stderr_path: path,
                leftovers_grace_ms,
            }
        },
    )
}

proptest! {
    #[test]
    fn lines_are_those_of_a_plain_split(bytes in lively(), sizes in cuts()) {
        let mut lines = Lines::default();
        let mut found: Vec<Vec<u8>> = Vec::new();
        for piece in pieces(&bytes, &sizes) {
            lines.push(piece);
            while let Some(line) = lines.next_line().expect("far below the limit") {
                found.push(line.to_vec());
            }
        }
        let mut whole: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
        let rest = whole.pop().unwrap_or_default();
        let expected: Vec<&[u8]> =
            whole.into_iter().map(|line| line.strip_suffix(b"\r").unwrap_or(line)).filter(|line| !line.is_empty()).collect();
        prop_assert_eq!(found, expected);
        prop_assert_eq!(lines.has_rest(), !rest.is_empty());
    }

    #[test]
    fn link_messages_come_out_as_they_went_in(sent in proptest::collection::vec(to_broker(), 0..6), sizes in cuts()) {
        let bytes: Vec<u8> = sent.iter().flat_map(|message| encode(message).expect("a small message")).collect();
        let mut decoder = Decoder::default();
        let mut found = Vec::new();
        for piece in pieces(&bytes, &sizes) {
            decoder.push(piece);
            while let Some(message) = decoder.next_message::<ToBroker>().expect("our own bytes") {
                found.push(message);
            }
        }
        prop_assert_eq!(found, sent);
    }

    #[test]
    fn an_order_keeps_every_byte(order in order()) {
        let sent = ToSupervisor::Spawn(Box::new(order));
        let mut decoder = Decoder::default();
        decoder.push(&encode(&sent).expect("a small order"));
        prop_assert_eq!(decoder.next_message::<ToSupervisor>().expect("our own bytes"), Some(sent));
    }

    #[test]
    fn foreign_bytes_on_the_link_are_an_error_or_wait_for_more(bytes in lively()) {
        let mut decoder = Decoder::default();
        decoder.push(&bytes);
        // Only that it returns is promised; after an error the link is closed.
        while let Ok(Some(_)) = decoder.next_message::<ToSupervisor>() {}
    }

    #[test]
    fn what_follows_a_method_is_parameters_or_no_call(bytes in lively()) {
        let line = [br#"{"jsonrpc":"2.0","id":1,"method":"x","params":"#.as_slice(), &bytes, b"}"].concat();
        // Whatever reads as a call is read alike when it is written again.
        if let Ok(call) = serde_json::from_slice::<Call>(&line) {
            let again = serde_json::to_vec(&call).expect("a call can be written");
            let read = serde_json::from_slice::<Call>(&again).expect("our own JSON");
            prop_assert_eq!(read.params.map(|raw| raw.get().to_owned()), call.params.map(|raw| raw.get().to_owned()));
        }
    }

    #[test]
    fn texts_of_the_system_survive_json(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let bytes = Bytes(bytes);
        let json = serde_json::to_string(&bytes).expect("any bytes can be written");
        prop_assert_eq!(serde_json::from_str::<Bytes>(&json).expect("our own JSON"), bytes);
    }

    #[test]
    fn a_task_survives_json(argv in proptest::collection::vec(".*", 1..4), env in proptest::collection::vec((".*", ".*"), 0..4), task in ".*") {
        let argv = argv.iter().map(|word| Bytes::from(word.as_str())).collect();
        let env = env.iter().map(|(name, value)| (Bytes::from(name.as_str()), Bytes::from(value.as_str()))).collect();
        let task = Task { argv, env, task, ..Task::default() };
        let json = serde_json::to_string(&task).expect("any task can be written");
        prop_assert_eq!(serde_json::from_str::<Task>(&json).expect("our own JSON"), task);
    }
}
