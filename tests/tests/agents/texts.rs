//! Texts are data: of any size, with any separator, through every reader; names and answers cannot write to a terminal.

use roost::{Config, Lead as LibraryLead, LeadEvent, Places, Seen};
use roost_tests::real::{Agents, Home, Lead, PATIENCE, Tree, kind_of, outcome_of};
use serde_json::json;

// B12 (a), (b).
#[test]
fn a_long_task_arrives_whole_and_a_long_answer_goes_out_whole() {
    let home = Home::new();
    let (tree, mut agents) = (Tree::open(&home, &[]), Agents::new(&home));
    let mut task = agents.task("w");
    task["task"] = json!("a".repeat(200_000));
    tree.launch(json!([task]));
    let mut w = agents.begins("w");
    w.does(&json!("hello"));
    assert!(w.texts() == ["a".repeat(200_000)]);
    let answer = "b".repeat(5 << 20);
    w.finish(&answer);
    assert!(tree.roost(["result", "w", "--wait", "--raw"]).run().ok().stdout == answer.as_bytes());
    // In one line of JSON it may be cut, and says so.
    let result = tree.result("w");
    let shown = result["answer"].as_str().unwrap();
    assert_eq!(result["answer_bytes"], 5_242_880);
    assert!(answer.starts_with(shown) && (result["answer_truncated"] == true) == (shown.len() < answer.len()));
}

#[test]
fn words_that_grow_as_json_are_split_over_lines_and_none_is_lost() {
    let home = Home::new();
    let (tree, mut agents) = (Tree::open(&home, &[]), Agents::new(&home));
    let mut w = agents.start(&tree, "w", 0);
    // Each byte takes six on a line: two of these are more than a line may have.
    let text = "\u{1}".repeat(1 << 20);
    for number in ["1", "2", "3"] {
        w.call("tell_lead", json!({"request_id": number, "text": text})).unwrap();
    }
    let mut lead = Lead::new(&home, &tree);
    let look = lead.call("inbox", json!({})).unwrap();
    assert_eq!((look["items"].as_array().unwrap().len(), &look["more"]), (1, &json!(2)));
    for _ in 0..3 {
        let delivery = lead.take();
        let items = delivery["items"].as_array().unwrap();
        assert!(items.len() == 1 && items[0]["text"] == text.as_str(), "{}", items.len());
    }
    assert!(lead.owed().is_empty());
    w.finish("done");
    assert_eq!(tree.answer("w"), "done");
}

#[test]
fn why_a_turn_failed_is_cut_where_it_is_too_long() {
    let home = Home::new();
    let (tree, mut agents) = (Tree::open(&home, &[]), Agents::new(&home));
    let mut w = agents.start(&tree, "w", 0);
    let message = "why ".repeat(500_000);
    w.call("settle", json!({"answer": "part", "ended": {"error": {"kind": "provider", "message": message}}})).unwrap();
    w.exit(0);
    let result = tree.result("w");
    assert_eq!((outcome_of(&result), &result["answer"]), ("provider", &json!("part")));
    let shown = result["outcome"]["message"].as_str().unwrap();
    assert!(message.starts_with(shown) && (1_000..10_000).contains(&shown.len()), "{}", shown.len());
}

// B13: at the command, the library and the wire. The Pi extension has tests of its own.
#[test]
fn separators_of_unicode_in_an_answer_are_data_for_every_reader() {
    let text = "a\u{2028}b\u{2029}c\u{85}d\r\ne\u{b}f";
    for (number, end) in ["\n", "\r\n", "\n\n\r\n"].iter().enumerate() {
        let home = Home::new();
        let (tree, mut agents) = (Tree::open(&home, &[]), Agents::new(&home));
        let mut lead = Lead::new(&home, &tree);
        let mut w = agents.start(&tree, "w", 0);
        // serde writes the separators above U+001F raw and escapes the others.
        let line = json!({"jsonrpc": "2.0", "id": 1_000_000, "method": "settle", "params": {"request_id": "s", "answer": text}});
        w.does(&json!({"raw": format!("{line}{end}")}));
        assert_eq!(w.does(&json!({"answer": 1_000_000}))["next"], "exit", "{number}");
        w.exit(0);
        assert_eq!(lead.delivery()["items"][0]["answer"], text);
        drop(lead);
        let places = Places { state_dir: Some(home.state_dir().into()), socket: None };
        let mut library = LibraryLead::attach(Config::with_places(places).unwrap(), tree.id.parse().unwrap(), Seen::default()).unwrap();
        let Some(LeadEvent::Items(items)) = library.next(Some(PATIENCE)).unwrap() else { panic!("no items") };
        let accepted = library.accept(items.items).unwrap();
        assert_eq!(serde_json::to_value(&accepted[0]).unwrap()["answer"], text);
        let raw = tree.roost(["result", "w", "--raw"]).run().ok().stdout;
        assert_eq!((raw.len(), raw.as_slice()), (17, text.as_bytes()));
    }
}

// B14 (d).
#[test]
fn a_lone_surrogate_is_refused_and_what_was_said_before_it_stays() {
    let home = Home::new();
    let (tree, mut agents) = (Tree::open(&home, &[]), Agents::new(&home));
    let mut w = agents.start(&tree, "w", 0);
    w.call("report", json!({"text": "before"})).unwrap();
    let line = r#"{"jsonrpc":"2.0","id":1000000,"method":"settle","params":{"request_id":"s","answer":"x\ud83d"}}"#;
    w.does(&json!({"raw": format!("{line}\n")}));
    // The connection is good for more.
    w.call("report", json!({"activity": "busy"})).unwrap();
    w.exit(0);
    let result = tree.result("w");
    assert_eq!((outcome_of(&result), &result["answer"], &result["partial"]), ("protocol", &json!("before"), &json!(true)));
}

// B26: what a text holds is shown harmlessly to people, and whole to programs.
#[test]
fn words_and_answers_cannot_write_to_a_terminal() {
    let home = Home::new();
    let (tree, mut agents) = (Tree::open(&home, &[]), Agents::new(&home));
    let evil = "\u{1b}]0;t\u{7} hi \u{9b}2J";
    let mut w = agents.start(&tree, "🦀", 0);
    w.call("tell_lead", json!({"text": evil})).unwrap();
    tree.roost(["message", "🦀", evil]).run().ok();
    assert_eq!(w.texts(), [evil]);
    w.finish(evil);
    tree.until_state("🦀", "ended");
    for args in [&["inbox"][..], &["result", "🦀"], &["status"], &["usage"], &["events"]] {
        let shown = tree.roost(args).run().ok().stdout;
        assert!(!shown.iter().any(|byte| [0x1b, 0x07].contains(byte)), "{args:?}: {shown:?}");
    }
    let owed = tree.roost(["inbox", "--json"]).run().ok().json();
    let texts: Vec<_> =
        owed["items"].as_array().unwrap().iter().map(|item| item["text"].as_str().or(item["answer"].as_str()).unwrap()).collect();
    assert!(texts.contains(&evil), "{owed}");
    assert_eq!(tree.roost(["result", "🦀", "--raw"]).run().ok().stdout, evil.as_bytes());
}

// B26: an address that is refused is refused by name, and one that is allowed works for words.
#[test]
fn odd_names_are_addresses_for_words_or_refused() {
    let home = Home::new();
    let (tree, mut agents) = (Tree::open(&home, &[]), Agents::new(&home));
    let mut lead = Lead::new(&home, &tree);
    let launch = |task: serde_json::Value| tree.roost(["spawn", "--json", "--tasks", "-"]).stdin(json!([task]).to_string()).run();
    for (name, kind) in [("-rf", "bad_name"), ("a/b", "bad_name")] {
        assert_eq!(launch(agents.task(name)).expect(1).json()["error"]["kind"], kind, "{name}");
    }
    // Two ways to write the same letter are two names.
    for name in ["🦀", "é", "e\u{301}", "Rev"] {
        launch(agents.task(name)).ok();
        let mut agent = agents.begins(name);
        agent.begin();
        lead.call("message", json!({"request_id": name, "name": name, "text": name})).unwrap();
        assert_eq!(agent.texts(), [name]);
        agent.finish(name);
        assert_eq!(tree.answer(name), name);
    }
    for name in ["", ".", "..", "../../x", "a/b", "a\nb", "a\u{1b}[2J"] {
        let refused = lead.call("message", json!({"request_id": format!("m{name}"), "name": name, "text": "x"})).unwrap_err();
        assert_eq!(kind_of(&refused), "unknown_worker", "{name:?}: {refused}");
    }
}
