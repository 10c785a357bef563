//! `roost export`: everything that a report of a bug needs, and nothing that must stay here.

use roost_tests::real::{Home, Tree};
use serde_json::{Value, json};

#[test]
fn no_secret_is_in_it_and_all_the_rest_is() {
    let home = Home::new();
    let tree = Tree::open(&home, &["--key", "sesame-key", "--cap", "3"]);
    let spawn = |words: &[&str]| tree.roost(["spawn"]).env("AMBIENT", "sesame-ambient").args(words).run().ok();
    let script = "printf %s $ROOST_TOKEN > $F/token; cat; echo sesame-answer; echo sesame-error >&2; exit 3";
    spawn(&["--name", "one", "--env", "KEY=sesame-value", "--task", "sesame-task", "--", "sh", "-c", script, "sesame-argument"]);
    spawn(&["--name", "two", "--", "/sesame-program"]);
    tree.roost(["wait", "--all"]).run().expect(1);
    assert!(tree.result("two")["outcome"]["reason"].as_str().unwrap().contains("sesame-program"));
    let token = home.read("token");
    assert_eq!(token.len(), 32, "{token}");
    let texts = [tree.roost(["export"]).run().ok(), home.roost(["export", &tree.id]).run().ok()];
    for text in texts.iter().map(|done| done.text()) {
        for secret in ["sesame", &token, &tree.token, "token", home.dir().to_str().unwrap()] {
            assert!(!text.contains(secret), "{secret} is in {text}");
        }
        let document: Value = serde_json::from_str(text).unwrap();
        let workers = document["workers"].as_array().unwrap();
        assert_eq!(workers[0]["outcome"], json!({"status": "failed", "kind": "exit", "code": 3}));
        assert_eq!(workers[1]["outcome"], json!({"status": "failed", "kind": "spawn", "reason": "left out"}));
        assert_eq!((&document["settings"]["cap"], &document["tree"]["failed"]), (&json!(3), &json!(2)));
        assert_eq!(document["usage"]["workers"].as_array().unwrap().len(), 2);
        let numbers: Vec<u64> = document["events"].as_array().unwrap().iter().map(|event| event["number"].as_u64().unwrap()).collect();
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
        assert!(document["events"].as_array().unwrap().iter().any(|event| event["outcome"]["reason"] == "left out"));
    }
    // A closed tree is exported as well; a worker, which may not read the events, exports nothing.
    spawn(&["--name", "three", "--", "sh", "-c", "roost export"]);
    let refused = tree.result("three");
    assert_eq!((&refused["outcome"]["code"], &refused["answer"]), (&json!(1), &json!("")));
    tree.roost(["close"]).run().ok();
    assert_eq!(home.roost(["export", &tree.id]).run().ok().json()["workers"].as_array().unwrap().len(), 3);
    home.roost(["export"]).run().expect(2);
}
