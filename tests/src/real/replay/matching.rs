//! Names in transcripts: `$tree` takes its value from where it first stands in what is expected, and is that value afterwards.

use std::collections::BTreeMap;

use serde_json::Value;

/// What the names of a transcript stand for.
#[derive(Debug, Clone, Default)]
pub struct Names(BTreeMap<String, Value>);

impl Names {
    /// Gives a name its value.
    pub fn set(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }

    /// A value with every name replaced.
    ///
    /// # Errors
    /// Names a name that has no value yet.
    pub fn fill(&self, value: &Value) -> Result<Value, String> {
        Ok(match value {
            Value::String(text) => match name_in(text) {
                Some(name) => self.0.get(name).cloned().ok_or_else(|| format!("`${name}` has no value yet"))?,
                None => Value::String(unescaped(text)),
            },
            Value::Array(values) => values.iter().map(|value| self.fill(value)).collect::<Result<_, _>>()?,
            Value::Object(fields) => {
                fields.iter().map(|(key, value)| Ok((key.clone(), self.fill(value)?))).collect::<Result<_, String>>()?
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        })
    }

    /// Whether what was found is what was wanted: objects may have more fields, everything else is equal; `null` is also what is
    /// not there. A name without a value takes the one that was found.
    ///
    /// # Errors
    /// Says what differs. Names may have taken values by then.
    pub fn matches(&mut self, wanted: &Value, found: &Value) -> Result<(), String> {
        match (wanted, found) {
            (Value::String(text), _) if name_in(text).is_some() => {
                let name = name_in(text).unwrap_or_default();
                if found.is_null() {
                    return Err(format!("`${name}` is not there"));
                }
                let value = self.0.entry(name.to_owned()).or_insert_with(|| found.clone());
                if value == found { Ok(()) } else { Err(format!("`${name}` is {value}, not {found}")) }
            }
            (Value::Object(wanted), Value::Object(found)) => {
                for (key, wanted) in wanted {
                    self.matches(wanted, found.get(key).unwrap_or(&Value::Null)).map_err(|problem| format!("{key}: {problem}"))?;
                }
                Ok(())
            }
            (Value::Array(wanted), Value::Array(found)) if wanted.len() == found.len() => {
                for (at, (wanted, found)) in wanted.iter().zip(found).enumerate() {
                    self.matches(wanted, found).map_err(|problem| format!("[{at}]: {problem}"))?;
                }
                Ok(())
            }
            (Value::String(text), Value::String(found)) if unescaped(text) == *found => Ok(()),
            (Value::Null | Value::Bool(_) | Value::Number(_), found) if wanted == found => Ok(()),
            (wanted, found) => Err(format!("wanted {wanted}, found {found}")),
        }
    }
}

/// The name that a text stands for. `$$` begins a text with a dollar sign.
fn name_in(text: &str) -> Option<&str> {
    text.strip_prefix('$').filter(|name| !name.starts_with('$') && !name.is_empty())
}

fn unescaped(text: &str) -> String {
    text.strip_prefix('$').filter(|rest| rest.starts_with('$')).unwrap_or(text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_bind_once_and_are_compared_afterwards() {
        let mut names = Names::default();
        names.matches(&json!({"a": ["$x", {"b": "$y"}]}), &json!({"a": ["t1", {"b": 3, "c": 4}], "d": 5})).unwrap();
        assert_eq!(names.fill(&json!(["$x", "$y", "$$x"])).unwrap(), json!(["t1", 3, "$x"]));
        names.matches(&json!({"again": "$x", "gone": null}), &json!({"again": "t1"})).unwrap();
        for (wanted, found) in [
            (json!("$x"), json!("t2")),
            (json!({"a": 1}), json!({})),
            (json!({"a": null}), json!({"a": 1})),
            (json!([1]), json!([1, 2])),
            (json!("$new"), json!(null)),
            (json!({"a": "$new"}), json!({})),
            (json!("$$x"), json!("$$x")),
        ] {
            assert!(names.matches(&wanted, &found).is_err(), "{wanted} {found}");
        }
        assert!(names.fill(&json!("$nobody")).is_err());
    }
}
