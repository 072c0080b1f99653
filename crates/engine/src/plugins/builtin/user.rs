//! Priority by user: what somebody decided about each user.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Question, settings::Settings};

/// The user that stands for all who are not named.
const OTHERS: &str = "*";

/// Priorities by user id.
pub(super) struct Priorities(BTreeMap<String, String>);

impl Priorities {
    pub(super) fn read(settings: &Settings<'_>) -> Result<Self, String> {
        let read = |(user, value): (&str, &Value)| match value {
            Value::Number(number) => Ok((user.to_owned(), number.to_string())),
            Value::String(text) if text.trim().parse::<f64>().is_ok() => Ok((user.to_owned(), text.trim().to_owned())),
            Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                Err(settings.wrong(user, "a number: the priority of this user"))
            }
        };
        settings.all().map(read).collect::<Result<_, _>>().map(Self)
    }
}

/// Without a word about the user the advice is empty, which counts as none.
pub(super) fn advise(question: &Question<'_>, priorities: &Priorities) -> Value {
    let user = question.header("userID");
    let (advice, reason) = match (priorities.0.get(user), priorities.0.get(OTHERS)) {
        (Some(priority), _) => (priority.as_str(), format!("the priority of user {user}")),
        (None, Some(priority)) => (priority.as_str(), "the priority of all users without one of their own".to_owned()),
        (None, None) => ("", format!("nothing is said about user {user}")),
    };
    json!({"topic": "priority", "advice": advice, "reason": reason})
}
