//! Telling a workflow what to do: hold, go on, end. The answer is the workflow afterwards.

use std::collections::BTreeMap;

use octoflow_control::Command;
use serde_json::Value;

use super::{body::Message, namespace, refused::refused};
use crate::{
    answer::{self, Answer},
    call::Call,
    fault::Fault,
};

pub(super) async fn suspend(call: Call) -> Result<Answer, Fault> {
    tell(call, Command::Suspend).await
}

pub(super) async fn resume(mut call: Call) -> Result<Answer, Fault> {
    let selector = Message::of(&mut call).await?.text("nodeFieldSelector")?;
    tell(call, Command::Resume { selector, supplied: BTreeMap::new() }).await
}

pub(super) async fn stop(mut call: Call) -> Result<Answer, Fault> {
    let mut message = Message::of(&mut call).await?;
    match message.text("nodeFieldSelector")? {
        None => tell(call, Command::Stop).await,
        Some(_) => Err(Fault::not_implemented("stopping single nodes is not there yet")),
    }
}

pub(super) async fn terminate(call: Call) -> Result<Answer, Fault> {
    tell(call, Command::Terminate).await
}

async fn tell(call: Call, command: Command) -> Result<Answer, Fault> {
    let namespace = namespace(&call)?.unwrap_or_default();
    let name = call.param("name").to_owned();
    let object: Value = call
        .work(move |registry| -> Result<Value, Fault> {
            let found = registry.find_run(&namespace, &name)?;
            registry.command(found.run, command).map_err(refused)?;
            Ok(registry.run_object(&found.row)?)
        })
        .await?;
    Ok(answer::json(&object))
}
