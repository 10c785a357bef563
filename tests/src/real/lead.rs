//! A root that is told of its children, as bytes on the wire: it counts what it has taken in.

use std::time::Instant;

use serde_json::{Value, json};

use super::PATIENCE;
use super::home::Home;
use super::tree::Tree;
use super::wire::Wire;

/// The root's voice: it holds the lease.
pub struct Lead {
    wire: Wire,
    /// What it was told with the lease.
    pub welcome: Value,
    /// Executions whose end it has taken in.
    told: Vec<Value>,
}

impl Lead {
    /// Takes the lease.
    #[track_caller]
    pub fn new(home: &Home, tree: &Tree<'_>) -> Self {
        let mut wire = Wire::connect(&home.socket());
        let identity = json!({"tree": tree.id, "token": tree.token});
        let hello = json!({"protocol_min": 1, "protocol_max": 1, "client": "lead", "role": "root", "identity": identity});
        let welcome = wire.call("hello", &hello).expect("the root is welcome");
        Self { wire, welcome, told: Vec::new() }
    }

    /// A call.
    #[track_caller]
    pub fn call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        self.wire.call(method, &params)
    }

    /// The end of this worker, taken in with all that comes before it.
    #[track_caller]
    pub fn end_of(&mut self, name: &str) -> Value {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            let delivery = self.take();
            let items = delivery["items"].as_array().expect("items");
            if let Some(end) = items.iter().find(|item| item["type"] == "completion" && item["name"] == name) {
                return end.clone();
            }
        }
        panic!("the end of {name} does not come");
    }

    /// The next delivery, taken in.
    #[track_caller]
    pub fn take(&mut self) -> Value {
        let delivery = self.delivery();
        self.ack(&delivery);
        delivery
    }

    /// The next delivery, not taken in.
    #[track_caller]
    pub fn delivery(&mut self) -> Value {
        self.note("deliver")
    }

    /// The next notification of this kind; others are passed over.
    #[track_caller]
    pub fn note(&mut self, method: &str) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let mut note = self.wire.note(left).unwrap_or_else(|| panic!("no {method} comes"));
            if note["method"] == method {
                return note["params"].take();
            }
        }
    }

    /// Takes the items of a delivery in.
    #[track_caller]
    pub fn ack(&mut self, delivery: &Value) -> Value {
        let items = delivery["items"].as_array().expect("items");
        let numbers: Vec<&Value> = items.iter().map(|item| &item["seq"]).collect();
        let acked = self.wire.call("ack", &json!({"items": numbers})).expect("it holds the lease");
        let accepted = acked["accepted"].as_array().expect("numbers");
        let ends = items.iter().filter(|item| item["type"] == "completion" && accepted.contains(&item["seq"]));
        self.told.extend(ends.map(|item| item["execution"].clone()));
        acked
    }

    /// Says that these are taken in, and does not hear the answer.
    #[track_caller]
    pub fn send_ack(&mut self, items: &[Value]) {
        self.wire.send("ack", &json!({"items": items}));
    }

    /// What came that was not looked at: a call that is answered is behind it.
    #[track_caller]
    pub fn heard(&mut self) -> Vec<Value> {
        self.call("inbox", json!({})).expect("the inbox");
        self.wire.notes()
    }

    /// What it is owed.
    #[track_caller]
    pub fn owed(&mut self) -> Vec<Value> {
        self.call("inbox", json!({})).expect("the inbox")["items"].as_array().expect("items").clone()
    }

    /// The executions whose end was taken in, as often as they were.
    pub fn told(&self) -> &[Value] {
        &self.told
    }
}
