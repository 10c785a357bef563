//! What is wrong with the configuration; `roost config check` says all of it.

use roost_config::{Around, Config, Level};

use super::Check;

pub fn check() -> Check {
    let config = Config::load(&Around::from_env());
    let count = config.problems().count();
    let first = config.error().or_else(|| config.problems().next());
    let Some(first) = first else {
        let files = config.user_file().filter(|(_, is_there)| *is_there).map(|(file, _)| file).into_iter().chain(config.project_file());
        let files: Vec<String> = files.map(|file| file.display().to_string()).collect();
        return Check::ok(
            "config",
            if files.is_empty() { "there are no files".to_owned() } else { format!("{} can be used", files.join(" and ")) },
        );
    };
    let more = if count > 1 { format!(" (and {} more)", count - 1) } else { String::new() };
    let message = format!("{first}{more}");
    match first.level {
        Level::Error => Check::error("config", message, "roost config check"),
        Level::Warning => Check::warning("config", message, "roost config check"),
    }
}
