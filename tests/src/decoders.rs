//! What every decoder of foreign bytes must keep, as functions of those bytes: they panic when it is broken.
//!
//! The fuzz targets (`fuzz/`) and the replay of their corpora (`tests/tests/corpora.rs`) call the same functions.

use std::fs;
use std::path::Path;

use roost_core::command::{CallId, Caller};
use roost_core::event::Record;
use roost_proto::frame::Lines;
use roost_proto::id::{Epoch, TreeId, WorkerId};
use roost_proto::link::{Decoder, ToBroker, ToSupervisor, encode};
use roost_proto::rpc::{Answer, ErrorObject, Version};
use roostd::journal::{Journal, OpenError};
use roostd::session::{Standing, line};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Lines are those of a plain split at LF, however the bytes are cut. The first byte is the size of the pieces.
pub fn frame(bytes: &[u8]) {
    let Some((size, bytes)) = bytes.split_first() else { return };
    let mut lines = Lines::default();
    let mut found: Vec<Vec<u8>> = Vec::new();
    for piece in bytes.chunks(usize::from(*size).max(1)) {
        lines.push(piece);
        while let Some(line) = lines.next_line().expect("no corpus comes near the limit") {
            found.push(line.to_vec());
        }
    }
    let mut whole: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let rest = whole.pop().unwrap_or_default();
    let expected: Vec<&[u8]> =
        whole.into_iter().map(|line| line.strip_suffix(b"\r").unwrap_or(line)).filter(|line| !line.is_empty()).collect();
    assert_eq!(found, expected);
    assert_eq!(lines.has_rest(), !rest.is_empty());
}

const CALLERS: [Option<Caller>; 4] =
    [None, Some(Caller::Operator), Some(Caller::Root(TreeId(1))), Some(Caller::Worker { worker: WorkerId(3), epoch: Epoch(2) })];

/// The method of a line that somebody may say: it comes through to its parameters, and they are what they should be.
pub fn understood(line: &[u8]) -> Option<String> {
    let call = line::read_call(line).ok()?;
    let may = |caller: Option<Caller>| {
        line::understand(CallId(1), caller.map(Standing::of), &call.method, call.params.as_deref(), Vec::new).is_ok()
    };
    CALLERS.into_iter().any(may).then(|| call.method.to_string())
}

/// Every line is a call or is refused, for whoever says it; a refusal fits on one line and obeys no terminal.
pub fn rpc(line: &[u8]) {
    let call = match line::read_call(line) {
        Ok(call) => call,
        Err(unreadable) => return refusal(&unreadable.error),
    };
    for caller in CALLERS {
        if let Err(error) = line::understand(CallId(1), caller.map(Standing::of), &call.method, call.params.as_deref(), Vec::new) {
            refusal(&error);
        }
    }
}

fn refusal(error: &ErrorObject) {
    let texts = [Some(&error.message), error.data.hint.as_ref()];
    for text in texts.into_iter().flatten() {
        assert!(!text.chars().any(char::is_control), "a control character in {text:?}");
        assert!(text.len() < 8 << 10, "an error of {} bytes", text.len());
    }
    let answer = Answer { jsonrpc: Version::V2, id: None, method: None, params: None, result: None, error: Some(error.clone()) };
    serde_json::to_string(&answer).expect("every refusal can be written");
}

/// Messages come out or an error does, and what came out is written as the same bytes again. An odd first byte is for the supervisor.
pub fn link(bytes: &[u8]) {
    match bytes.split_first() {
        Some((first, rest)) if first % 2 == 1 => linked::<ToSupervisor>(rest),
        Some((_, rest)) => linked::<ToBroker>(rest),
        None => {}
    }
}

fn linked<M: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(bytes: &[u8]) {
    let mut decoder = Decoder::default();
    let mut at = 0;
    for piece in bytes.chunks(7) {
        decoder.push(piece);
        loop {
            let message: M = match decoder.next_message() {
                Ok(Some(message)) => message,
                Ok(None) => break,
                // After an error the link is closed.
                Err(_) => return,
            };
            let again = encode(&message).expect("what was read can be written");
            assert!(bytes[at..].starts_with(&again), "{message:?} was read from other bytes");
            at += again.len();
        }
    }
}

/// A journal and its write-ahead log as one text: the journal's length (u32, little-endian), the journal, the log.
pub fn packed(file: &[u8], log: &[u8]) -> Vec<u8> {
    let length = u32::try_from(file.len()).expect("a small journal").to_le_bytes();
    [length.as_slice(), file, log].concat()
}

/// A journal opens or is refused; refused, its file is as it was. Works in this directory, which it empties first. Returns what was read.
pub fn journal(bytes: &[u8], directory: &Path) -> Result<Vec<Record>, OpenError> {
    let (length, rest) = bytes.split_first_chunk::<4>().unwrap_or((&[0; 4], bytes));
    let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX).min(rest.len());
    let (file, log) = rest.split_at(length);
    if directory.exists() {
        fs::remove_dir_all(directory).expect("our own directory");
    }
    fs::create_dir_all(directory).expect("a directory");
    let (path, log_path) = (directory.join("roost.db"), directory.join("roost.db-wal"));
    fs::write(&path, file).expect("a file");
    if !log.is_empty() {
        fs::write(&log_path, log).expect("a file");
    }
    match Journal::open(directory) {
        Ok((journal, recovered)) => {
            drop(journal);
            for pair in recovered.records.windows(2) {
                assert_eq!(pair[1].seq, pair[0].seq + 1, "a hole in the journal was passed over");
            }
            Ok(recovered.records)
        }
        Err(error) => {
            if matches!(error, OpenError::Damaged { .. } | OpenError::Newer { .. }) {
                assert!(fs::read(&path).is_ok_and(|now| now == file), "a journal that was refused was changed: {error}");
                if !log.is_empty() {
                    assert!(fs::read(&log_path).is_ok_and(|now| now == log), "the log of a refused journal was changed: {error}");
                }
            }
            Err(error)
        }
    }
}
