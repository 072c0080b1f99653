//! Commands to a workflow: suspend, resume, stop, terminate, set outputs. The answer is the workflow afterwards.

use std::collections::BTreeMap;

use octoflow_control::Command;
use octoflow_model::argo::Phase;
use serde_json::Value;

use super::{
    body::Message,
    kind, namespace,
    refused::{over, refused},
};
use crate::{
    answer::{self, Answer, fault::Fault},
    call::Call,
};

pub(super) async fn suspend(call: Call) -> Result<Answer, Fault> {
    tell(call, Command::Suspend).await
}

pub(super) async fn resume(mut call: Call) -> Result<Answer, Fault> {
    let selector = Message::of(&mut call).await?.text("nodeFieldSelector")?;
    tell(call, Command::Resume { selector, supplied: BTreeMap::new() }).await
}

/// Stops the whole workflow, or the suspended nodes that a selector matches.
pub(super) async fn stop(mut call: Call) -> Result<Answer, Fault> {
    let mut message = Message::of(&mut call).await?;
    let text = message.text("message")?.unwrap_or_default();
    match message.text("nodeFieldSelector")? {
        None => tell(call, Command::Stop).await,
        Some(selector) => tell(call, Command::StopNodes { selector, message: text }).await,
    }
}

pub(super) async fn terminate(call: Call) -> Result<Answer, Fault> {
    tell(call, Command::Terminate).await
}

pub(super) async fn set(mut call: Call) -> Result<Answer, Fault> {
    let mut message = Message::of(&mut call).await?;
    let selector = message.text("nodeFieldSelector")?;
    let selector = selector.ok_or_else(|| Fault::bad_request("nodeFieldSelector is required"))?;
    let phase = match message.text("phase")?.as_deref() {
        None => None,
        Some("Succeeded") => Some(Phase::Succeeded),
        Some("Failed") => Some(Phase::Failed),
        Some("Error") => Some(Phase::Error),
        Some(other) => {
            return Err(Fault::bad_request(format!("phase must be Succeeded, Failed or Error, not `{other}`")));
        }
    };
    let outputs = outputs(message.text("outputParameters")?)?;
    let message = message.text("message")?.unwrap_or_default();
    tell(call, Command::Set { selector, phase, message, outputs }).await
}

/// Parses the JSON object in a string with names and values of output parameters.
fn outputs(text: Option<String>) -> Result<BTreeMap<String, String>, Fault> {
    let Some(text) = text else { return Ok(BTreeMap::new()) };
    let wrong = |why: &dyn std::fmt::Display| {
        Fault::bad_request(format!("outputParameters must be the JSON of an object of parameters: {why}"))
    };
    let Value::Object(fields) = serde_json::from_str(&text).map_err(|error| wrong(&error))? else {
        return Err(wrong(&"it is something else"));
    };
    let one = |(name, value): (String, Value)| match value {
        Value::String(text) => Ok((name, text)),
        Value::Number(_) | Value::Bool(_) => Ok((name, value.to_string())),
        _ => Err(wrong(&format!("`{name}` is no text"))),
    };
    fields.into_iter().map(one).collect()
}

async fn tell(call: Call, command: Command) -> Result<Answer, Fault> {
    let namespace = namespace(&call)?.unwrap_or_default();
    let name = call.param("name").to_owned();
    let object: Value = call
        .work(move |registry| -> Result<Value, Fault> {
            let found = registry.find_run(kind("Workflow"), &namespace, &name)?;
            if found.row.archived {
                return Err(over(command.verb(), &found.row.name));
            }
            registry.command(found.run, command).map_err(refused)?;
            // Commands are answered quickly, however large the run is.
            Ok(registry.trimmed_run(&found.row)?)
        })
        .await?;
    Ok(answer::json(&object))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_an_object_in_a_text() {
        let read = outputs(Some(r#"{"a": "x", "b": 3}"#.to_owned())).unwrap();
        assert_eq!(read, BTreeMap::from([("a".to_owned(), "x".to_owned()), ("b".to_owned(), "3".to_owned())]));
        assert!(outputs(None).unwrap().is_empty());
        for wrong in ["x", "[]", r#"{"a": {}}"#] {
            assert!(outputs(Some(wrong.to_owned())).is_err(), "{wrong}");
        }
    }
}
