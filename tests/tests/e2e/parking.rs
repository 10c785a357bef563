//! Parking in plain shell scripts: `exec roost park`, the wake, and trees that are wider and deeper than their cap.

use std::time::Duration;

use roost_tests::real::{Home, Tree, outcome_of};
use serde_json::{Value, json};

/// A lead that launches one child, parks, and answers with what it was woken with.
const LEAD: &str = r#"if [ "${ROOST_WAKE-}" = 1 ]; then printf '%s\n' "$(cat "$ROOST_CONTEXT")"; cat; exit; fi
    roost spawn --name kid -- sh -c 'echo up >"$F/events"; read x <"$F/gate"; printf "the answer"'
    printf 'line 1\nline 2 \303\251' >"$F/ctx"; exec roost park --context "$F/ctx""#;

#[test]
fn a_parked_lead_has_no_process_and_is_woken_with_context_and_items() {
    let home = Home::new();
    let (mut events, mut gate) = (home.fifo("events"), home.fifo("gate"));
    let tree = Tree::open(&home, &["--cap", "1"]);
    tree.spawn_with("lead", &["--descendants", "1"], LEAD);
    // At cap 1 the child runs only because its lead has given its slot away.
    assert_eq!(events.line(), "up");
    let status = tree.status();
    assert_eq!((&status["trees"][0]["parked"], &status["trees"][0]["live"]), (&json!(1), &json!(1)));
    let lead = tree.worker("lead");
    assert_eq!((&lead["state"], &lead["pid"]), (&json!("parked"), &Value::Null), "{lead}");
    let kid = tree.worker("kid");
    let living: Vec<String> = home.workers().into_keys().collect();
    assert_eq!(living, [format!("{}-1", kid["execution"].as_str().unwrap())]);
    assert!(tree.roost(["status"]).run().ok().text().contains("lead  parked"));
    gate.release(1);
    let answer = tree.answer("lead");
    let (context, wake) = answer.rsplit_once("\n{").unwrap();
    assert_eq!(context, "line 1\nline 2 é");
    let wake: Value = serde_json::from_str(&format!("{{{wake}")).unwrap();
    assert_eq!((&wake["reason"], &wake["active_children"]), (&json!("settled"), &json!(0)));
    let item = &wake["items"][0];
    assert_eq!((&item["type"], &item["name"], &item["answer"]), (&json!("completion"), &json!("kid"), &json!("the answer")));
    assert_eq!((&item["execution"], &item["outcome"]), (&kid["execution"], &json!({"status": "completed"})));
    assert_eq!(wake["items"].as_array().unwrap().len(), 1);
    assert_eq!(tree.worker("lead")["epoch"], 2);
}

// B19 (b).
#[test]
fn a_chain_of_six_finishes_at_cap_1() {
    let home = Home::new();
    let chain = home.script(
        "chain.sh",
        r#"if [ "${ROOST_WAKE-}" = 1 ]; then printf %s "$(sed 's/.*"answer":"\([^"]*\)".*/\1/')"; exit; fi
        if [ "$1" = 1 ]; then printf L; exit; fi
        roost spawn --descendants $(($1 - 2)) -- sh "$0" $(($1 - 1)) >&2 && exec roost park"#,
    );
    home.start_daemon(&[]);
    let sampler = home.sample();
    let done = home.roost(["run", "--cap", "1", "--", "sh"]).arg(chain).arg("6").within(Duration::from_secs(30)).run().ok();
    assert_eq!(done.text(), "L");
    assert!(sampler.stop().most <= 1);
}

/// Each answers with how many leaves are below it. Woken early or late, it counts what came and parks while there is more.
const WIDE: &str = r#"count=0
    if [ "${ROOST_WAKE-}" = 1 ]; then
        count=$(cat "$ROOST_CONTEXT"); wake=$(cat)
        for n in $(printf '%s' "$wake" | grep -o '"answer":"[0-9]*"' | grep -o '[0-9]*'); do count=$((count + n)); done
        case $wake in *'"active_children":0'*) printf %s $count; exit;; esac
    elif [ "$1" = 0 ]; then printf 1; exit
    else
        for i in 1 2 3; do roost spawn --descendants "$2" -- sh "$0" $(($1 - 1)) $((($2 - 3) / 3)) >/dev/null || exit 9; done
    fi
    printf %s $count >"$F/c$ROOST_WORKER"; exec roost park --context "$F/c$ROOST_WORKER""#;

#[test]
fn a_tree_wider_than_the_cap_finishes() {
    for cap in ["1", "2"] {
        let home = Home::new();
        let wide = home.script("wide.sh", WIDE);
        home.start_daemon(&[]);
        let sampler = home.sample();
        // 1 + 3 + 9 + 27 workers: one below the top may have 12 below it, one below that 3.
        let done = home.roost(["run", "--cap", cap, "--", "sh"]).arg(wide).args(["3", "12"]).run().ok();
        assert_eq!(done.text(), "27");
        assert!(sampler.stop().most <= cap.parse().unwrap());
    }
}

#[test]
fn the_parent_of_nothing_is_woken_too() {
    let home = Home::new();
    // Its only child cannot be started; it was stopped; it fails; there never was one.
    for (name, launch) in [
        ("no-program", "roost spawn --name p -- /no/such/program"),
        ("stopped", "roost spawn --name s -- sleep 600 && roost stop s"),
        ("failed", "roost spawn --name f -- sh -c 'exit 3'"),
        ("none", "true"),
    ] {
        let tree = Tree::open(&home, &["--cap", "2"]);
        let script = format!(r#"if [ "${{ROOST_WAKE-}}" = 1 ]; then cat; exit; fi; {{ {launch}; }} >&2 && exec roost park"#);
        tree.spawn_with(name, &["--descendants", "1"], &script);
        let wake: Value = serde_json::from_str(&tree.answer(name)).unwrap();
        assert_eq!((&wake["reason"], &wake["active_children"]), (&json!("settled"), &json!(0)), "{name}");
        let ends: Vec<&str> = wake["items"].as_array().unwrap().iter().map(outcome_of).collect();
        let expected: &[&str] = match name {
            "no-program" => &["spawn"],
            "failed" => &["exit"],
            // A stop is silent to whoever asked for it.
            _ => &[],
        };
        assert_eq!(ends, expected, "{name}");
    }
}

#[test]
fn with_a_slot_to_spare_a_parked_lead_is_woken_early() {
    let home = Home::new();
    let mut gate = home.fifo("gate");
    let mut wakes = home.fifo("wakes");
    let tree = Tree::open(&home, &["--cap", "4"]);
    let script = r#"if [ "${ROOST_WAKE-}" = 1 ]; then
            wake=$(cat); printf '%s\n' "$wake" >"$F/wakes"
            case $wake in *'"active_children":0'*) exit;; esac
        else roost spawn --name quick -- true; roost spawn --name slow -- sh -c 'read x <"$F/gate"'; fi
        exec roost park"#;
    tree.spawn_with("lead", &["--descendants", "2"], script);
    let early: Value = serde_json::from_str(&wakes.line()).unwrap();
    assert_eq!(
        (&early["reason"], &early["active_children"], &early["items"][0]["name"]),
        (&json!("completion"), &json!(1), &json!("quick"))
    );
    gate.release(1);
    let last: Value = serde_json::from_str(&wakes.line()).unwrap();
    // Each is handed over once.
    assert_eq!((&last["reason"], &last["items"].as_array().unwrap().len()), (&json!("settled"), &1));
    assert_eq!(last["items"][0]["name"], "slow");
    tree.answer("lead");
}

#[test]
fn a_blocked_wait_lends_its_slot_and_is_shown() {
    let home = Home::new();
    let (mut events, mut gate) = (home.fifo("events"), home.fifo("gate"));
    let tree = Tree::open(&home, &["--cap", "1"]);
    let script = r#"roost spawn --name kid -- sh -c 'echo up >"$F/events"; read x <"$F/gate"' >&2; roost wait kid"#;
    tree.spawn_with("lead", &["--descendants", "1"], script);
    assert_eq!(events.line(), "up");
    let status = tree.status();
    assert_eq!((&status["trees"][0]["blocked"], &status["trees"][0]["live"]), (&json!(1), &json!(1)));
    let lead = tree.worker("lead");
    assert!(lead["state"] == "blocked" && lead["pid"].is_u64(), "{lead}");
    gate.release(1);
    assert_eq!(tree.answer("lead"), "kid completed\n");
    assert_eq!(tree.worker("lead")["epoch"], 1);
}

#[test]
fn with_blocked_wait_refuse_the_wait_that_nothing_can_end_fails() {
    let home = Home::new();
    let tree = Tree::open(&home, &["--cap", "1", "--blocked-wait", "refuse"]);
    let script = r#"roost spawn --name kid -- echo ran >&2; roost wait kid --json; echo "$?""#;
    tree.spawn_with("lead", &["--descendants", "1"], script);
    let answer = tree.answer("lead");
    let (error, code) = answer.trim().split_once('\n').unwrap();
    let error: Value = serde_json::from_str(error).unwrap();
    assert_eq!((error["error"]["kind"].as_str(), code), (Some("deadlock"), "1"));
    assert!(error["error"]["hint"].as_str().unwrap().contains("park"));
    // The child ran once its lead was out of the way, and the lead's completion has waited for it.
    assert_eq!(tree.roost(["result", "kid"]).run().ok().text(), "ran\n");
}

#[test]
fn park_without_exec_is_refused_with_what_to_do() {
    let home = Home::new();
    let tree = Tree::open(&home, &[]);
    let script = r#"roost park; echo "$?"; roost park --json; exit 0"#;
    tree.spawn("lead", script);
    tree.result("lead");
    let done = tree.roost(["logs", "lead", "--stderr"]).run().ok();
    assert!(done.text().contains("exec roost park"), "{done}");
    assert!(tree.roost(["result", "lead"]).run().text().starts_with("2\n"));
    // The root and an outsider cannot park at all.
    for done in [tree.roost(["park"]).run(), home.roost(["park"]).run()] {
        let done = done.expect(2);
        assert!(done.err().contains("not_worker"), "{done}");
    }
}

#[test]
fn a_context_that_is_missing_or_too_large_is_refused_and_nothing_is_saved() {
    let home = Home::new();
    let tree = Tree::open(&home, &[]);
    // `exec` in a subshell would lose the script; the worker's main process is the command itself here.
    for (name, file) in [("missing", "no-such-file"), ("large", "large")] {
        std::fs::write(home.file("large"), vec![b'x'; (1 << 20) + 1]).unwrap();
        let path = home.file(file);
        tree.roost(["spawn", "--name", name, "--", "roost", "park", "--context", path.to_str().unwrap()]).run().ok();
        let result = tree.result(name);
        assert_eq!(result["outcome"]["kind"], "exit", "{result}");
        assert_eq!(tree.worker(name)["epoch"], 1);
    }
    // Exactly 1 MiB is fine, any byte of it.
    let context: Vec<u8> = (0..1 << 20).map(|at: u32| (at * 7 % 256) as u8).collect();
    std::fs::write(home.file("context"), &context).unwrap();
    let script = r#"if [ "${ROOST_WAKE-}" = 1 ]; then exec cat "$ROOST_CONTEXT"; fi; exec roost park --context "$F/context""#;
    tree.spawn("exact", script);
    tree.roost(["wait", "exact"]).run().ok();
    assert!(tree.roost(["result", "exact", "--raw"]).run().ok().stdout == context);
}

#[test]
fn what_a_lead_answered_waits_for_its_children() {
    let home = Home::new();
    let (mut events, mut gate) = (home.fifo("events"), home.fifo("gate"));
    let tree = Tree::open(&home, &["--cap", "2"]);
    tree.spawn_with(
        "lead",
        &["--descendants", "1"],
        r#"roost spawn --name kid -- sh -c 'echo up >"$F/events"; read x <"$F/gate"' >&2; echo done"#,
    );
    assert_eq!(events.line(), "up");
    let lead = tree.until_state("lead", "finishing");
    assert!(lead["pid"].is_null(), "{lead}");
    assert_eq!(tree.roost(["wait", "lead", "--timeout", "50ms"]).run().code(), 124);
    gate.release(1);
    assert_eq!(tree.answer("lead"), "done\n");
    assert_eq!(tree.worker("kid")["outcome"]["status"], "completed");
}

/// Parks with a file of its own, and answers with the name and digest of what it is woken with.
const BY_PATH: &str = r#"if [ "${ROOST_WAKE-}" = 1 ]; then echo "$ROOST_CONTEXT"; sha256sum <"$ROOST_CONTEXT"; exit; fi
    roost spawn --name "kid-$1" -- sh -c 'read x <"$F/gate"' >&2; cd "$F"; exec roost park --context-path own/ctx"#;

/// A lead that has parked with `own/ctx`, a file of 5 MiB, while its child is held back.
fn parked_by_path(home: &Home, tree: &Tree<'_>, name: &str) -> Vec<u8> {
    let bytes: Vec<u8> = (0..5 << 20).map(|at: u32| (at * 7 % 251) as u8).collect();
    std::fs::create_dir_all(home.file("own")).unwrap();
    std::fs::write(home.file("own/ctx"), &bytes).unwrap();
    tree.roost(["spawn", "--name", name, "--descendants", "1", "--", "sh", "-c", BY_PATH, "lead", name]).run().ok();
    tree.until_state(name, "parked");
    bytes
}

#[test]
fn a_file_of_the_workers_own_is_its_context() {
    let home = Home::new();
    let mut gate = home.fifo("gate");
    let tree = Tree::open(&home, &["--cap", "1"]);
    let bytes = parked_by_path(&home, &tree, "lead");
    // A new broker knows it from the journal.
    home.kill_broker();
    gate.release(1);
    let own = home.file("own/ctx").canonicalize().unwrap();
    let digest = home.command("sha256sum").arg(&own).run().ok();
    let digest = digest.text().split_whitespace().next().unwrap().to_owned();
    assert_eq!(tree.answer("lead"), format!("{}\n{digest}  -\n", own.display()));
    assert!(std::fs::read(&own).unwrap() == bytes, "it is the worker's, and stays");
}

#[test]
fn a_file_that_is_not_what_it_was_is_no_context() {
    let home = Home::new();
    let mut gate = home.fifo("gate");
    let tree = Tree::open(&home, &["--cap", "1"]);
    let own = home.file("own/ctx");
    type Damage<'a> = &'a dyn Fn(Vec<u8>);
    let table: [(&str, Damage<'_>, &str); 4] = [
        ("gone", &|_| std::fs::remove_file(&own).unwrap(), "it is gone"),
        (
            "shorter",
            &|bytes| std::fs::write(&own, &bytes[1..]).unwrap(),
            "it is shorter than when it was saved, 5242879 bytes and not 5242880",
        ),
        ("longer", &|bytes| std::fs::write(&own, [&bytes[..], b"x"].concat()).unwrap(), "it is longer"),
        (
            "other",
            &|mut bytes| {
                bytes[4 << 20] ^= 1;
                std::fs::write(&own, bytes).unwrap();
            },
            "its content is not what it was",
        ),
    ];
    for (name, damage, why) in table {
        let bytes = parked_by_path(&home, &tree, name);
        damage(bytes);
        gate.release(1);
        let result = tree.result(name);
        assert_eq!(outcome_of(&result), "context_corrupt", "{result}");
        let reason = result["outcome"]["reason"].as_str().unwrap();
        assert!(reason.contains(why) && reason.contains("own/ctx"), "{name}: {reason}");
        // Never a fresh start.
        assert_eq!((&result["answer"], &tree.worker(name)["epoch"]), (&json!(""), &json!(2)));
    }
}

#[test]
fn what_cannot_be_a_context_is_refused_and_nothing_is_saved() {
    let home = Home::new();
    let _pipe = home.fifo("pipe");
    let tree = Tree::open(&home, &[]);
    std::fs::File::create(home.file("large")).unwrap().set_len((1 << 30) + 1).unwrap();
    for (name, why) in
        [("missing", "No such file"), ("s", "not a regular file"), ("pipe", "not a regular file"), ("large", "1073741825 bytes")]
    {
        let path = home.file(name);
        tree.roost(["spawn", "--name", name, "--", "roost", "park", "--context-path"]).arg(&path).run().ok();
        assert_eq!(outcome_of(&tree.result(name)), "exit");
        assert_eq!(tree.worker(name)["epoch"], 1);
        let told = tree.roost(["logs", name, "--stderr"]).run().ok();
        assert!(told.text().contains(why) && told.text().contains(path.to_str().unwrap()), "{told}");
    }
    // One or the other.
    let both = tree.roost(["park", "--context", "-", "--context-path", "x"]).run().expect(2);
    assert!(both.err().contains("--context-path"), "{both}");
    let both = tree.wire().call("park", &json!({"context": "c", "context_path": "/x"})).unwrap_err();
    let neither = tree.wire().call("park", &json!({})).unwrap_err();
    for error in [both, neither] {
        assert_eq!(roost_tests::real::kind_of(&error), "bad_value", "{error}");
    }
}
