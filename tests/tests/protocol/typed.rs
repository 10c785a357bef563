//! Whether what a transcript sends and expects can be said in the protocol at all: by the Rust types, and by the generated schema.

use std::collections::BTreeSet;

use roost_proto::message::Request;
use roost_proto::message::{daemon, deliver, events, launch, park, result, session, status, stop, tree, usage, words, worker};
use roost_tests::real::Names;
use serde_json::{Value, json};

macro_rules! requests {
    ($($request:ty)*) => {
        /// The methods whose parameters are read here.
        pub const READ: &[&str] = &[$(<$request>::METHOD),*];

        /// Reads parameters as the daemon would.
        pub fn read(method: &str, params: Value) -> Result<(), String> {
            match method {
                $(<$request>::METHOD => serde_json::from_value::<$request>(params).map(drop).map_err(|error| error.to_string()),)*
                unknown => Err(format!("there is no method {unknown}")),
            }
        }
    };
}

requests! {
    session::Hello tree::Open tree::Attach tree::Cap tree::Pause tree::Close tree::Watch launch::Launch result::Wait result::Told
    result::ReadResult status::Status stop::Stop stop::Interrupt park::Park words::Message words::TellLead deliver::Inbox deliver::Ack
    worker::Report worker::Settle worker::ParkReady worker::ParkDecline usage::ReadUsage events::ReadEvents daemon::DaemonStatus
    daemon::DaemonMetrics daemon::DaemonStop daemon::DaemonRestart daemon::DaemonGc
}

/// Parameters with a sample in place of every name, as the names are used in the transcripts.
pub fn with_samples(method: &str, params: &Value) -> Value {
    let mut names = Names::default();
    for name in names_in(params) {
        let sample = match name.as_str() {
            token if token.contains("token") => json!("0123456789abcdef0123456789abcdef"),
            "tree" => json!("t1"),
            execution if execution.starts_with("x_") => json!("x1"),
            _ if method == "ack" => json!(1),
            _ => json!("w1"),
        };
        names.set(&name, sample);
    }
    names.fill(params).unwrap()
}

/// The names that stand in a value.
pub fn names_in(value: &Value) -> BTreeSet<String> {
    match value {
        Value::String(text) => text.strip_prefix('$').filter(|name| !name.starts_with('$')).map(str::to_owned).into_iter().collect(),
        Value::Array(values) => values.iter().flat_map(names_in).collect(),
        Value::Object(fields) => fields.values().flat_map(names_in).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => BTreeSet::new(),
    }
}

/// Whether a value, of which fields may be missing, can be of this type: no unknown field, no unknown word.
pub fn can_be(schema: &Value, of: &Value, value: &Value) -> Result<(), String> {
    let mut all = Vec::new();
    branches(schema, of, &mut all);
    match value {
        Value::Object(fields) => fields.iter().try_for_each(|(key, value)| {
            let inner: Vec<&Value> = all
                .iter()
                .filter_map(|branch| {
                    branch["properties"].get(key).or_else(|| branch.get("additionalProperties").filter(|more| more.is_object()))
                })
                .collect();
            one_of(schema, &inner, value).map_err(|problem| format!("{key}: {problem}"))
        }),
        Value::Array(values) => {
            let inner: Vec<&Value> = all.iter().filter_map(|branch| branch.get("items")).collect();
            let pairs = all.iter().any(|branch| branch.get("prefixItems").is_some());
            if pairs { Ok(()) } else { values.iter().try_for_each(|value| one_of(schema, &inner, value)) }
        }
        Value::String(text) if !text.starts_with('$') => {
            let fits = |branch: &&Value| match (branch.get("const"), branch.get("enum")) {
                (Some(word), _) => word == text,
                (None, Some(words)) => words.as_array().unwrap().iter().any(|word| word == text),
                (None, None) => {
                    branch["type"] == "string" || branch["type"].as_array().is_some_and(|types| types.contains(&json!("string")))
                }
            };
            if all.iter().any(fits) { Ok(()) } else { Err(format!("{value} is not possible here")) }
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

fn one_of(schema: &Value, types: &[&Value], value: &Value) -> Result<(), String> {
    let mut problem = "there is no such field".to_owned();
    for of in types {
        match can_be(schema, of, value) {
            Ok(()) => return Ok(()),
            Err(found) => problem = found,
        }
    }
    Err(problem)
}

/// A type with all that it refers to and all its alternatives.
fn branches<'s>(schema: &'s Value, of: &'s Value, found: &mut Vec<&'s Value>) {
    found.push(of);
    if let Some(name) = of["$ref"].as_str() {
        branches(schema, schema.pointer(name.trim_start_matches('#')).unwrap(), found);
    }
    for list in ["anyOf", "oneOf", "allOf"] {
        for branch in of[list].as_array().into_iter().flatten() {
            branches(schema, branch, found);
        }
    }
}
