//! `octoflow submit FILE…`: submits manifests to a server. Everything is read and validated here first, against the
//! objects of the server, so that problems have their place in the file; the server validates again.

use anyhow::Result;
use octoflow_engine::kinds::{self, Kind};
use serde_json::{Value, json};

use super::{
    Context,
    observe::handed_over,
    run::prepare::{Ready, prepare_with},
    stored::{address, put},
};
use crate::{
    cli::{Format, Submit},
    client::{Address, Client},
    exit::{Exit, Failure},
    load::{self, adjust::Overrides, names, validate::ObjectSource},
    output::json::objects,
    source::{
        without_nulls,
        workflow::{list, text},
    },
};

pub(crate) fn submit(args: &Submit, context: &Context) -> Result<Exit> {
    let client = context.client()?;
    let made = match &args.from {
        Some(from) => vec![made_from(from, args, &client, context)?],
        None => match from_files(args, &client, context)? {
            Some(made) => made,
            None => return Ok(Exit::InvalidManifest),
        },
    };
    if args.dry_run || args.server_dry_run {
        let format = args.output.as_ref().unwrap_or(&Format::Yaml);
        context.output.data(&objects(format, &made, false).unwrap_or_default())?;
        return Ok(Exit::Succeeded);
    }
    handed_over(&made, "submitted", &args.after, args.output.as_ref(), context)
}

/// Returns `None` if the manifests have problems, which are then already reported.
fn from_files(args: &Submit, client: &Client, context: &Context) -> Result<Option<Vec<Value>>> {
    let places: Vec<_> = args.manifests.iter().chain(&args.files).cloned().collect();
    let overrides = Overrides {
        name: args.naming.name.clone(),
        generate_name: args.naming.generate_name.clone(),
        labels: args.labels.clone(),
        ..args.override_args.overrides(args.namespace.namespace.as_deref())
    };
    let objects = Box::new(OfServer(client.clone()));
    let prepared = prepare_with(
        &places,
        overrides,
        args.override_args.parameter_file.as_deref(),
        Some(objects),
        None,
        true,
        context,
    )?;
    let Some(prepared) = prepared else { return Ok(None) };
    if args.dry_run {
        return Ok(Some(prepared.workflows.into_iter().map(|ready| ready.manifest).collect()));
    }
    for object in &prepared.objects {
        let (kind, name) = (text(object, "kind"), text(&object["metadata"], "name"));
        put(client, object, args.server_dry_run)?;
        context.output.detail(&format!("{kind} {name} is on the server"));
    }
    let send = |ready: Ready| {
        let kind = kinds::of_manifest(&ready.manifest)
            .map_err(|problem| Failure::new(Exit::InvalidManifest, problem.message))?;
        let mut address = address(kind, Some(&ready.namespace), None);
        if args.server_dry_run {
            address = address.with("dryRun", "All");
        }
        let (made, warnings) = client.create_with_warnings(&address, &ready.manifest, &names::key()?)?;
        ready.report_warnings(warnings, context);
        Ok(made)
    };
    prepared.workflows.into_iter().map(send).collect::<Result<Vec<_>>>().map(Some)
}

/// Submits from a template or a schedule of the server.
fn made_from(from: &str, args: &Submit, client: &Client, context: &Context) -> Result<Value> {
    let (kind, name) =
        from.split_once('/').filter(|(kind, name)| !kind.is_empty() && !name.is_empty()).ok_or_else(|| {
            Failure::usage(format!("`{from}` is not KIND/NAME")).help("for example: --from workflowtemplate/build")
        })?;
    let mut parameters = match &args.override_args.parameter_file {
        None => Vec::new(),
        Some(file) => {
            load::parameters(file)?.map_err(|problems| Failure::new(Exit::InvalidManifest, problems.to_string()))?
        }
    };
    parameters.extend(args.override_args.parameters.iter().cloned());
    let pairs = |pairs: &[(String, String)]| -> Vec<String> {
        pairs.iter().map(|(name, value)| format!("{name}={value}")).collect()
    };
    let labels = pairs(&args.labels).join(",");
    let options = without_nulls(json!({
        "name": args.naming.name, "generateName": args.naming.generate_name, "entryPoint": args.override_args.entrypoint,
        "parameters": pairs(&parameters), "labels": (!labels.is_empty()).then_some(labels),
        "serverDryRun": (args.dry_run || args.server_dry_run).then_some(true),
    }));
    let namespace = args.namespace.or_default();
    let body = json!({
        "namespace": namespace, "resourceKind": kind, "resourceName": name, "submitOptions": options,
    });
    let address = Address::of(&["api", "v1", "workflows", namespace, "submit"]);
    let (made, warnings) = client.create_with_warnings(&address, &body, &names::key()?)?;
    warnings.iter().for_each(|text| context.output.warn(text));
    Ok(made)
}

/// Objects of the server, for validating manifests that refer to them.
pub(crate) struct OfServer(pub Client);

impl ObjectSource for OfServer {
    fn object(&self, kind: &'static Kind, namespace: &str, name: &str) -> Option<Value> {
        self.0.find(&address(kind, Some(namespace), Some(name))).ok()?
    }

    fn names(&self, kind: &'static Kind, namespace: &str) -> Vec<String> {
        let found = self.0.get(&address(kind, Some(namespace), None)).unwrap_or_default();
        list(&found["items"]).iter().map(|object| text(&object["metadata"], "name").to_owned()).collect()
    }

    /// If the object may not be read it is assumed to exist: the server itself will report if it does not.
    fn has(&self, kind: &'static Kind, namespace: &str, name: &str) -> bool {
        !matches!(self.0.find(&address(kind, Some(namespace), Some(name))), Ok(None))
    }
}
