//! The public protocol, and result data as hosts keep it, as JSON Schemas and as TypeScript types, drawn from the Rust types. Only with
//! the feature `schema`.
//!
//! It does not know where they are kept: `proto/schema/tests/schema.rs` writes and compares the files.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};
use ts_rs::{Config, TS, TypeVisitor};

use crate::details::{
    COMPACT_SCHEMA_VERSION, CompactDetails, SUBAGENT_COMPLETION_TYPE, SUBAGENT_MESSAGE_TYPE, SUBAGENT_RECORD_TYPE, SubagentDetails,
    USAGE_TREE_DEPTH_MAX,
};
use crate::message::{self, PROTOCOL_VERSION};
use crate::{message::park, rpc};

/// What is said of all files, and how to write them again.
const HEADER: &str = "Generated from the Rust types in proto/src. Do not edit: ROOST_REGENERATE=1 cargo test -p roost-proto-schema";

/// A type of the wire that can be described.
pub trait Described: JsonSchema + TS + 'static {}
impl<T: JsonSchema + TS + 'static> Described for T {}

/// Is shown every request and notification.
pub(crate) trait Visitor {
    /// A request: its parameters and its reply.
    fn request<P: Described, R: Described>(&mut self, method: &'static str);
    /// A notification: its parameters.
    fn notification<P: Described>(&mut self, method: &'static str);
}

/// The JSON Schema (draft 2020-12): a line of the socket, each type in `$defs`, and the types of each method.
///
/// A field that may be left out by a sender is not `required`, in replies too: a client must live without it.
pub fn json_schema() -> Value {
    let mut schema = Schema::new();
    let call = schema.name_of::<rpc::Call>();
    let answer = schema.name_of::<rpc::Answer>();
    schema.name_of::<park::Wake>();
    message::show_requests(&mut schema);
    message::show_notifications(&mut schema);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$comment": HEADER,
        "title": "A line of the Roost socket",
        "anyOf": [call, answer],
        "protocol_version": PROTOCOL_VERSION,
        "methods": schema.methods,
        "notifications": schema.notifications,
        "$defs": schema.generator.take_definitions(true),
    })
}

/// The JSON Schema (draft 2020-12) of result data as hosts keep it.
pub fn details_json_schema() -> Value {
    let mut schema = Schema::new();
    json!({
        "anyOf": [schema.name_of::<SubagentDetails>(), schema.name_of::<CompactDetails>()],
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$comment": HEADER,
        "title": "Results of subagents, live or compact",
        "$defs": schema.generator.take_definitions(true),
    })
}

struct Schema {
    generator: SchemaGenerator,
    methods: Map<String, Value>,
    notifications: Map<String, Value>,
}

impl Schema {
    fn new() -> Self {
        let generator = SchemaSettings::draft2020_12().for_deserialize().into_generator();
        Self { generator, methods: Map::new(), notifications: Map::new() }
    }

    fn name_of<T: JsonSchema>(&mut self) -> Value {
        self.generator.subschema_for::<T>().to_value()
    }
}

impl Visitor for Schema {
    fn request<P: Described, R: Described>(&mut self, method: &'static str) {
        let types = json!({"params": self.name_of::<P>(), "result": self.name_of::<R>()});
        self.methods.insert(method.to_owned(), types);
    }

    fn notification<P: Described>(&mut self, method: &'static str) {
        let types = json!({"params": self.name_of::<P>()});
        self.notifications.insert(method.to_owned(), types);
    }
}

/// One TypeScript module: each type, and the tables `Methods` and `Notifications`.
pub fn typescript() -> String {
    let Types { declarations, methods, notifications, .. } = protocol_types();
    let declarations: String = declarations.into_values().collect();
    format!(
        "// {HEADER}\n\n\
         /** The protocol version that these types are of. */\nexport const PROTOCOL_VERSION = {PROTOCOL_VERSION};\n\n\
         /** Each method: what it takes and what it answers. */\nexport interface Methods {{\n{methods}}}\n\n\
         /** Each notification that a daemon sends: what it carries. */\nexport interface Notifications {{\n{notifications}}}\n{declarations}"
    )
}

/// A TypeScript module beside the one of the protocol: result data as hosts keep it, and its names.
pub fn details_typescript() -> String {
    let mut types = Types::new(protocol_types().declarations.into_keys().collect());
    types.visit::<SubagentDetails>();
    types.visit::<CompactDetails>();
    let Types { declarations, imported, .. } = types;
    let declarations: String = declarations.into_values().collect();
    let imported = imported.into_iter().collect::<Vec<_>>().join(", ");
    format!(
        "// {HEADER}\n\n\
         import type {{ {imported} }} from \"./protocol.ts\";\n\n\
         /** The `customType` of a message that has results of subagents in it. */\n\
         export const SUBAGENT_COMPLETION_TYPE = \"{SUBAGENT_COMPLETION_TYPE}\";\n\
         /** The `customType` of words to or from a subagent that are no result. */\n\
         export const SUBAGENT_MESSAGE_TYPE = \"{SUBAGENT_MESSAGE_TYPE}\";\n\
         /** The `customType` of an entry of a session that keeps the compact details of one execution that has ended. */\n\
         export const SUBAGENT_RECORD_TYPE = \"{SUBAGENT_RECORD_TYPE}\";\n\
         /** The version of the compact form. */\n\
         export const COMPACT_SCHEMA_VERSION = {COMPACT_SCHEMA_VERSION};\n\
         /** The deepest worker that a usage tree shows. */\n\
         export const USAGE_TREE_DEPTH_MAX = {USAGE_TREE_DEPTH_MAX};\n{declarations}"
    )
}

fn protocol_types() -> Types {
    let mut types = Types::new(BTreeSet::new());
    types.visit::<rpc::Call>();
    types.visit::<rpc::Answer>();
    types.visit::<park::Wake>();
    message::show_requests(&mut types);
    message::show_notifications(&mut types);
    types
}

struct Types {
    config: Config,
    /// Types of another module, and the ones of them that were met.
    elsewhere: BTreeSet<String>,
    imported: BTreeSet<String>,
    declarations: BTreeMap<String, String>,
    methods: String,
    notifications: String,
}

impl Types {
    fn new(elsewhere: BTreeSet<String>) -> Self {
        Self {
            // All our numbers are at most 2^53-1, and `JSON.parse` makes numbers of them, not bigints.
            config: Config::new().with_large_int("number"),
            elsewhere,
            imported: BTreeSet::new(),
            declarations: BTreeMap::new(),
            methods: String::new(),
            notifications: String::new(),
        }
    }
}

impl TypeVisitor for Types {
    fn visit<T: TS + 'static + ?Sized>(&mut self) {
        T::visit_generics(self);
        // What has no file of its own is TypeScript's: numbers, strings, lists. A list has the dependencies of its elements, which
        // are the list itself again in a type that nests.
        if T::output_path().is_none() {
            return;
        }
        let name = T::ident(&self.config);
        if self.elsewhere.contains(&name) {
            self.imported.insert(name);
            return;
        }
        if self.declarations.contains_key(&name) {
            return;
        }
        let docs = T::docs().unwrap_or_default();
        self.declarations.insert(name, format!("\n{}export {}\n", on_one_line(&docs), laid_out(&T::decl(&self.config))));
        T::visit_dependencies(self);
    }
}

/// A comment of one line, written in one line.
fn on_one_line(comments: &str) -> String {
    comments.replace("/**\n * ", "/** ").replace("\n */", " */")
}

/// A declaration with its fields indented. ts-rs leaves the layout to a formatter, which would be a large dependency.
fn laid_out(declaration: &str) -> String {
    let text = on_one_line(declaration).replace(", }", ",\n}");
    let lines = text.lines().enumerate().map(|(number, line)| {
        let indent = if number == 0 || line.starts_with('}') { "" } else { "  " };
        format!("{indent}{}", line.trim_end())
    });
    lines.collect::<Vec<_>>().join("\n")
}

impl Visitor for Types {
    fn request<P: Described, R: Described>(&mut self, method: &'static str) {
        self.visit::<P>();
        self.visit::<R>();
        let line = format!("  \"{method}\": {{ params: {}; result: {} }};\n", P::name(&self.config), R::name(&self.config));
        self.methods.push_str(&line);
    }

    fn notification<P: Described>(&mut self, method: &'static str) {
        self.visit::<P>();
        self.notifications.push_str(&format!("  \"{method}\": {};\n", P::name(&self.config)));
    }
}
