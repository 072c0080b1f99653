//! `octoflow cron …`: schedules of a server, and their next times.

mod preview;

use anyhow::Result;
use octoflow_engine::{argo::CRON_WORKFLOW, kinds::Kind};
use serde_json::json;

use super::{Context, stored};
use crate::{
    cli::{CronCommand, StoredNames},
    client::Address,
    exit::{self, Exit},
};

const KIND: &Kind = &CRON_WORKFLOW;

pub(crate) fn cron(command: &CronCommand, context: &Context) -> Result<Exit> {
    match command {
        CronCommand::Stored(command) => stored::stored(command, KIND, context),
        CronCommand::Suspend(args) => hold(args, "suspend", "suspended", context),
        CronCommand::Resume(args) => hold(args, "resume", "resumed", context),
        CronCommand::Preview(args) => preview::preview(args, context),
    }
}

fn hold(args: &StoredNames, verb: &str, done: &str, context: &Context) -> Result<Exit> {
    let client = context.client()?;
    let namespace = args.namespace.or_default();
    let mut exit = Exit::Succeeded;
    for name in &args.names {
        let place = Address::of(&["api", "v1", "cron-workflows", namespace, name, verb]);
        match client.put(&place, &json!({"name": name, "namespace": namespace})) {
            Ok(_) => context.output.line(&format!("CronWorkflow '{name}' {done}"))?,
            Err(error) if args.names.len() == 1 => return Err(error),
            Err(error) => {
                context.output.error(&error);
                exit = exit.worse(exit::of(&error));
            }
        }
    }
    Ok(exit)
}
