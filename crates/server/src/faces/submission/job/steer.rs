//! Stopping and resuming jobs.

use octoflow_control::Command;
use octoflow_model::plugin::LifeState;
use serde_json::Value;

use super::{
    super::outcome::{Outcome, Refused},
    find,
};
use crate::call::Call;

/// The longest reason that is kept.
const MAX_REASON: usize = 4096;

/// The action that asks a gate again.
const RECHECK: &str = "recheck";

/// Which job a request is about, and why it is made.
async fn read(call: &mut Call) -> Result<(String, String), Refused> {
    let body = call.json().await?;
    if !body.is_null() && !body.is_object() {
        return Err(Refused::wrong("the body is an object with jobID and reason"));
    }
    let text = |field: &str| match &body[field] {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text.clone()),
        _ => Err(Refused::wrong(format!("{field} is a text"))),
    };
    let (named, reason) = (text("jobID")?, text("reason")?);
    if reason.len() > MAX_REASON {
        return Err(Refused::wrong(format!("reason has {} bytes; it may have {MAX_REASON}", reason.len())));
    }
    match call.optional_param("jobID") {
        None if named.is_empty() => Err(Refused::lacks("jobID must be given")),
        None => Ok((named, reason)),
        Some(id) if named.is_empty() || named == id => Ok((id.to_owned(), reason)),
        Some(id) => Err(Refused::wrong(format!("the path is about the job {id}, and the body about {named}"))),
    }
}

fn because(command: Command, reason: String) -> Command {
    if reason.is_empty() { command } else { Command::Because { reason, command: Box::new(command) } }
}

pub(super) async fn stop(mut call: Call) -> Outcome {
    let (id, reason) = read(&mut call).await?;
    let found = find(&call, id.clone()).await?;
    match LifeState::of_word(&found.row.phase) {
        Some(LifeState::Stopped) => return Ok(None),
        Some(state @ (LifeState::Succeeded | LifeState::Failed)) => {
            return Err(Refused::unsupported(format!("the job {id} is over: it has {state}")));
        }
        Some(LifeState::Waiting | LifeState::Running | LifeState::Suspended) | None => {}
    }
    let command = because(Command::Stop, reason);
    call.work(move |registry| registry.command(found.run, command)).await?;
    Ok(None)
}

pub(super) async fn resume(mut call: Call) -> Outcome {
    let (id, reason) = read(&mut call).await?;
    let found = find(&call, id.clone()).await?;
    if LifeState::of_word(&found.row.phase).is_some_and(LifeState::is_final) {
        return Err(Refused::unsupported(format!("the job {id} is over, so it cannot be resumed")));
    }
    let command = match call.query.flag(RECHECK) {
        true => Command::Perform { action: RECHECK.to_owned() },
        false => Command::Resume { selector: None, supplied: Default::default() },
    };
    let command = because(command, reason);
    call.work(move |registry| registry.command(found.run, command)).await?;
    Ok(None)
}
