//! `octoflow resubmit NAME…`: the same manifest once more as a new run, on a server.

use anyhow::Result;
use octoflow_engine::taskset::again;
use octoflow_model::taskset;
use octoflow_store::RunRow;
use serde_json::{Value, json};

use super::{Context, observe::handed_over, steer};
use crate::{
    cli::Resubmit,
    exit::{Exit, Failure},
    names,
    source::{task_set, workflow},
};

pub(crate) fn resubmit(args: &Resubmit, context: &Context) -> Result<Exit> {
    let client = context.client()?;
    let source = context.source_of_server()?;
    let parameters: Vec<String> = args.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mut made: Vec<Value> = Vec::new();
    let act = |row: &RunRow| -> Result<()> {
        if row.kind == taskset::KIND {
            if args.memoized || !parameters.is_empty() {
                let text = "a TaskSet has no parameters, and no results to take over";
                return Err(Failure::usage(text).into());
            }
            let manifest = again::resubmitted(&source.object(row)?);
            made.push(client.create(&task_set(&row.namespace, None), &manifest, &names::key()?)?);
            return Ok(());
        }
        let body = json!({
            "name": row.name, "namespace": row.namespace, "memoized": args.memoized, "parameters": parameters,
        });
        made.push(client.change(&workflow(row, &["resubmit"]), &body, &names::key()?)?);
        Ok(())
    };
    let exit = match &args.target.selector {
        Some(labels) => {
            let over = ["Succeeded", "Failed", "Error"].map(str::to_owned).to_vec();
            let namespace = args.target.namespace.or_default();
            steer::selected(namespace, labels.0.clone(), over, &*source, context, act)?
        }
        None => steer::each(&args.target, &*source, context, act)?,
    };
    if made.is_empty() {
        return Ok(exit);
    }
    Ok(exit.worse(handed_over(&made, "submitted", &args.after, args.output.as_ref(), context)?))
}
