//! The rule once more, naively: every assignment of old elements to new ones is tried.

use serde_json::Value;

use super::Mode;

pub(super) fn extends(old: &Value, new: &Value, mode: Mode, own_keys: bool) -> bool {
    match (old, new) {
        (Value::Null, new) => addable(new, mode, own_keys),
        (Value::Array(old), Value::Array(new)) => assign(old, &new.iter().collect::<Vec<_>>(), mode, own_keys),
        (Value::Object(old), Value::Object(new)) => {
            let kept = old.iter().all(|(key, value)| {
                let found = new.get(key);
                match (key.as_str(), found) {
                    ("nodeSelector", _) if !own_keys => true,
                    (_, None) => false,
                    ("schedulerName", Some(found)) if !own_keys => {
                        found == value || unset(value) && (mode == Mode::Bind || unset(found))
                    }
                    ("command", Some(found)) if !own_keys && texts(value) && texts(found) => command(value, found),
                    (key, Some(found)) => extends(value, found, mode, below(key, own_keys)),
                }
            });
            let extra = new.iter().filter(|(key, _)| !old.contains_key(*key));
            kept && extra.into_iter().all(|(key, value)| addable_member(key, value, mode, own_keys))
        }
        (old, new) => old == new,
    }
}

fn below(key: &str, own_keys: bool) -> bool {
    own_keys || ["labels", "annotations", "matchLabels", "nodeSelector"].contains(&key)
}

fn unset(value: &Value) -> bool {
    value.is_null() || value == ""
}

fn addable(value: &Value, mode: Mode, own_keys: bool) -> bool {
    match value {
        Value::Array(values) => values.iter().all(|value| addable(value, mode, own_keys)),
        Value::Object(members) => members.iter().all(|(key, value)| addable_member(key, value, mode, own_keys)),
        _ => true,
    }
}

fn addable_member(key: &str, value: &Value, mode: Mode, own_keys: bool) -> bool {
    let names = key == "schedulerName" && !own_keys && !unset(value);
    !(names && mode == Mode::Decorate) && addable(value, mode, below(key, own_keys))
}

fn assign(old: &[Value], new: &[&Value], mode: Mode, own_keys: bool) -> bool {
    let Some((first, rest)) = old.split_first() else {
        return new.iter().all(|value| addable(value, mode, own_keys));
    };
    (0..new.len()).any(|at| {
        let mut others = new.to_vec();
        let taken = others.remove(at);
        extends(first, taken, mode, own_keys) && assign(rest, &others, mode, own_keys)
    })
}

fn texts(value: &Value) -> bool {
    value.as_array().is_some_and(|values| values.iter().all(Value::is_string))
}

fn command(old: &Value, new: &Value) -> bool {
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let (mut old, mut new) = (texts(old), texts(new));
    let Some(old_last) = old.pop() else { return true };
    let Some(new_last) = new.pop() else { return false };
    let front = new_last.strip_suffix(&old_last).map(|front| front.trim_end_matches([' ', '\t']));
    new.ends_with(&old)
        && front.is_some_and(|front| {
            front.is_empty() || front.ends_with(';') || front.ends_with("&&") || front.ends_with('\n')
        })
}
