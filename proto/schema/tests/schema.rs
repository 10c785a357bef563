//! The generated files are what the Rust types say, and nothing of the protocol is missing in them.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use roost_proto_schema::message::{METHODS, NOTIFICATIONS};
use roost_proto_schema::schema;
use serde_json::Value;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compares a file with what it should be, or writes it when `ROOST_REGENERATE` is set.
fn is_current(path: &str, wanted: &str) {
    let file = repository().join(path);
    if std::env::var_os("ROOST_REGENERATE").is_some() {
        fs::write(&file, wanted).unwrap_or_else(|error| panic!("{path}: {error}"));
        return;
    }
    let found = fs::read_to_string(&file).unwrap_or_default();
    let line = found.lines().zip(wanted.lines()).position(|(found, wanted)| found != wanted);
    let line = line.unwrap_or_else(|| found.lines().count().min(wanted.lines().count())) + 1;
    assert!(
        found == wanted,
        "{path} and the Rust types part at line {line}; to write it again: ROOST_REGENERATE=1 cargo test -p roost-proto-schema"
    );
}

fn words(of: &Value) -> BTreeSet<String> {
    of.as_object().unwrap().keys().cloned().collect()
}

#[test]
fn the_schemas_are_current() {
    for (path, schema) in
        [("docs/protocol.schema.json", schema::json_schema()), ("docs/details.schema.json", schema::details_json_schema())]
    {
        is_current(path, &(serde_json::to_string_pretty(&schema).unwrap() + "\n"));
    }
}

#[test]
fn the_typescript_types_are_current() {
    is_current("client/pi/protocol.ts", &schema::typescript());
    is_current("client/pi/contracts.ts", &schema::details_typescript());
}

#[test]
fn every_method_and_every_notification_is_there() {
    let (schema, typescript) = (schema::json_schema(), schema::typescript());
    let expected = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(words(&schema["methods"]), expected(METHODS));
    assert_eq!(words(&schema["notifications"]), expected(NOTIFICATIONS));
    for method in METHODS.iter().chain(NOTIFICATIONS) {
        assert!(typescript.contains(&format!("\n  \"{method}\": ")), "{method} is not in the TypeScript tables");
    }
    // A notification's method is a constant beside its parameters: none of them may be missing in the table.
    for entry in fs::read_dir(repository().join("proto/src/message")).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        for line in text.lines().filter(|line| line.starts_with("pub const ") && line.contains(": &str = ")) {
            let method = line.split('"').nth(1).unwrap();
            assert!(NOTIFICATIONS.contains(&method), "`{line}` is not in `notifications!`");
        }
    }
}

/// The declarations of the TypeScript file, by name.
fn declared(typescript: &str) -> Vec<(String, String)> {
    let parts = typescript.split("\nexport type ").skip(1);
    parts.map(|part| part.split_once(" = ").map(|(name, text)| (name.to_owned(), text.to_owned())).unwrap()).collect()
}

#[test]
fn both_files_have_the_same_types() {
    // Two Rust types of one name would be told apart by a number in the one and fall together in the other.
    let in_typescript: BTreeSet<String> = declared(&schema::typescript()).into_iter().map(|(name, _)| name).collect();
    let mut in_schema = words(&schema::json_schema()["$defs"]);
    // A task's `env` is written in place in TypeScript.
    assert!(in_schema.remove("Variables"));
    assert_eq!(in_schema, in_typescript);
    // Of the types of details, those of the protocol are imported from there.
    let of_details: BTreeSet<String> = declared(&schema::details_typescript()).into_iter().map(|(name, _)| name).collect();
    let in_details_schema = words(&schema::details_json_schema()["$defs"]);
    assert_eq!(in_details_schema.difference(&in_typescript).cloned().collect::<BTreeSet<_>>(), of_details);
}

#[test]
fn what_a_caller_may_leave_out_is_optional_in_typescript_too() {
    let (schema, typescript) = (schema::json_schema(), declared(&schema::typescript()));
    let mut seen = 0;
    for types in schema["methods"].as_object().unwrap().values() {
        let name = types["params"]["$ref"].as_str().unwrap().strip_prefix("#/$defs/").unwrap();
        let type_of = &schema["$defs"][name];
        let required: Vec<&str> = type_of["required"].as_array().map_or(Vec::new(), |all| all.iter().filter_map(Value::as_str).collect());
        let text = &typescript.iter().find(|(declared, _)| declared == name).unwrap().1;
        for field in type_of["properties"].as_object().into_iter().flat_map(|all| all.keys()) {
            let wanted = if required.contains(&field.as_str()) { format!("\n  {field}: ") } else { format!("\n  {field}?: ") };
            assert!(
                text.contains(&wanted),
                "{name}.{field}: TypeScript should have `{}`: add ts(as = \"Option<_>\", optional)\n{text}",
                wanted.trim()
            );
            seen += 1;
        }
    }
    assert!(seen > 40, "only {seen} fields of parameters were looked at");
}
