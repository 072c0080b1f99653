//! `octoflow resubmit NAME…`: submits the same manifest as a new run, on a server.

use anyhow::Result;
use octoflow_engine::{
    dialect::PhaseClass,
    rerun::{ResubmitOptions, RunContext},
};
use octoflow_store::RunRow;
use serde_json::{Value, json};

use super::{Context, observe::handed_over, steer, stored::address};
use crate::{
    cli::Resubmit,
    exit::{Exit, Failure},
    load::names,
    output::clock,
    source::{kind_of, phases, workflow},
};

pub(crate) fn resubmit(args: &Resubmit, context: &Context) -> Result<Exit> {
    let client = context.client()?;
    let source = context.source_of_server()?;
    let parameters: Vec<String> = args.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mut made: Vec<Value> = Vec::new();
    let act = |row: &RunRow| -> Result<()> {
        let kind = kind_of(row);
        let Some(dialect) = kind.dialect() else {
            let text = format!("run `{}` is of a kind that this version does not know", row.name);
            return Err(Failure::conflict(text).into());
        };
        if !dialect.in_argo_api {
            let options = ResubmitOptions { memoized: args.memoized, parameters: args.parameters.clone() };
            let fresh = dialect.reruns.resubmit(&source.object(row)?, &RunContext::default(), &options, clock::now());
            let fresh = fresh.map_err(|refusal| Failure::usage(refusal.to_string()))?;
            made.push(client.create(&address(kind, Some(&row.namespace), None), &fresh.manifest, &names::key()?)?);
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
            let over = phases(PhaseClass::is_final);
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
