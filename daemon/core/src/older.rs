//! What older builds have written in another form, read as it is written now.

use std::collections::VecDeque;

use roost_proto::link::ProcessIdentity;
use serde::{Deserialize, Deserializer};

/// When a process was started that only its pid is known of.
const UNKNOWN_TICKS: u64 = 0;

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Process(ProcessIdentity),
    Pid(u32),
}

impl From<Written> for ProcessIdentity {
    fn from(written: Written) -> Self {
        match written {
            Written::Process(process) => process,
            Written::Pid(pid) => Self { pid, start_ticks: UNKNOWN_TICKS },
        }
    }
}

/// A process, of which once only the pid was written.
pub(crate) fn process<'de, D: Deserializer<'de>>(from: D) -> Result<ProcessIdentity, D::Error> {
    Written::deserialize(from).map(ProcessIdentity::from)
}

/// The same, where there may be none.
pub(crate) fn some_process<'de, D: Deserializer<'de>>(from: D) -> Result<Option<ProcessIdentity>, D::Error> {
    Ok(Option::<Written>::deserialize(from)?.map(ProcessIdentity::from))
}

/// The interrupts of a tree, of which once only the last one was written.
pub(crate) fn interrupts<'de, D: Deserializer<'de>>(from: D) -> Result<VecDeque<(String, u32)>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Last(String, u32),
        All(VecDeque<(String, u32)>),
    }
    Ok(match Written::deserialize(from)? {
        Written::Last(request, active) => VecDeque::from([(request, active)]),
        Written::All(all) => all,
    })
}

/// Whether this process is that one, as far as is known of it.
pub(crate) fn is_same(process: ProcessIdentity, recorded: ProcessIdentity) -> bool {
    process.pid == recorded.pid && (process.start_ticks == recorded.start_ticks || recorded.start_ticks == UNKNOWN_TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize, PartialEq, Eq)]
    #[serde(tag = "of")]
    enum Record {
        One {
            #[serde(default, alias = "pid", deserialize_with = "some_process")]
            process: Option<ProcessIdentity>,
        },
    }

    #[test]
    fn a_pid_alone_is_a_process_too() {
        let read = |text| serde_json::from_str::<Record>(text).unwrap();
        let of = |pid, start_ticks| Record::One { process: Some(ProcessIdentity { pid, start_ticks }) };
        assert_eq!(read(r#"{"of":"One","pid":7}"#), of(7, 0));
        assert_eq!(read(r#"{"of":"One","process":{"pid":7,"start_ticks":9}}"#), of(7, 9));
        assert_eq!(read(r#"{"of":"One"}"#), Record::One { process: None });
        let process = |pid, start_ticks| ProcessIdentity { pid, start_ticks };
        let now = process(7, 9);
        assert!(is_same(now, now) && is_same(now, process(7, 0)) && !is_same(now, process(7, 8)) && !is_same(now, process(8, 9)));
    }

    #[test]
    fn the_last_interrupt_alone_is_one_of_them() {
        let read = |text: &str| interrupts(&mut serde_json::Deserializer::from_str(text)).unwrap();
        assert_eq!(read(r#"["a",3]"#), [("a".to_owned(), 3)]);
        assert_eq!(read(r#"[["a",3],["b",0]]"#), [("a".to_owned(), 3), ("b".to_owned(), 0)]);
        assert_eq!(read("[]"), []);
    }
}
