//! Records of a transcript as a conversation: what was said to a worker and by it. Pure; kinds that say nothing are shown as they are.

use serde_json::{Map, Value};

use super::text::safe;
use crate::commands::logs::transcript_lines;

/// A line of the file, as lines to show.
pub fn lines(line: &[u8]) -> Vec<String> {
    let Ok(record) = serde_json::from_slice::<Map<String, Value>>(line) else {
        return vec!["(a record that cannot be read)".into()];
    };
    let word = |field: &str| record.get(field).and_then(Value::as_str).unwrap_or_default();
    match word("kind") {
        "task" => said("> task", word("text")),
        "items" => items(&record),
        "report" => said("< says so far", word("text")),
        "message" if word("direction") == "in" => said(&format!("> message from {}", peer(&record)), word("text")),
        "message" => said(&format!("< message to {}", peer(&record)), word("text")),
        "settle" if record.get("outcome").is_some_and(|outcome| !outcome.is_null()) => said("< answers", word("answer")),
        "settle" => said("< ends its turn", word("answer")),
        "usage" | "ack" => Vec::new(),
        _ => transcript_lines(&record).iter().map(|line| safe(line)).collect(),
    }
}

fn peer(record: &Map<String, Value>) -> String {
    record.get("peer").and_then(Value::as_str).map_or_else(|| "the root".into(), safe)
}

fn items(record: &Map<String, Value>) -> Vec<String> {
    let delivery = record.get("delivery").and_then(|delivery| delivery.get("items"));
    let all = delivery.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    all.iter().flat_map(item).collect()
}

fn item(item: &Value) -> Vec<String> {
    let word = |field: &str| item.get(field).and_then(Value::as_str).unwrap_or_default();
    let kind = word("type").replace('_', " ");
    let from = [word("name"), word("from")].into_iter().find(|name| !name.is_empty());
    let head = from.map_or_else(|| format!("> {}", safe(&kind)), |from| format!("> {} of {}", safe(&kind), safe(from)));
    let text = if word("text").is_empty() { word("answer") } else { word("text") };
    said(&head, text)
}

fn said(head: &str, text: &str) -> Vec<String> {
    std::iter::once(head.to_owned()).chain(text.lines().map(|line| format!("  {}", safe(line)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_reads_as_one() {
        let task = br#"{"at_ms":1,"epoch":1,"kind":"items","delivery":{"items":[{"seq":1,"type":"task","text":"count\nbirds"}]}}"#;
        assert_eq!(lines(task), ["> task", "  count", "  birds"]);
        let done = br#"{"kind":"items","delivery":{"items":[{"type":"completion","name":"kid\u001b","answer":"3"}]}}"#;
        assert_eq!(lines(done), ["> completion of kid\\x1b", "  3"]);
        assert_eq!(lines(br#"{"kind":"message","direction":"in","peer":null,"text":"go on"}"#), ["> message from the root", "  go on"]);
        assert_eq!(lines(br#"{"kind":"settle","answer":"three","outcome":{"status":"completed"}}"#), ["< answers", "  three"]);
        assert_eq!(lines(b"{"), ["(a record that cannot be read)"]);
        assert!(lines(br#"{"kind":"usage","usage":{}}"#).is_empty());
    }
}
