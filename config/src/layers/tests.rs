//! Precedence, and profiles of two files.

use std::fs;

use roost_proto::message::launch::{Allowance, Runner};
use tempfile::TempDir;

use super::*;
use crate::keys::key;
use crate::profile::Asked;

/// A home with a project in it.
struct Scene(TempDir);

impl Scene {
    fn new(user: &str, project: &str) -> Self {
        let scene = Self(tempfile::tempdir().unwrap());
        fs::create_dir_all(scene.path("home/.config/roost")).unwrap();
        fs::create_dir_all(scene.path("home/p/src")).unwrap();
        fs::write(scene.path("home/.config/roost/config.toml"), user).unwrap();
        fs::write(scene.path("home/p/.roost.toml"), project).unwrap();
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn load(&self, variables: &[(&str, &str)]) -> Config {
        Config::load(&Around {
            uid: rustix::process::geteuid().as_raw(),
            config_home: None,
            home: Some(self.path("home")),
            cwd: Some(self.path("home/p/src")),
            variables: variables.iter().map(|(name, value)| (name.into(), value.into())).collect(),
        })
    }
}

#[test]
fn a_variable_goes_before_the_project_that_before_the_user_and_that_before_the_default() {
    let scene = Scene::new("[tree]\ncap = 2\nbudget = 20\nidle = \"1m\"\n", "[tree]\ncap = 3\nbudget = 30\n");
    let config = scene.load(&[("ROOST_TREE_CAP", "4"), ("ROOST_TREE_BUDGET", "")]);
    let (user, project) = (scene.path("home/.config/roost/config.toml"), scene.path("home/p/.roost.toml"));
    for (name, value, source) in [
        ("tree.cap", "4", Source::Variable("ROOST_TREE_CAP".into())),
        ("tree.budget", "30", Source::Project(project, 3)),
        ("tree.idle", "1m", Source::User(user, 4)),
        ("tree.depth", "4096", Source::Default),
    ] {
        let (found, from) = config.value(key(name).unwrap());
        assert_eq!((found.to_string(), from), (value.to_owned(), source), "{name}");
    }
    let settings = config.settings();
    assert_eq!((settings.cap, settings.budget, settings.timing.idle_ms), (4, 30, 60_000));
    assert_eq!(config.error(), None);
    assert_eq!(Config::load(&Around::default()).settings(), Settings::default());
}

#[test]
fn explicit_zeros_are_values() {
    let scene = Scene::new("[tree]\nidle = \"1m\"\n", "[tree]\nidle = 0\n");
    assert_eq!(scene.load(&[]).settings().timing.idle_ms, 0);
    assert_eq!(scene.load(&[("ROOST_TREE_IDLE", "2m")]).settings().timing.idle_ms, 120_000);
}

#[test]
fn what_is_wrong_in_a_variable_is_told_by_its_name() {
    let scene = Scene::new("", "");
    let config = scene.load(&[("ROOST_TREE_CAP", "0"), ("ROOST_TREE_JOIN", "x"), ("ROOST_TREE_CPA", "1"), ("ROOST_TREE", "t1")]);
    let told: Vec<(Level, String)> = config.problems().map(|problem| (problem.level, problem.to_string())).collect();
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[0].0 == Level::Error && told[0].1.starts_with("ROOST_TREE_CAP: expected a whole number from 1"), "{told:?}");
    assert!(told[1].0 == Level::Error && told[1].1.contains("\"async\""), "{told:?}");
    assert!(told[2].0 == Level::Warning, "{told:?}");
    assert_eq!(config.problems().nth(2).unwrap().hint.as_deref(), Some("did you mean ROOST_TREE_CAP?"));
}

const USER: &str = r#"
[profile.pi]
runner = "worker"
argv = ["node", "cli.js", "--mode", "rpc"]
env = { A = "1" }
model = "m"
model_args = ["--model", "{model}"]
tools = ["read", "bash"]
tools_args = ["--tools", "{tools},subagents"]
timeout = "5m"

[profile.plain]
argv = ["cat"]
"#;

fn words(profile: &Profile, asked: &Asked) -> String {
    profile.command(asked).unwrap().iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_profile_becomes_a_command_with_what_the_task_and_the_project_ask() {
    let scene = Scene::new(USER, "[profile.pi]\nmodel = \"big\"\ntools = [\"read\"]\ndescendants = 3\n");
    let config = scene.load(&[]);
    assert_eq!(config.error(), None);
    let pi = config.profile("pi").unwrap();
    assert_eq!((pi.runner, pi.timeout_ms, pi.descendants), (Runner::Worker, Some(300_000), Some(Allowance::Exactly(3))));
    assert_eq!(words(&pi, &Asked::default()), "node cli.js --mode rpc --model big --tools read,subagents");
    let asked = Asked { model: Some("small".into()), tools: Some(vec!["bash".into()]), words: vec!["-x".into()], thinking: None };
    assert_eq!(words(&pi, &asked), "node cli.js --mode rpc --model small --tools bash,subagents -x");
    let sources = config.profile_sources("pi");
    assert!(matches!(&sources[..], [Source::Project(_, 1), Source::User(_, 2)]), "{sources:?}");
    assert_eq!(words(&config.profile("plain").unwrap(), &Asked::default()), "cat");
}

#[test]
fn what_a_profile_does_not_pass_on_is_refused_and_no_value_becomes_a_flag() {
    let config = Scene::new(USER, "").load(&[]);
    let plain = config.profile("plain").unwrap();
    for asked in [
        Asked { model: Some("m".into()), ..Asked::default() },
        Asked { thinking: Some("high".into()), ..Asked::default() },
        Asked { tools: Some(vec!["read".into()]), ..Asked::default() },
    ] {
        assert!(plain.command(&asked).is_err_and(|why| why.contains("`plain` passes no ")), "{asked:?}");
    }
    let pi = config.profile("pi").unwrap();
    for evil in ["--evil", "", "a\nb"] {
        assert!(pi.command(&Asked { model: Some(evil.into()), ..Asked::default() }).is_err(), "{evil}");
        assert!(pi.command(&Asked { tools: Some(vec!["read".into(), evil.into()]), ..Asked::default() }).is_err(), "{evil}");
    }
}

#[test]
fn an_unknown_profile_names_the_known_ones_and_a_project_alone_makes_none() {
    let config = Scene::new(USER, "[profile.own]\nmodel = \"m\"\n[profile.pi]\ntools = [\"read\", \"browse\"]\n").load(&[]);
    assert_eq!(config.profile("pie"), Err(ProfileError::Unknown { known: vec!["pi".into(), "plain".into()] }));
    assert_eq!(config.profile("own"), Err(ProfileError::RunsNothing));
    // Nobody gives what the user has not given.
    assert_eq!(config.profile("pi"), Err(ProfileError::MoreTools { tools: vec!["browse".into()] }));
}

#[test]
fn the_profile_for_pi_in_the_docs_is_what_the_extension_builds() {
    let page = include_str!("../../../docs/config.md");
    let example = page.split("```toml\n").find(|part| part.contains("[profile.pi]")).unwrap().split("```").next().unwrap();
    let launch = include_str!("../../../client/pi/launch.ts");
    let tools = launch.split_once("TOOL_NAMES = [").unwrap().1.split_once(']').unwrap().0;
    let tools: Vec<&str> = tools.split(',').map(|name| name.trim().trim_matches('"')).collect();
    let pi = Scene::new(example, "").load(&[]).profile("pi").unwrap();
    let asked = Asked { model: Some("p/m".into()), thinking: Some("high".into()), tools: Some(vec!["read".into()]), words: Vec::new() };
    let command = words(&pi, &asked);
    let passed_on = format!(" --model p/m --thinking high --tools read,{}", tools.join(","));
    assert!(command.ends_with(&passed_on), "{command}");
    let flags = command.trim_end_matches(&passed_on).split(' ').filter(|word| word.starts_with('-'));
    for flag in flags {
        assert!(launch.contains(&format!("\"{flag}\"")), "{flag}");
    }
    let built = launch.lines().find(|line| line.contains("const argv = [")).unwrap();
    for word in ["--import", "--mode", "rpc", "-ne"] {
        assert!(built.contains(&format!("\"{word}\"")) && command.contains(word), "{word}: {built}");
    }
    assert!(command.contains("preflight.mjs") && command.contains("client/pi/index.ts"), "{command}");
}
