//! The bytes of an answer: from the file that the worker wrote, else from the text in the reply.

use std::fs::File;
use std::io::{self, Cursor, Read, Take};

use roost_proto::message::result::WorkerResult;

use crate::error::Error;

/// An answer to be read to its end.
#[derive(Debug)]
pub enum AnswerBytes {
    /// From its file, byte by byte. Not beyond its end at the time: a process that was left behind may still write.
    File(Take<File>),
    /// From the reply, when there is no file to read.
    Text(Cursor<Vec<u8>>),
}

impl Read for AnswerBytes {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read(buffer),
            Self::Text(text) => text.read(buffer),
        }
    }
}

/// Opens the answer of a result. A file that is gone is an error only when the reply does not hold all of it.
pub fn open_answer(result: &WorkerResult) -> Result<AnswerBytes, Error> {
    let whole = u64::try_from(result.answer.len()).ok() == Some(result.answer_bytes) && !result.answer_truncated;
    let text = || AnswerBytes::Text(Cursor::new(result.answer.clone().into_bytes()));
    let Some(path) = &result.answer_path else { return Ok(text()) };
    match File::open(path) {
        Ok(file) => Ok(AnswerBytes::File(file.take(result.answer_bytes))),
        Err(_) if whole => Ok(text()),
        Err(source) => Err(Error::Io { what: format!("cannot read the answer {path}"), source }),
    }
}
