//! `--set KEY=VALUE`: the times and tries of a new tree.
//!
//! It does not know which values are allowed; the daemon does.

use roost_config::{KEYS, Key, Value, nearest};

/// One `--set`.
#[derive(Debug, Clone)]
pub struct Change {
    /// Which.
    pub key: &'static Key,
    /// To what.
    pub value: Value,
}

/// Those that have no flag of their own.
fn known() -> impl Iterator<Item = &'static Key> {
    KEYS.iter().filter(|key| key.flag == "--set")
}

/// Reads one.
pub fn change(text: &str) -> Result<Change, String> {
    let names = || known().map(Key::short).collect::<Vec<_>>().join(", ");
    let (name, value) = text.split_once('=').ok_or_else(|| format!("write KEY=VALUE; the keys are {}", names()))?;
    let found = known().find(|key| key.short() == name);
    let key = found.ok_or_else(|| {
        let near = nearest(name, known().map(Key::short)).map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default();
        format!("there is no setting `{}`{near}; the keys are {}", name.escape_debug(), names())
    })?;
    Ok(Change { key, value: key.kind.read(value)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_read_and_what_cannot_be_set_names_what_can() {
        assert_eq!(change("park_deadline=7m").unwrap().value, Value::Time(420_000));
        assert_eq!(change("start_retries=3").unwrap().value, Value::Number(3));
        for bad in ["settle_to_exit", "settle-to-exit=1s", "cap=3", "=1", ""] {
            assert!(change(bad).is_err_and(|why| why.contains("settle_to_exit, leftovers_grace,")), "{bad}");
        }
        assert!(change("park_again=soon").is_err_and(|why| why.contains("500ms")));
        assert!(change("start_retries=2s").is_err_and(|why| why.contains("whole number")));
    }
}
