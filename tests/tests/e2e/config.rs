//! The files of user and project as commands meet them: precedence, profiles, mistakes, and that a project cannot say what is run.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use roost_tests::real::{Cmd, Home, Tree};
use serde_json::{Value, json};

/// A home whose user has this file.
fn with_user(text: &str) -> (Home, PathBuf) {
    let home = Home::new();
    let file = home.file("home/.config/roost/config.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, text).unwrap();
    (home, file)
}

/// A repository in it, with a folder to work in and this file.
fn with_project(home: &Home, text: &str) -> (PathBuf, PathBuf) {
    let (root, inner) = (home.file("home/p"), home.file("home/p/src"));
    fs::create_dir_all(&inner).unwrap();
    fs::create_dir_all(root.join(".git")).unwrap();
    let file = root.join(".roost.toml");
    fs::write(&file, text).unwrap();
    (inner, file)
}

fn from(explained: &Value, key: &str) -> Value {
    explained["values"].as_array().unwrap().iter().find(|value| value["key"] == key).unwrap_or_else(|| panic!("{key}: {explained}")).clone()
}

#[test]
fn a_tree_gets_what_flag_variable_project_user_and_default_say_in_this_order() {
    let (home, user) = with_user("[tree]\ncap = 2\nbudget = 20\nidle = \"1m\"\nhold = \"1s\"\njoin = \"group\"\ndelivery = \"passive\"\n");
    let (inner, project) = with_project(&home, "[tree]\ncap = 3\nbudget = 30\nidle = \"2m\"\n[tree.group_cap]\nwriters = 1\n");
    let asks = |verb: &[&str]| {
        let flags = ["--json", "--cap", "5"];
        home.roost(verb.iter().chain(&flags)).cwd(&inner).env("ROOST_TREE_CAP", "4").env("ROOST_TREE_BUDGET", "40")
    };
    let settings = asks(&["open"]).run().ok().json()["settings"].clone();
    for (name, value) in [("cap", json!(5)), ("budget", json!(40)), ("join", json!("group")), ("depth_max", json!(4096))] {
        assert_eq!(settings[name], value, "{name}: {settings}");
    }
    assert_eq!((&settings["timing"]["idle_ms"], &settings["timing"]["hold_ms"]), (&json!(120_000), &json!(1_000)));
    assert_eq!((&settings["delivery"], &settings["group_caps"]), (&json!("passive"), &json!({"writers": 1})));

    let explained = asks(&["config", "explain"]).run().ok().json();
    let (user, project) = (user.to_str().unwrap(), project.to_str().unwrap());
    for (key, expected) in [
        ("tree.cap", json!({"key": "tree.cap", "value": 5, "unit": "workers", "source": "flag", "name": "--cap"})),
        ("tree.budget", json!({"key": "tree.budget", "value": 40, "unit": "workers", "source": "env", "name": "ROOST_TREE_BUDGET"})),
        ("tree.idle", json!({"key": "tree.idle", "value": 120_000, "unit": "ms", "source": "project", "file": project, "line": 4})),
        ("tree.hold", json!({"key": "tree.hold", "value": 1_000, "unit": "ms", "source": "user", "file": user, "line": 5})),
        ("tree.depth", json!({"key": "tree.depth", "value": 4096, "unit": "levels", "source": "default"})),
    ] {
        assert_eq!(from(&explained, key), expected);
    }
    let shown = home.roost(["config", "explain", "tree.idle"]).cwd(&inner).run().ok();
    let line = shown.text();
    assert!(line.starts_with("tree.idle ") && line.contains(" 2m ") && line.contains(&format!("project {project}:4")), "{line}");
    // In another directory the project says nothing.
    assert_eq!(home.roost(["open", "--json"]).run().ok().json()["settings"]["cap"], 2);
}

#[test]
fn a_profile_runs_what_the_user_says_with_what_task_and_project_ask() {
    let (home, _) = with_user(
        "[profile.echo]\nargv = [\"sh\", \"-c\", 'echo \"$A $B $*\"; cat', \"echo\"]\nenv = { A = \"one\", B = \"two\" }\nmodel = \"m\"\n\
         model_args = [\"--model\", \"{model}\"]\ntools_args = [\"--tools={tools}\"]\ngroup = \"g\"\ndescendants = 3\ntimeout = \"5m\"\n",
    );
    let (inner, _) = with_project(&home, "[profile.echo]\nmodel = \"big\"\n");
    let run = |words: &[&str]| home.roost(["run", "--agent", "echo", "--task", "text"]).args(words).cwd(&inner).run();
    assert_eq!(run(&[]).ok().text(), "one two --model big\ntext");
    assert_eq!(run(&["--model", "small", "--tools", "a,b", "--", "x y"]).ok().text(), "one two --model small --tools=a,b x y\ntext");
    let tree = Tree::open(&home, &[]);
    let tasks = json!([
        {"agent": "echo", "name": "a", "model": "m2", "tools": ["t"], "argv": ["w"], "env": {"B": "own"}, "task": "!"},
        {"argv": ["true"], "name": "b"},
    ]);
    tree.roost(["spawn", "--tasks", "-"]).stdin(tasks.to_string()).run().ok();
    assert_eq!(tree.answer("a"), "one own --model m2 --tools=t w\n!");
    let worker = tree.worker("a");
    assert_eq!(worker["budget_remaining"], 3, "{worker}");
}

#[test]
fn an_agent_that_cannot_be_run_is_refused_before_anything_is_reserved() {
    let (home, user) = with_user("[profile.pi]\nargv = [\"cat\"]\ntools = [\"read\"]\ntools_args = [\"{tools}\"]\n");
    let (inner, _) = with_project(&home, "[profile.own]\nmodel = \"m\"\n[profile.pi]\ntools = [\"bash\"]\n");
    let tree = Tree::open(&home, &[]);
    let spawn = |words: &[&str]| tree.roost(["spawn", "--json"]).args(words).cwd(&inner);
    let tasks = |task: Value| spawn(&["--tasks", "-"]).stdin(json!([{"argv": ["true"]}, task]).to_string());
    for (command, parts) in [
        (spawn(&["--agent", "pie"]), ["unknown_agent", "there is no agent `pie`; there are pi", "did you mean `pi`?"]),
        (tasks(json!({"agent": "nobody"})), ["unknown_agent", "task 1: there is no agent `nobody`", user.to_str().unwrap()]),
        (spawn(&["--agent", "own"]), ["unknown_agent", "only in the project's file", "add [profile.own] with argv"]),
        (spawn(&["--agent", "pi"]), ["unknown_agent", "tools that yours does not: bash", "if the project may have them"]),
    ] {
        let refused = command.run().expect(2);
        assert!(parts.iter().all(|part| refused.text().contains(part)), "{refused}");
    }
    let refused = home.roost(["run", "--agent", "pi", "--model", "m"]).run().expect(2).err();
    assert!(refused.contains("passes no model on") && refused.contains("(usage)"), "{refused}");
    assert_eq!(tree.roost(["status", "--json"]).run().ok().json()["workers"], json!([]));
    let (home, _) = with_user("");
    assert!(home.roost(["run", "--agent", "x"]).run().expect(2).err().contains("no profile is configured"));
}

#[test]
fn a_worker_that_speaks_is_a_profile_too_and_finds_the_users_file_itself() {
    let (home, file) = with_user("");
    let agent = home.program("examples/agent");
    fs::write(&file, format!("[profile.voice]\nrunner = \"worker\"\nargv = [{:?}]\n", agent.to_str().unwrap())).unwrap();
    let done = home.roost(["run", "--json", "--agent", "voice", "--task", "hello"]).run().ok().json();
    assert_eq!(done["outcome"]["status"], "completed", "{done}");
    // A worker launches by profile as well: HOME is its submitter's.
    let (home, _) = with_user("[profile.inner]\nargv = [\"echo\", \"inside\"]\n");
    assert_eq!(home.roost(["run", "--", "roost", "run", "--agent", "inner"]).run().ok().text(), "inside\n");
}

#[test]
fn a_projects_file_that_says_what_is_run_stops_everything_that_would_use_it() {
    let (home, _) = with_user("[profile.pi]\nargv = [\"true\"]\n");
    let (inner, file) = with_project(&home, "[tree]\ncap = 1\n\n[profile.pi]\nargv = [\"/tmp/evil\"]\n");
    for verb in [&["run", "--", "true"][..], &["open"], &["run", "--agent", "pi"]] {
        let refused = home.roost(verb).cwd(&inner).run().expect(2).err();
        let place = format!("{}:5: `profile.pi.argv` says what is run", file.display());
        assert!(refused.contains(&place) && refused.contains("put it into your own file") && refused.contains("(config)"), "{refused}");
    }
    // What needs no configuration goes on.
    home.roost(["status"]).cwd(&inner).run().ok();
}

#[test]
fn mistakes_are_told_with_what_to_do_and_check_tells_all_of_them() {
    let text = "[tree]\ncap = 0\nbuget = 3\nidle = \n\n[daemon]\nkeep = \"x\"\n[profile.p]\nmodel = 3\n";
    let (home, file) = with_user(text);
    let (inner, project) = with_project(&home, "[tree]\njoin = \"both\"\n[daemon]\nkeep = 1\n");
    let refused = home.roost(["open"]).run().expect(2).err();
    assert!(refused.contains(&format!("{}:2: `tree.cap`", file.display())) && refused.contains("roost config check"), "{refused}");
    let check = || home.roost(["config", "check"]).cwd(&inner).env("ROOST_TREE_DEPTH", "deep");
    let checked = check().run().expect(1);
    let told = checked.text();
    let at = |file: &Path, line: u32| format!("{}:{line}: ", file.display());
    for part in [
        at(&file, 2) + "error: `tree.cap`",
        at(&file, 3) + "warning: there is no key `tree.buget`\n  hint: did you mean `tree.budget`?",
        at(&file, 4) + "error: this is not TOML",
        at(&file, 7) + "error: `daemon.keep`",
        at(&file, 9) + "error: `profile.p.model`",
        at(&project, 2) + "error: `tree.join`",
        at(&project, 3) + "error: the daemon is one per user",
        "ROOST_TREE_DEPTH: error: `deep` is not a whole number".to_owned(),
    ] {
        assert!(told.contains(&part), "{part}\n{told}");
    }
    let json = check().arg("--json").run().expect(1).json();
    assert_eq!((&json["ok"], json["problems"].as_array().unwrap().len()), (&json!(false), 8), "{json}");
    let one = home.roost(["config", "check"]).arg(&project).run().expect(1);
    assert!(!one.text().contains("tree.cap") && one.text().contains("`tree.join`"), "{one}");
    // An unknown key alone stops nothing, and is told.
    fs::write(&file, "[tree]\nbuget = 3\n").unwrap();
    let opened = home.roost(["open"]).run().ok();
    assert!(
        opened.err().contains(&format!("{}:2: there is no key `tree.buget` (did you mean `tree.budget`?)", file.display())),
        "{opened}"
    );
    home.roost(["config", "check"]).run().expect(1);
    fs::write(&file, "[tree]\nbudget = 3\n").unwrap();
    assert_eq!(home.roost(["config", "check"]).run().ok().text(), format!("ok: {}\n", file.display()));
    home.roost(["config", "check", "no-such-file"]).run().expect(1);
    assert!(home.roost(["config", "explain", "cap"]).run().expect(2).err().contains("did you mean `tree.cap`?"));
}

#[test]
fn a_file_that_cannot_be_believed_or_read_is_refused_and_the_doctor_says_so() {
    let (home, file) = with_user("[tree]\ncap = 1\n");
    let doctor = |home: &Home| {
        let checks = home.roost(["doctor", "--json"]).run().json()["checks"].clone();
        checks.as_array().unwrap().iter().find(|check| check["name"] == "config").unwrap().clone()
    };
    assert_eq!(doctor(&home)["level"], "ok");
    let refused = |parts: &[&str]| {
        let refused = home.roost(["open"]).run().expect(2).err();
        assert!(refused.contains(file.to_str().unwrap()) && parts.iter().all(|part| refused.contains(part)), "{refused}");
        let check = doctor(&home);
        assert_eq!((&check["level"], &check["mend"]), (&json!("error"), &json!("roost config check")), "{check}");
    };
    fs::set_permissions(&file, fs::Permissions::from_mode(0o622)).unwrap();
    refused(&["others can change it", "chmod go-w"]);
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    refused(&["a directory", "mv "]);
    fs::remove_dir(&file).unwrap();
    fs::write(&file, b"[tree]\nx = \"\xff\"\n").unwrap();
    refused(&[":2: ", "not UTF-8"]);
    fs::remove_file(&file).unwrap();
    assert_eq!(doctor(&home)["level"], "ok");
}

fn daemon_words(home: &Home) -> Vec<String> {
    let line = fs::read(format!("/proc/{}/cmdline", home.daemon().broker)).unwrap();
    line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

fn flag(words: &[String], name: &str) -> Option<String> {
    words.iter().position(|word| word == name).map(|at| words[at + 1].clone())
}

#[test]
fn a_daemon_takes_its_flags_from_the_users_file_however_it_is_started() {
    let (home, file) = with_user("[daemon]\nretention = \"7d\"\nidle_exit = \"5m\"\ncap = 9\nkeep = 11\n[profile.broken]\nmodel = \"m\"\n");
    let (inner, _) = with_project(&home, "[tree]\ncap = 1\n");
    let starts: [&dyn Fn() -> Cmd; 3] =
        [&|| home.command(home.program("roostd")).arg("--detach"), &|| home.roost(["daemon", "start"]).cwd(&inner), &|| {
            home.roost(["daemon", "start", "--keep", "12"]).env("ROOST_DAEMON_CAP", "8").env("ROOST_DAEMON_KEEP", "13")
        }];
    for (index, start) in starts.into_iter().enumerate() {
        start().run().ok();
        let words = daemon_words(&home);
        let (cap, keep) = if index == 2 { ("8", "12") } else { ("9", "11") };
        let expected = [("--retention", "604800000ms"), ("--idle-exit", "300"), ("--cap", cap), ("--keep", keep)];
        for (name, value) in expected {
            assert_eq!(flag(&words, name).as_deref(), Some(value), "{index}: {words:?}");
        }
        home.roost(["daemon", "stop"]).run().ok();
    }
    // What is wrong in its own section is refused, by file and line.
    fs::write(&file, "[daemon]\nretention = \"soon\"\n").unwrap();
    let refused = home.command(home.program("roostd")).arg("--detach").run();
    let said = format!("{}{}", refused.text(), refused.err());
    assert!(refused.code() == 78 && said.contains(&format!("{}:2: `daemon.retention`", file.display())), "{refused}");
    let refused = home.roost(["daemon", "start"]).run().expect(4).err();
    assert!(refused.contains("daemon.retention"), "{refused}");
}
