//! What leads say of what they are owed and workers of their own work, on its way in.
//!
//! Texts and contexts go around the core as payloads.

use roost_core::command::{Activity, CallId, Command, Settle, Speak};
use roost_core::event::{Context, Place};
use roost_proto::limits::{ACK_ITEMS_MAX, CONTEXT_BYTES_MAX, MESSAGE_BYTES_MAX, REASON_BYTES_MAX};
use roost_proto::message::deliver::{Ack, Inbox};
use roost_proto::message::result::Told;
use roost_proto::message::usage::ReadUsage;
use roost_proto::message::words::{Message, TellLead};
use roost_proto::message::worker::{self, ParkDecline, ParkReady, Report, SavedContext, TurnError, TurnErrorKind};
use roost_proto::message::{Request, events::ReadEvents};
use roost_proto::outcome::Failure;
use roost_proto::rpc::{ErrorKind, ErrorObject};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use super::pages::cut;
use super::{digest_of, read, shortened};
use crate::session::{FromSession, Kept, Payload, Standing};

/// One of these requests; `None` when the method is another.
pub fn request(call: CallId, standing: Standing, method: &str, params: Option<&RawValue>) -> Option<Result<FromSession, ErrorObject>> {
    let known = [
        Report::METHOD,
        worker::Settle::METHOD,
        ParkReady::METHOD,
        ParkDecline::METHOD,
        Ack::METHOD,
        Inbox::METHOD,
        Told::METHOD,
        Message::METHOD,
        TellLead::METHOD,
        ReadUsage::METHOD,
        ReadEvents::METHOD,
    ];
    known.contains(&method).then(|| understood(call, standing, method, params))
}

fn understood(call: CallId, standing: Standing, method: &str, params: Option<&RawValue>) -> Result<FromSession, ErrorObject> {
    let Standing { caller, lease, observes: _, tree: _ } = standing;
    let (speak, payload) = match method {
        Report::METHOD => report(read(method, params)?),
        worker::Settle::METHOD => settle(read(method, params)?)?,
        ParkReady::METHOD => {
            let ParkReady { context, .. } = read(method, params)?;
            let (known, context) = context.map(saved).transpose()?.unzip();
            (Speak::ParkReady { context: known }, Payload::Said { text: None, context })
        }
        ParkDecline::METHOD => {
            let ParkDecline { not_before_ms } = read(method, params)?;
            (Speak::ParkDecline { not_before_ms }, Payload::None)
        }
        Ack::METHOD => {
            let Ack { request_id, items } = read(method, params)?;
            not_more(items.len())?;
            (Speak::Ack { request_id, items }, Payload::None)
        }
        Inbox::METHOD => {
            let Inbox {} = read(method, params)?;
            (Speak::Inbox, Payload::None)
        }
        Told::METHOD => {
            let Told { executions } = read(method, params)?;
            not_more(executions.len())?;
            (Speak::Told { executions }, Payload::None)
        }
        Message::METHOD => message(read(method, params)?)?,
        TellLead::METHOD => {
            let TellLead { request_id, text } = read(method, params)?;
            within(&text)?;
            let digest = shortened(Sha256::new_with_prefix(text.as_bytes()));
            (Speak::TellLead { request_id, digest }, Payload::Said { text: Some(text), context: None })
        }
        ReadUsage::METHOD => {
            let ReadUsage { tree, name, each, after } = read(method, params)?;
            return Ok(super::command(Command::Usage { call, caller, tree, name, each, after }));
        }
        _ => return Ok(FromSession::Events { call, caller, read: read(method, params)? }),
    };
    let command = Command::Speak { call, caller, lease, speak: Box::new(speak) };
    Ok(FromSession::Command { command, payload })
}

fn report(report: Report) -> (Speak, Payload) {
    let Report { activity, usage, text } = report;
    let activity = activity.map(|activity| match activity {
        worker::Activity::Busy => Activity::Busy,
        worker::Activity::Tool => Activity::Tool,
        worker::Activity::Idle => Activity::Idle,
    });
    (Speak::Report { activity, usage, says: text.is_some() }, Payload::Said { text, context: None })
}

fn settle(settle: worker::Settle) -> Result<(Speak, Payload), ErrorObject> {
    let worker::Settle { request_id, answer, context, ended, usage } = settle;
    let (known, kept) = context.map(saved).transpose()?.unzip();
    let worker::TurnEnd { aborted, error, wrapped_up, truncated } = ended;
    let error = error.map(|TurnError { kind, message }| {
        // It goes into every view of the worker from now on.
        let message = cut(message, REASON_BYTES_MAX);
        match kind {
            TurnErrorKind::Provider => Failure::Provider { message },
            TurnErrorKind::TurnLimit => Failure::TurnLimit { message },
            TurnErrorKind::Protocol => Failure::Protocol { reason: message },
        }
    });
    // An answer without a word is none.
    let answer = answer.filter(|answer| !answer.is_empty());
    let answered = answer.is_some();
    let settle = Settle { request_id, answered, context: known, aborted, error, wrapped_up, truncated, usage };
    Ok((Speak::Settle { settle }, Payload::Said { text: answer, context: kept }))
}

fn message(message: Message) -> Result<(Speak, Payload), ErrorObject> {
    let Message { request_id, name, text, max_subagents_allowed } = message;
    within(&text)?;
    // The length keeps name and text apart; a missing allowance is not 0.
    let hash = Sha256::new_with_prefix((name.len() as u64).to_le_bytes())
        .chain_update(name.as_bytes())
        .chain_update(max_subagents_allowed.map_or(-1, u64::cast_signed).to_le_bytes())
        .chain_update(text.as_bytes());
    let digest = shortened(hash);
    let speak = Speak::Message { request_id, digest, name, allowance: max_subagents_allowed };
    Ok((speak, Payload::Said { text: Some(text), context: None }))
}

/// A context as the journal knows it, and what is kept of it. What is in a file is found before the call goes on.
pub(super) fn saved(context: SavedContext) -> Result<(Context, Kept), ErrorObject> {
    let bytes = match context {
        SavedContext::Path(path) => {
            let unknown = Context { digest: Default::default(), bytes: 0, place: Place::Path };
            return Ok((unknown, Kept::File(path.as_os_str().into())));
        }
        SavedContext::Bytes(bytes) => bytes.0,
    };
    if bytes.len() > CONTEXT_BYTES_MAX {
        let message = format!("the context must have at most {CONTEXT_BYTES_MAX} bytes, and this one has {}", bytes.len());
        let hint = "keep it in a file, and save the file's path (`roost park --context-path FILE`)";
        return Err(ErrorObject::new(ErrorKind::BadValue, message, Some(hint.into())));
    }
    let context = Context { digest: digest_of(&bytes), bytes: bytes.len() as u64, place: Place::Journal };
    Ok((context, Kept::Bytes(bytes)))
}

fn within(text: &str) -> Result<(), ErrorObject> {
    if text.len() <= MESSAGE_BYTES_MAX {
        return Ok(());
    }
    let message = format!("a message may have {MESSAGE_BYTES_MAX} bytes, and this one has {}", text.len());
    Err(ErrorObject::new(ErrorKind::BadValue, message, Some("put it into a file, and send the file's path".into())))
}

fn not_more(count: usize) -> Result<(), ErrorObject> {
    if count <= ACK_ITEMS_MAX {
        return Ok(());
    }
    let message = format!("{count} of them in one call, and the limit is {ACK_ITEMS_MAX}");
    Err(ErrorObject::new(ErrorKind::Limit, message, Some("split them into several calls".into())))
}
