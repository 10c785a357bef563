//! `roost config explain`: each value, and who said it.

use clap::Args;
use roost::proto::message::launch::{Allowance, Runner};
use roost_config::{Around, Config, KEYS, Key, Level, Profile, Source, Value, nearest};
use serde::Serialize;

use crate::conf::warn;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Out, escape_line};
use crate::settings::SettingsArgs;

/// Say what holds for each key, and who said it: a flag, a variable, a line of a file, or nobody
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  roost config explain\n  roost config explain tree.cap --cap 4\n  roost config explain profile.pi --json\n\n\
    What it says of the daemon holds for the next one that is started. With settings as flags it says what `roost run` with them would do."
)]
pub struct ExplainArgs {
    /// Only this key, section or profile
    #[arg(value_name = "KEY")]
    key: Option<String>,
    #[command(flatten)]
    settings: SettingsArgs,
}

/// One value, as programs read it.
#[derive(Serialize)]
struct Line {
    key: &'static str,
    value: serde_json::Value,
    unit: &'static str,
    #[serde(flatten)]
    from: Origin,
    /// As people read it.
    #[serde(skip)]
    text: String,
}

/// Who said it.
#[derive(Serialize)]
struct Origin {
    source: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

/// One profile. The values of its variables may be secret: only their names are shown.
#[derive(Serialize)]
struct Shown {
    name: String,
    runner: Runner,
    argv: Vec<String>,
    env: Vec<String>,
    model: Option<String>,
    thinking: Option<String>,
    tools: Option<Vec<String>>,
    timeout_ms: Option<u64>,
    group: Option<String>,
    descendants: Option<Allowance>,
    from: Vec<Origin>,
}

impl ExplainArgs {
    pub fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let config = Config::load(&Around::from_env());
        let wanted = |name: &str| {
            self.key.as_ref().is_none_or(|key| name == key || name.strip_prefix(key.as_str()).is_some_and(|rest| rest.starts_with('.')))
        };
        let flags = self.settings.values();
        let lines: Vec<Line> = KEYS.iter().filter(|key| wanted(key.name)).map(|key| line(key, &flags, &config)).collect();
        let names = config.profiles().into_iter().filter(|name| wanted(&format!("profile.{name}")));
        // One that cannot be used is among the problems, or is told when it is asked for.
        let profiles: Vec<Shown> = names.filter_map(|name| Some(shown(config.profile(&name).ok()?, &config))).collect();
        if let Some(key) = &self.key
            && lines.is_empty()
            && profiles.is_empty()
        {
            return Err(unknown(key, &config));
        }
        config.problems().for_each(warn);
        if out.json {
            let user =
                config.user_file().map(|(file, is_there)| serde_json::json!({"path": file.display().to_string(), "exists": is_there}));
            let project = config.project_file().map(|file| serde_json::json!({"path": file.display().to_string(), "exists": true}));
            out.json(&serde_json::json!({"user": user, "project": project, "values": lines, "profiles": profiles}))?;
        } else {
            print(&lines, &profiles, out)?;
        }
        Ok(if config.problems().any(|problem| problem.level == Level::Error) { Exit::NotCompleted } else { Exit::Ok })
    }
}

fn line(key: &'static Key, flags: &[(&'static Key, Value)], config: &Config) -> Line {
    // Of two for one key the later holds.
    let flag = flags.iter().rev().find(|(flag, _)| flag.name == key.name);
    let (value, source) = flag.map_or_else(|| config.value(key), |(key, value)| (value.clone(), Source::Flag(key.flag)));
    let text = if let Value::Number(number) = &value { format!("{number} {}", key.kind.unit()) } else { value.to_string() };
    let json = match value {
        Value::None => serde_json::Value::Null,
        Value::Number(number) | Value::Time(number) => number.into(),
        Value::Word(word) => word.into(),
        Value::Caps(caps) => serde_json::json!(caps),
    };
    Line { key: key.name, value: json, unit: key.kind.unit(), from: Origin::of(source), text }
}

fn shown(profile: Profile, config: &Config) -> Shown {
    Shown {
        from: config.profile_sources(&profile.name).into_iter().map(Origin::of).collect(),
        name: profile.name,
        runner: profile.runner,
        argv: profile.argv,
        env: profile.env.into_iter().map(|(name, _)| name).collect(),
        model: profile.model,
        thinking: profile.thinking,
        tools: profile.tools,
        timeout_ms: profile.timeout_ms,
        group: profile.group,
        descendants: profile.descendants,
    }
}

fn print(lines: &[Line], profiles: &[Shown], out: &mut Out) -> Result<(), Failure> {
    let width = lines.iter().map(|line| line.text.chars().count()).max().unwrap_or(0).min(24);
    for line in lines {
        out.line(&escape_line(&format!("{:<24} {:<width$} {}", line.key, line.text, line.from)))?;
    }
    for profile in profiles {
        let from = profile.from.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        out.line(&escape_line(&format!("profile.{:<16} {}", profile.name, from)))?;
        let runner = if profile.runner == Runner::Worker { "worker" } else { "command" };
        let timeout = profile.timeout_ms.map(|ms| Value::Time(ms).to_string());
        let descendants = profile.descendants.map(|allowance| match allowance {
            Allowance::Exactly(number) => number.to_string(),
            Allowance::Rest(_) => "rest".to_owned(),
        });
        let fields = [
            ("argv", Some(profile.argv.join(" "))),
            ("runner", Some(runner.to_owned())),
            ("env", Some(profile.env.join(" ")).filter(|names| !names.is_empty())),
            ("model", profile.model.clone()),
            ("thinking", profile.thinking.clone()),
            ("tools", profile.tools.as_ref().map(|tools| tools.join(","))),
            ("timeout", timeout),
            ("group", profile.group.clone()),
            ("descendants", descendants),
        ];
        for (name, value) in fields.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            out.line(&escape_line(&format!("  {name:<12} {value}")))?;
        }
    }
    Ok(())
}

fn unknown(key: &str, config: &Config) -> Failure {
    let profiles: Vec<String> = config.profiles().iter().map(|name| format!("profile.{name}")).collect();
    let known = KEYS.iter().map(|key| key.name).chain(profiles.iter().map(String::as_str));
    // A key without its section is a likely slip.
    let near = KEYS.iter().map(|known| known.name).find(|name| name.ends_with(&format!(".{key}"))).or_else(|| nearest(key, known));
    let hint = near.map_or_else(|| "`roost config explain` shows all of them".to_owned(), |near| format!("did you mean `{near}`?"));
    Failure::usage(format!("there is no key, section or profile `{}`", key.escape_debug()), Some(&hint))
}

impl Origin {
    fn of(source: Source) -> Self {
        let at =
            |source, file: std::path::PathBuf, line| Self { source, file: Some(file.display().to_string()), line: Some(line), name: None };
        let named = |source, name: Option<String>| Self { source, file: None, line: None, name };
        match source {
            Source::Flag(flag) => named("flag", Some(flag.to_owned())),
            Source::Variable(name) => named("env", Some(name)),
            Source::Project(file, line) => at("project", file, line),
            Source::User(file, line) => at("user", file, line),
            Source::Default => named("default", None),
        }
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.source)?;
        if let (Some(file), Some(line)) = (&self.file, self.line) {
            write!(f, " {file}:{line}")?;
        }
        self.name.as_ref().map_or(Ok(()), |name| write!(f, " {name}"))
    }
}
