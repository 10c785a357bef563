//! Texts with mistakes: each is named with its line, and all of them, not only the first.

use super::*;

fn user(text: &str) -> Parsed {
    parse(text, Path::new("c.toml"), Whose::User)
}

fn project(text: &str) -> Parsed {
    parse(text, Path::new("p.toml"), Whose::Project)
}

/// Line, level and message with its hint.
fn shown(parsed: &Parsed) -> Vec<(usize, Level, String)> {
    let text = |problem: &Problem| format!("{} | {}", problem.message, problem.hint.clone().unwrap_or_default());
    parsed.problems.iter().map(|problem| (problem.line.unwrap(), problem.level, text(problem))).collect()
}

#[track_caller]
fn says(parsed: &Parsed, expected: &[(usize, Level, &[&str])]) {
    let shown = shown(parsed);
    assert_eq!(shown.len(), expected.len(), "{shown:#?}");
    for ((line, level, text), (expected_line, expected_level, parts)) in shown.iter().zip(expected) {
        assert!(line == expected_line && level == expected_level && parts.iter().all(|part| text.contains(part)), "{shown:#?}");
    }
}

#[test]
fn values_are_read_with_their_lines() {
    let text = "[tree]\ncap = 3\nidle = \"5m\"\nhold = 0\nstartup = 90\ndelivery = \"follow_up\"\n\n[tree.group_cap]\nwriters = 1\n\
        [daemon]\nretention = \"7d\"\ncgroup = \"/sys/fs/cgroup/x\"\n";
    let parsed = user(text);
    says(&parsed, &[]);
    let value = |key: &str| parsed.values.get(key).map(|(value, line)| (value.to_string(), *line));
    for (key, text, line) in [
        ("tree.cap", "3", 2),
        ("tree.idle", "5m", 3),
        ("tree.hold", "0", 4),
        ("tree.startup", "90s", 5),
        ("tree.delivery", "follow_up", 6),
        ("tree.group_cap", "writers=1", 8),
        ("daemon.retention", "7d", 11),
        ("daemon.cgroup", "/sys/fs/cgroup/x", 12),
    ] {
        assert_eq!(value(key), Some((text.to_owned(), line)), "{key}");
    }
}

#[test]
fn unknown_keys_are_named_with_the_nearest_known_one() {
    let parsed = user("cap = 3\ntre = 1\n[tree]\nbuget = 4\nzzz = 1\n[profile.x]\nargv = [\"a\"]\nmodle = \"m\"\n");
    says(
        &parsed,
        &[
            (1, Level::Warning, &["there is no key `cap`", "did you mean `tree.cap`?"]),
            (2, Level::Warning, &["`tre`", "did you mean `tree`?"]),
            (4, Level::Warning, &["`tree.buget`", "did you mean `tree.budget`?"]),
            (5, Level::Warning, &["`tree.zzz`", "there are cap, budget,"]),
            (8, Level::Warning, &["`profile.x.modle`", "did you mean `profile.x.model`?"]),
        ],
    );
}

#[test]
fn every_wrong_value_is_told_with_what_is_expected() {
    let text = "tree.cap = 0\ntree.idle = true\ntree.join = \"both\"\ntree.depth = -1\ntree.group_cap = {a = 0}\ntree.hold = \"2d\"\n\
        tree.budget = 1.5\ntree.stop_grace = 99999999999999999999\ndaemon = 3\nprofile = []\n";
    let parsed = user(text);
    let error = Level::Error;
    says(
        &parsed,
        &[
            (1, error, &["`tree.cap`", "from 1 to 100000", "this is 0"]),
            (2, error, &["`tree.idle`", "\"30s\"", "this is true"]),
            (3, error, &["`tree.join`", "\"async\", \"group\", \"smart\"", "\"both\""]),
            (4, error, &["`tree.depth`", "the number -1"]),
            (5, error, &["`tree.group_cap`", "from 1 to 100000"]),
            (6, error, &["`tree.hold`", "up to 1d"]),
            (7, error, &["`tree.budget`", "a number with a point"]),
            (8, error, &["`tree.stop_grace`"]),
            (9, error, &["`daemon` is a section: write [daemon]"]),
            (10, error, &["`profile` is a section", "a list"]),
        ],
    );
    assert!(parsed.values.is_empty(), "{:?}", parsed.values);
}

#[test]
fn what_is_no_toml_is_told_once_per_line_and_the_rest_is_read() {
    let parsed = user("[tree]\ncap =\nbudget = 7\nidle = = 3\nhold = \"x\"\n");
    says(
        &parsed,
        &[(2, Level::Error, &["not TOML"]), (4, Level::Error, &["not TOML"]), (5, Level::Error, &["`tree.hold`", "the text \"x\""])],
    );
    assert_eq!(parsed.values["tree.budget"].0, Value::Number(7));
    for text in ["", "\n\n", "# nothing", "\u{feff}[tree]\ncap = 3\n"] {
        says(&user(text), &[]);
    }
}

#[test]
fn a_projects_file_can_neither_say_what_is_run_nor_set_flags_of_the_daemon() {
    for key in ["argv", "program", "command", "env", "path", "args", "runner", "model_args", "tools_args"] {
        let parsed = project(&format!("[tree]\ncap = 2\n[profile.x]\n{key} = [\"/tmp/evil\"]\n"));
        says(
            &parsed,
            &[(4, Level::Error, &[&format!("`profile.x.{key}` says what is run"), "put it into your own file", "roost/config.toml"])],
        );
        assert!(!parsed.profiles["x"].runs_something());
    }
    says(&project("[profile.x.env]\nPATH = \"/tmp\"\n"), &[(1, Level::Error, &["profile.x.env"])]);
    says(&project("[tree]\nargv = [\"x\"]\n"), &[(2, Level::Error, &["`tree.argv` says what is run"])]);
    says(&project("argv = 1\n"), &[(1, Level::Error, &["`argv` says what is run"])]);
    says(&project("[daemon]\nkeep = 1\n"), &[(1, Level::Error, &["one per user"])]);
    says(&project("[profile.x]\nmodel = \"m\"\ntools = [\"read\"]\ntimeout = \"5m\"\ngroup = \"g\"\ndescendants = 3\n"), &[]);
}

#[test]
fn fields_of_profiles_are_checked_and_secrets_are_in_no_message() {
    let text = "[profile.x]\nargv = []\nrunner = \"pi\"\nenv = { KEY = 5, ROOST_TREE = \"hush\" }\nmodel_args = [\"--model\"]\n\
        model = \"--extension=/tmp/evil\"\ntools = [\"a,b\"]\ntimeout = -1\ndescendants = \"all\"\n[profile.y]\nmodel = \"m\"\n[profile]\nz = 1\n";
    let parsed = user(text);
    let told = shown(&parsed);
    let about: Vec<&str> = parsed.problems.iter().filter_map(|problem| problem.key.as_deref()).collect();
    let of = |field: &str| about.contains(&format!("profile.x.{field}").as_str());
    for field in ["argv", "runner", "env", "model_args", "model", "tools", "timeout", "descendants"] {
        assert!(of(field), "{field}: {told:#?}");
    }
    assert!(told.iter().any(|(line, _, text)| *line == 10 && text.contains("does not say what is run")), "{told:#?}");
    assert!(!told.iter().any(|(_, _, text)| text.contains("hush")), "{told:#?}");
}
