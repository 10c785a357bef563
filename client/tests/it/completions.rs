//! `roost completions` in a real shell, and `roost man`.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::bounded::output;
use crate::fake::{self, Act, Fake};

/// Asks bash what fits behind each of these lines. The words of the last one are what the cursor stands in.
const ASK: &str = r#"
eval "$(roost completions bash)" || exit
complete -p roost | grep -o ' -F [^ ]* roost$'
while read -r line; do
    COMP_LINE=$line COMP_POINT=${#line} COMP_TYPE=9
    read -ra COMP_WORDS <<<"$line"
    [[ $line == *" -" || $line != *. ]] || COMP_WORDS[-1]=${COMP_WORDS[-1]%.}
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
    _clap_complete_roost roost "${COMP_WORDS[-1]}" "${COMP_WORDS[-2]}"
    echo "${COMPREPLY[*]}"
done
"#;

fn ready(fake: &Fake) {
    // Whoever holds the lock runs.
    fs::create_dir(fake.socket.with_extension("state")).unwrap();
    fs::write(fake.socket.with_extension("state").join("lock"), format!("{}\n", std::process::id())).unwrap();
}

fn tree(id: &str) -> Value {
    let mut tree = json!({"budget": 50, "budget_remaining": 50, "opened_at_ms": 0});
    tree.as_object_mut().unwrap().extend(fake::progress(0).as_object().unwrap().clone());
    tree["tree"] = id.into();
    tree
}

/// What a shell offers for the word that ends each line; `.` stands for nothing yet.
fn offered(mut roost: Command, lines: &[&str]) -> Vec<String> {
    let program = Path::new(env!("CARGO_BIN_EXE_roost")).parent().unwrap();
    let mut bash = Command::new("bash");
    for (name, value) in roost.env("ROOST_COMPLETE", "").get_envs() {
        if let Some(value) = value {
            bash.env(name, value)
        } else {
            bash.env_remove(name)
        };
    }
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let words = lines.iter().flat_map(|line| [*line, "\n"]).collect::<String>();
    let script = format!("{ASK}\n").replace("\ndone\n", &format!("\ndone <<'LINES'\n{words}LINES\n"));
    let done = output(bash.env("PATH", path).args(["--norc", "--noprofile", "-c", &script]));
    assert_eq!(String::from_utf8_lossy(&done.stderr), "");
    let said = String::from_utf8(done.stdout).unwrap();
    let mut said = said.lines().map(str::to_owned);
    assert_eq!(said.next().as_deref(), Some(" -F _clap_complete_roost roost"));
    // Bash has them in one line, with its separator between.
    said.map(|line| line.split('\u{b}').flat_map(|word| word.split(' ')).collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn bash_offers_verbs_flags_and_the_workers_that_there_are() {
    let dir = tempfile::tempdir().unwrap();
    let fake = Fake::start(&dir.path().join("s"), |method, params| {
        let worker = |name: &str| fake::worker(name, "running", &[], &[]);
        (method == "status").then(|| {
            let trees = json!([tree("t1"), tree("t77")]);
            Act::Reply(match (params["tree"].as_str(), params["after"].as_str()) {
                (Some("t77"), _) => json!({"trees": trees, "workers": [worker("other")]}),
                (_, Some(_)) => json!({"trees": trees, "workers": [worker("review-2")]}),
                _ => json!({"trees": trees, "workers": [worker("build"), worker("$(reboot)"), worker("review-1")], "next": "w1"}),
            })
        })
    });
    ready(&fake);
    let said = offered(
        fake.roost(),
        &[
            "roost ser",
            "roost logs rev",
            "roost stop build .",
            "roost logs --trans",
            "roost wait --tree t77 .",
            "roost --tree t7",
            "roost daemon st",
        ],
    );
    assert_eq!(said[0], "service");
    assert_eq!(said[1], "review-1 review-2");
    assert!(said[2].contains("build review-1 review-2") && !said[2].contains("reboot"), "{said:?}");
    assert_eq!(said[3], "--transcript");
    assert!(said[4].starts_with("other"), "{said:?}");
    assert_eq!(said[5], "t77");
    assert_eq!(said[6], "start stop status");
}

#[test]
fn without_a_daemon_nothing_is_offered_started_or_said() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    let mut roost = fake::roost(&socket);
    roost.env_remove("ROOST_NO_START").env("ROOST_TREE", "t1").env("ROOST_TOKEN", fake::TOKEN);
    assert_eq!(offered(roost, &["roost logs rev", "roost clo"]), ["", "close"]);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn each_shell_has_a_script_that_asks_us_and_is_answered_in_its_way() {
    let nowhere = Path::new("/nowhere/s");
    for shell in ["bash", "zsh", "fish"] {
        let script = output(fake::roost(nowhere).args(["completions", shell])).stdout;
        let script = String::from_utf8(script).unwrap();
        assert!(script.contains("ROOST_COMPLETE") && script.contains("roost"), "{script}");
        let mut asked = fake::roost(nowhere);
        asked.env("ROOST_COMPLETE", shell).env("_CLAP_COMPLETE_INDEX", "1").args(["--", "roost", "servi"]);
        let said = output(&mut asked);
        let said = String::from_utf8(said.stdout).unwrap();
        assert!(said.starts_with("service"), "{shell}: {said}");
    }
    let done = output(fake::roost(nowhere).env("ROOST_COMPLETE", "tcl").args(["--", "roost", ""]));
    assert_eq!(done.status.code(), Some(2));
    assert!(String::from_utf8(done.stderr).unwrap().contains("unknown shell"));
}

#[test]
fn each_command_has_a_page() {
    let dir = tempfile::tempdir().unwrap();
    let pages = dir.path().join("man1");
    assert!(output(fake::roost(&dir.path().join("s")).arg("man").arg(&pages)).status.success());
    for (page, wanted) in [("roost.1", "roost\\-timeline(1)"), ("roost-run.1", "\\-\\-cap"), ("roost-daemon-stop.1", "\\-\\-timeout")] {
        let text = fs::read_to_string(pages.join(page)).unwrap();
        assert!(text.contains(wanted), "{page}: {text}");
    }
    let (code, said) = {
        let done = output(fake::roost(&dir.path().join("s")).args(["man", "/proc/nowhere"]));
        (done.status.code(), String::from_utf8(done.stderr).unwrap())
    };
    assert!(code == Some(1) && said.contains("/proc/nowhere"), "{said}");
}
