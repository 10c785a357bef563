//! Between the wire and the core: requests become commands here, replies and refusals become messages.
//!
//! Texts, arguments and environments go around the core as payloads. What a call is allowed to do is not known here; what it says is
//! checked as far as it can be without the broker's state.

use roost_core::command::{self, CallId, Caller, Claim, Command};
use roost_core::event::Digest;
use roost_proto::id::{Token, TreeId};
use roost_proto::limits::NAMES_PER_CALL_MAX;
use roost_proto::link::ProcessIdentity;
use roost_proto::message::daemon::{DaemonGc, DaemonMetrics, DaemonRestart, DaemonStatus, DaemonStop};
use roost_proto::message::deliver::Inbox;
use roost_proto::message::events::ReadEvents;
use roost_proto::message::launch::Launch;
use roost_proto::message::park::Park;
use roost_proto::message::result::{ReadResult, Wait};
use roost_proto::message::session::{Capability, Hello, RoleAsked};
use roost_proto::message::status::Status;
use roost_proto::message::stop::{Interrupt, Stop};
use roost_proto::message::tree::{Attach, Cap, Close, Open, Pause, Watch};
use roost_proto::message::usage::ReadUsage;
use roost_proto::message::worker::SavedContext;
use roost_proto::message::{METHODS, PROTOCOL_VERSION, Request};
use roost_proto::rpc::{ErrorKind, ErrorObject};
use rustix::rand::{GetRandomFlags, getrandom};
use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use super::envelope::in_words;
use super::{FromSession, Payload, Standing};

mod answers;
mod items;
mod launch;
mod pages;
mod settings;
mod speak;
mod sweeps;

pub use answers::{Answer, Files, Outputs, progress, refusal, reply_to, tree_status, wake, worker_status};
pub use items::deliveries;
pub use launch::shown;
pub use pages::pages;
pub use settings::{delivery_out, settings_in, settings_out};
pub use sweeps::swept;

/// The oldest protocol version that this build speaks.
pub const PROTOCOL_VERSION_MIN: u32 = 1;

/// What a connection may call that only reads.
const READING: [&str; 7] =
    [Status::METHOD, ReadUsage::METHOD, ReadEvents::METHOD, Watch::METHOD, DaemonStatus::METHOD, DaemonMetrics::METHOD, Inbox::METHOD];

/// The method of this name, if there is one: what is logged of a name that a peer has made up is nothing.
pub fn known(method: &str) -> Option<&'static str> {
    METHODS.iter().find(|known| **known == method).copied()
}

/// Reads a `hello`. The caller's ancestors are looked up only when it claims to be somebody.
pub fn hello(call: CallId, params: Option<&RawValue>, lineage: impl FnOnce() -> Vec<ProcessIdentity>) -> Result<FromSession, ErrorObject> {
    #[derive(Deserialize)]
    struct Versions {
        protocol_min: u32,
        protocol_max: u32,
    }
    // The rest of a hello may look otherwise in a version that is not spoken here.
    let Versions { protocol_min, protocol_max } = read(Hello::METHOD, params)?;
    if protocol_min > PROTOCOL_VERSION || protocol_max < PROTOCOL_VERSION_MIN || protocol_min > protocol_max {
        let message = format!(
            "the client speaks protocol versions {protocol_min} to {protocol_max}, this daemon {PROTOCOL_VERSION_MIN} to {PROTOCOL_VERSION}"
        );
        let hint = "use client and daemon of one release; `roost daemon restart` starts the installed daemon";
        return Err(ErrorObject::new(ErrorKind::ProtocolVersion, message, Some(hint.into())));
    }
    let hello: Hello = read(Hello::METHOD, params)?;
    let client: String = hello.client.chars().take(100).collect();
    tracing::debug!(call = call.0, client = %client.escape_debug(), "hello");
    let role = match hello.role {
        Some(RoleAsked::Root) => Some(command::Role::Root),
        Some(RoleAsked::Worker) => Some(command::Role::Voice {
            can_park: hello.capabilities.contains(&Capability::Park),
            steers: hello.capabilities.contains(&Capability::Steer),
        }),
        Some(RoleAsked::Observer) | None => None,
    };
    if role.is_some() && hello.identity.is_none() {
        let hint = "send `identity` along: what ROOST_TREE, ROOST_TOKEN and, in a worker, ROOST_WORKER and ROOST_EPOCH say";
        return Err(ErrorObject::new(ErrorKind::UnknownIdentity, "this role needs an identity", Some(hint.into())));
    }
    let claim = hello.identity.map(|identity| Claim {
        role,
        tree: identity.tree,
        worker: identity.worker,
        token: identity.token,
        epoch: identity.epoch,
        lineage: lineage(),
    });
    let payload = if hello.role == Some(RoleAsked::Observer) { Payload::Observes } else { Payload::None };
    Ok(FromSession::Command { command: Command::Hello { call, claim }, payload })
}

/// Reads any other request.
pub fn request(call: CallId, standing: Standing, method: &str, params: Option<&RawValue>) -> Result<FromSession, ErrorObject> {
    if standing.observes && !READING.contains(&method) {
        let message = format!("this connection only reads, and `{}` does more", known(method).unwrap_or("this"));
        let hint = format!("say hello without the role `observer`; it may call {}", READING.join(", "));
        return Err(ErrorObject::new(ErrorKind::ReadOnly, message, Some(hint)));
    }
    if let Some(spoken) = speak::request(call, standing, method, params) {
        return spoken;
    }
    let caller = standing.caller;
    Ok(match method {
        Open::METHOD => open(call, read(method, params)?)?,
        Attach::METHOD => {
            let Attach { tree } = read(method, params)?;
            command(Command::Attach { call, tree })
        }
        Cap::METHOD => {
            let Cap { cap } = read(method, params)?;
            command(Command::Cap { call, caller, cap })
        }
        Pause::METHOD => {
            let Pause { paused } = read(method, params)?;
            command(Command::Pause { call, caller, paused })
        }
        Close::METHOD => {
            let Close { now } = read(method, params)?;
            command(Command::Close { call, caller, now })
        }
        Watch::METHOD => {
            let Watch {} = read(method, params)?;
            FromSession::Watch { call, caller }
        }
        Launch::METHOD => launch::launch(call, caller, read(method, params)?)?,
        Wait::METHOD => {
            let Wait { request_id, names, any, tell_later, timeout_ms } = read(method, params)?;
            not_many(&names)?;
            command(Command::Wait { call, caller, request_id, names, any, tell_later, timeout_ms })
        }
        ReadResult::METHOD => {
            let ReadResult { name, execution, job, task_index, wait, request_id, timeout_ms, tree } = read(method, params)?;
            let of = match (execution, job) {
                (Some(execution), _) => command::Target::Execution(execution),
                (None, Some(job)) => command::Target::Job(job, task_index.unwrap_or(0)),
                (None, None) => command::Target::Name(name),
            };
            command(Command::Result { call, caller, tree, of, wait, request_id, timeout_ms })
        }
        Status::METHOD => {
            let Status { tree, name, after } = read(method, params)?;
            command(Command::Status { call, caller, tree, name, after })
        }
        Stop::METHOD => {
            let Stop { request_id, names, no_wait } = read(method, params)?;
            not_many(&names)?;
            command(Command::Stop { call, caller, request_id, names, no_wait })
        }
        Interrupt::METHOD => {
            let Interrupt { no_wait, request_id } = read(method, params)?;
            command(Command::Interrupt { call, caller, request_id, no_wait })
        }
        Park::METHOD => park(call, caller, read(method, params)?)?,
        DaemonStatus::METHOD => {
            let DaemonStatus {} = read(method, params)?;
            FromSession::DaemonStatus { call }
        }
        DaemonMetrics::METHOD => {
            let DaemonMetrics {} = read(method, params)?;
            FromSession::Metrics { call }
        }
        DaemonStop::METHOD => {
            let DaemonStop { now, timeout_ms } = read(method, params)?;
            command(Command::Drain { call: Some(call), now, timeout_ms })
        }
        DaemonGc::METHOD => {
            let DaemonGc { older_than_ms, max_bytes, dry_run } = read(method, params)?;
            // What files take is looked at before the core hears of it.
            let sweep = command::Sweep { older_than_ms, bytes_max: max_bytes, dry_run, sizes: Default::default() };
            command(Command::Gc { call, sweep: Box::new(sweep) })
        }
        DaemonRestart::METHOD => {
            let DaemonRestart {} = read(method, params)?;
            FromSession::Restart { call }
        }
        unknown => return Err(unknown_method(unknown)),
    })
}

/// The digest of a saved context: the first half of its SHA-256.
pub fn digest_of(bytes: &[u8]) -> Digest {
    shortened(Sha256::new_with_prefix(bytes))
}

fn shortened(hash: Sha256) -> Digest {
    let hash: [u8; 32] = hash.finalize().into();
    Digest(hash[..16].iter().fold(0, |number, byte| (number << 8) | u128::from(*byte)))
}

fn command(command: Command) -> FromSession {
    FromSession::Command { command, payload: Payload::None }
}

fn open(call: CallId, open: Open) -> Result<FromSession, ErrorObject> {
    let Open { request_id, key, settings, ephemeral } = open;
    // 53 bits: readable, no collision to fear in one user's life, and exact wherever a number goes.
    let tree = TreeId(u64::from_le_bytes(random()?) >> 11);
    let token = Token::new(random()?);
    let open = command::Open { tree, token, request_id, key, ephemeral, settings: settings_in(settings) };
    Ok(command(Command::Open { call, open: Box::new(open) }))
}

fn park(call: CallId, caller: Caller, park: Park) -> Result<FromSession, ErrorObject> {
    let saved = match (park.context, park.context_path) {
        (Some(context), None) => SavedContext::Bytes(context),
        (None, Some(path)) => SavedContext::Path(path),
        (Some(_), Some(_)) | (None, None) => {
            let message = "a park has either a context or the path of one";
            return Err(ErrorObject::new(ErrorKind::BadValue, message, Some("send `context` or `context_path`".into())));
        }
    };
    let (context, kept) = speak::saved(saved)?;
    Ok(FromSession::Command {
        command: Command::Park { call, caller, context },
        payload: Payload::Said { text: None, context: Some(kept) },
    })
}

fn read<'a, T: Deserialize<'a>>(method: &str, params: Option<&'a RawValue>) -> Result<T, ErrorObject> {
    let params = params.map_or("{}", RawValue::get);
    serde_json::from_str(params).map_err(|error| {
        let hint = format!("the place is counted from the start of `params`; docs/protocol.md shows what `{method}` takes");
        ErrorObject::new(ErrorKind::InvalidParams, format!("the parameters do not fit `{method}`: {}", in_words(&error)), Some(hint))
    })
}

/// A list of names is kept as long as its call waits, and in the journal after it.
fn not_many(names: &[String]) -> Result<(), ErrorObject> {
    if names.len() <= NAMES_PER_CALL_MAX {
        return Ok(());
    }
    let message = format!("{} names in one call, and the limit is {NAMES_PER_CALL_MAX}", names.len());
    Err(ErrorObject::new(ErrorKind::Limit, message, Some("split them into several calls, or name none to wait for all".into())))
}

fn unknown_method(method: &str) -> ErrorObject {
    let shown: String = method.chars().take(60).collect();
    let hint = format!("the methods are {}", METHODS.join(", "));
    ErrorObject::new(ErrorKind::UnknownMethod, format!("there is no method `{}`", shown.escape_debug()), Some(hint))
}

/// Bytes that nobody can guess.
fn random<const N: usize>() -> Result<[u8; N], ErrorObject> {
    let mut bytes = [0; N];
    match getrandom(&mut bytes, GetRandomFlags::empty()) {
        Ok(count) if count == N => Ok(bytes),
        Ok(_) | Err(_) => {
            tracing::error!("the kernel gave no random bytes");
            Err(ErrorObject::new(ErrorKind::Internal, "the kernel gave no random bytes", None))
        }
    }
}

#[cfg(test)]
mod tests {
    use roost_proto::limits::CONTEXT_BYTES_MAX;

    use super::super::Kept;
    use super::*;

    fn asked(method: &str, params: &str) -> Result<FromSession, ErrorObject> {
        let params = RawValue::from_string(params.into()).unwrap();
        request(CallId(1), Standing::of(Caller::Root(TreeId(2))), method, Some(&params))
    }

    #[test]
    fn every_method_is_read() {
        for method in METHODS.iter().filter(|method| **method != Hello::METHOD) {
            let params = match *method {
                Launch::METHOD => r#"{"request_id":"r","tasks":[],"submitter":{"env":[],"cwd":"/","umask":18}}"#,
                Attach::METHOD => r#"{"tree":"t1"}"#,
                Pause::METHOD => r#"{"paused":true}"#,
                "settle" | "tell_lead" => r#"{"request_id":"r","text":"t"}"#,
                "message" => r#"{"request_id":"r","name":"n","text":"t"}"#,
                "ack" => r#"{"items":[1]}"#,
                "told" => r#"{"executions":["x1"]}"#,
                Open::METHOD | Wait::METHOD => r#"{"request_id":"r"}"#,
                ReadResult::METHOD => r#"{"name":"n"}"#,
                Stop::METHOD => r#"{"names":["n"]}"#,
                Park::METHOD => r#"{"context":"c"}"#,
                Close::METHOD | Interrupt::METHOD => "{}",
                _ => "{}",
            };
            assert!(asked(method, params).is_ok(), "{method}");
        }
        let stop = asked(DaemonStop::METHOD, r#"{"now":true,"timeout_ms":5}"#);
        let drain = Command::Drain { call: Some(CallId(1)), now: true, timeout_ms: Some(5) };
        assert!(matches!(stop, Ok(FromSession::Command { command, .. }) if command == drain));
        // Without parameters, where none are needed.
        assert!(request(CallId(1), Standing::of(Caller::Operator), Status::METHOD, None).is_ok());
    }

    #[test]
    fn a_context_is_kept_whole_and_bounded() {
        let bytes = r#"{"context":{"bytes":[255,0,10]}}"#;
        let Ok(FromSession::Command {
            command: Command::Park { context, .. },
            payload: Payload::Said { text: None, context: Some(Kept::Bytes(kept)) },
        }) = asked("park", bytes)
        else {
            panic!("no park")
        };
        assert_eq!((kept.as_slice(), context.bytes, context.digest), (&[255, 0, 10][..], 3, digest_of(&[255, 0, 10])));
        // The first half of the SHA-256 of nothing.
        assert_eq!(digest_of(b"").0, 0xe3b0_c442_98fc_1c14_9afb_f4c8_996f_b924);
        let large = format!(r#"{{"context":"{}"}}"#, "x".repeat(CONTEXT_BYTES_MAX + 1));
        assert!(asked("park", &large).is_err_and(|error| error.data.kind == ErrorKind::BadValue));
    }

    #[test]
    fn lists_of_names_are_bounded() {
        for (method, rest) in [("wait", r#""request_id":"r","#), ("stop", "")] {
            let of = |names: usize| asked(method, &format!(r#"{{{rest}"names":[{}]}}"#, vec!["\"a\""; names].join(",")));
            assert!(of(NAMES_PER_CALL_MAX).is_ok());
            assert!(of(NAMES_PER_CALL_MAX + 1).is_err_and(|error| error.data.kind == ErrorKind::Limit), "{method}");
        }
    }

    #[test]
    fn trees_are_opened_with_what_nobody_can_guess() {
        let opened = |()| match asked("open", r#"{"request_id":"r","settings":{"cap":3}}"#) {
            Ok(FromSession::Command { command: Command::Open { open, .. }, .. }) => *open,
            _ => panic!("no open"),
        };
        let (one, other) = (opened(()), opened(()));
        assert!(one.tree != other.tree && one.token != other.token && one.tree.0 < 1 << 53);
        assert_eq!((one.settings.cap, one.settings.budget), (3, 50));
    }
}
