//! The public protocol as a JSON Schema and as TypeScript types, drawn from the Rust types. Only with the feature `schema`.
//!
//! It does not know where the two are kept: `proto/schema/tests/schema.rs` writes and compares the files.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};
use ts_rs::{Config, TS, TypeVisitor};

use crate::message::{self, PROTOCOL_VERSION};
use crate::{message::park, rpc};

/// What is said of both files, and how to write them again.
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
    let mut schema = Schema { generator: SchemaSettings::draft2020_12().for_deserialize().into_generator(), ..Schema::default() };
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

#[derive(Default)]
struct Schema {
    generator: SchemaGenerator,
    methods: Map<String, Value>,
    notifications: Map<String, Value>,
}

impl Schema {
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
    // All our numbers are at most 2^53-1, and `JSON.parse` makes numbers of them, not bigints.
    let config = Config::new().with_large_int("number");
    let mut types = Types { config, declarations: BTreeMap::new(), methods: String::new(), notifications: String::new() };
    types.visit::<rpc::Call>();
    types.visit::<rpc::Answer>();
    types.visit::<park::Wake>();
    message::show_requests(&mut types);
    message::show_notifications(&mut types);
    let Types { declarations, methods, notifications, config: _ } = types;
    let declarations: String = declarations.into_values().collect();
    format!(
        "// {HEADER}\n\n\
         /** The protocol version that these types are of. */\nexport const PROTOCOL_VERSION = {PROTOCOL_VERSION};\n\n\
         /** Each method: what it takes and what it answers. */\nexport interface Methods {{\n{methods}}}\n\n\
         /** Each notification that a daemon sends: what it carries. */\nexport interface Notifications {{\n{notifications}}}\n{declarations}"
    )
}

struct Types {
    config: Config,
    declarations: BTreeMap<String, String>,
    methods: String,
    notifications: String,
}

impl TypeVisitor for Types {
    fn visit<T: TS + 'static + ?Sized>(&mut self) {
        // What has no file of its own is TypeScript's: numbers, strings, lists.
        if T::output_path().is_some() {
            let name = T::ident(&self.config);
            if self.declarations.contains_key(&name) {
                return;
            }
            let docs = T::docs().unwrap_or_default();
            self.declarations.insert(name, format!("\n{}export {}\n", on_one_line(&docs), laid_out(&T::decl(&self.config))));
        }
        T::visit_dependencies(self);
        T::visit_generics(self);
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
