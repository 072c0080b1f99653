//! `octoflow node set NAME`: sets values, message or phase of waiting nodes, on a server.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::json;

use super::Context;
use crate::{
    cli::NodeSet,
    exit::{Exit, Failure},
    source::{in_argo_api, kind_of, without_nulls, workflow},
};

pub(crate) fn node_set(args: &NodeSet, context: &Context) -> Result<Exit> {
    if args.phase.is_none() && args.message.is_none() && args.output_parameters.is_empty() {
        return Err(Failure::usage("there is nothing to set")
            .help("say --phase, --message or --output-parameter")
            .into());
    }
    let client = context.client()?;
    let row = context.source_of_server()?.find(args.namespace.or_default(), &args.name)?;
    if !in_argo_api(&row) {
        return Err(Failure::usage(format!("a {} has no waiting nodes", kind_of(&row).noun)).into());
    }
    let values: BTreeMap<&String, &String> = args.output_parameters.iter().map(|(name, value)| (name, value)).collect();
    let values = (!values.is_empty()).then(|| serde_json::to_string(&values)).transpose()?;
    let body = without_nulls(json!({
        "name": row.name, "namespace": row.namespace, "nodeFieldSelector": args.node_field_selector,
        "phase": args.phase, "message": args.message, "outputParameters": values,
    }));
    client.put(&workflow(&row, &["set"]), &body)?;
    context.output.line(&format!("workflow {} values set", row.name))?;
    Ok(Exit::Succeeded)
}
