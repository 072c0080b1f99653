//! What is kept beside workflows, in one shape for all of it: templates, cluster templates, schedules.

use axum::http::Method;
use octoflow_control::registry::{Fault as RegistryFault, ListOptions, schema_name};
use octoflow_model::meta::DEFAULT_NAMESPACE;
use serde_json::{Value, json};

use super::{
    body::Message,
    kind,
    list::{FIELDS, OPTIONS, limit, selection, written},
    mask::Mask,
    namespace, several,
    workflow::{DELETE, delete_options, name, sign, space_of, writer},
};
use crate::{
    answer::{self, Answer},
    area::Area,
    call::Call,
    fault::Fault,
    openapi::{
        operation::{Content, Parameter, refer, text},
        shapes::empty,
    },
    route::{Need, Route, Table},
};

/// One kind with its place in the tree and the field its requests carry it in.
pub(super) struct Shelf {
    kind: &'static str,
    path: &'static str,
    field: &'static str,
}

static SHELVES: [Shelf; 3] = [
    Shelf { kind: "WorkflowTemplate", path: "/api/v1/workflow-templates", field: "template" },
    Shelf { kind: "ClusterWorkflowTemplate", path: "/api/v1/cluster-workflow-templates", field: "template" },
    Shelf { kind: "CronWorkflow", path: "/api/v1/cron-workflows", field: "cronWorkflow" },
];

pub(super) fn routes(table: &mut Table) {
    for shelf in &SHELVES {
        let base = shelf.path;
        let all = [base.to_owned(), format!("{base}/")];
        let here = if kind(shelf.kind).namespaced { format!("{base}/{{namespace}}") } else { base.to_owned() };
        let mut lists = all.to_vec();
        if here != base {
            lists.extend([here.clone(), format!("{here}/")]);
        }
        for path in lists {
            shared(table.get(path.clone(), Need::ReadJob, move |call| list(call, shelf)), shelf)
                .about(format!("Lists objects of kind {}", shelf.kind))
                .query(OPTIONS)
                .query(&[PATTERN])
                .gives(several(shelf.kind));
            table
                .add(Method::POST, path, Need::WriteJob, move |call| create(call, shelf))
                .about(format!("Creates a {}", shelf.kind))
                .takes(shelf.body())
                .gives(super::one(shelf.kind));
        }
        shared(table.add(Method::POST, format!("{here}/lint"), Need::ReadJob, move |call| lint(call, shelf)), shelf)
            .about(format!("Judges a {} and keeps nothing", shelf.kind))
            .takes(shelf.body())
            .gives(super::one(shelf.kind));
        for one in ["{name}", "lint"] {
            let one = format!("{here}/{one}");
            shared(table.get(one.clone(), Need::ReadJob, move |call| get(call, shelf)), shelf)
                .about(format!("Reads a {}", shelf.kind))
                .query(&[FIELDS])
                .gives(super::one(shelf.kind));
            table
                .add(Method::PUT, one.clone(), Need::WriteJob, move |call| update(call, shelf))
                .about(format!("Replaces a {}", shelf.kind))
                .takes(shelf.body())
                .gives(super::one(shelf.kind));
            table
                .add(Method::DELETE, one, Need::WriteJob, move |call| delete(call, shelf))
                .about(format!("Deletes a {}", shelf.kind))
                .query(DELETE)
                .gives(Content::json(empty()));
        }
    }
    let cron = &SHELVES[2];
    for (verb, suspend) in [("suspend", true), ("resume", false)] {
        let path = format!("{}/{{namespace}}/{{name}}/{verb}", cron.path);
        table
            .add(Method::PUT, path, Need::WriteJob, move |call| hold(call, suspend))
            .about(if suspend { "Lets a schedule make nothing for a while" } else { "Lets a schedule go on" })
            .gives(super::one(cron.kind));
    }
    for path in ["/api/v1/workflow-event-bindings/", "/api/v1/workflow-event-bindings/{namespace}"] {
        table
            .get(path, Need::ReadJob, |call| list(call, &BINDINGS))
            .about("Lists event bindings")
            .query(OPTIONS)
            .query(&[PATTERN])
            .gives(several(BINDINGS.kind));
    }
}

/// What has no namespace is there for those of every namespace to read.
fn shared<'a>(route: &'a mut Route, shelf: &Shelf) -> &'a mut Route {
    if kind(shelf.kind).namespaced { route } else { route.within(Area::Shared) }
}

static BINDINGS: Shelf = Shelf { kind: "WorkflowEventBinding", path: "", field: "" };

const PATTERN: Parameter = text("namePattern", "Only objects whose name has this in it");

impl Shelf {
    /// The schema of what requests carry.
    fn body(&self) -> Content {
        let object = refer(&schema_name(kind(self.kind)));
        Content::json(json!({"type": "object", "required": [self.field], "properties": {self.field: object}}))
    }

    /// Where an object of this kind goes: where the path says, else where it says itself.
    fn space(&self, call: &Call, object: Option<&Value>) -> Result<String, Fault> {
        if !kind(self.kind).namespaced {
            return Ok(String::new());
        }
        let fallback = || object.map_or_else(|| DEFAULT_NAMESPACE.to_owned(), space_of);
        Ok(namespace(call)?.unwrap_or_else(fallback))
    }
}

async fn list(call: Call, shelf: &'static Shelf) -> Result<Answer, Fault> {
    let mut options = ListOptions {
        namespace: namespace(&call)?,
        selection: selection(&call.query)?,
        limit: limit(&call.query)?,
        after: call.query.get("listOptions.continue").map(str::to_owned),
    };
    // A part of the name, either way it can be said.
    let mut part = call.query.get("namePattern").map(str::to_owned);
    if let Some(filter) = call.query.get("nameFilter").filter(|filter| *filter != "Exact") {
        let named = options.selection.fields.0.iter().position(|test| test.field == "metadata.name");
        match (filter, named) {
            ("Contains" | "Prefix", Some(at)) => part = Some(options.selection.fields.0.remove(at).value),
            ("Contains" | "Prefix", None) => {}
            _ => {
                return Err(Fault::bad_request(format!(
                    "nameFilter must be Exact, Contains or Prefix, not `{filter}`"
                )));
            }
        }
    }
    let begins = call.query.get("nameFilter") == Some("Prefix");
    let mut value = call
        .work(move |registry| -> Result<Value, RegistryFault> {
            let found = registry.list(kind(shelf.kind), &options)?;
            let mut items = found.items;
            if let Some(part) = part {
                items.retain(|item| {
                    let name = item["metadata"]["name"].as_str().unwrap_or_default();
                    if begins { name.starts_with(&part) } else { name.contains(&part) }
                });
            }
            Ok(written(&format!("{}List", shelf.kind), items, found.revision, found.next))
        })
        .await?;
    Mask::of(&call.query).apply(&mut value);
    Ok(answer::json(&value))
}

async fn create(mut call: Call, shelf: &'static Shelf) -> Result<Answer, Fault> {
    let mut object = Message::of(&mut call).await?.object(shelf.field)?;
    let space = shelf.space(&call, Some(&object))?;
    sign(&mut object, &call.caller.name);
    let made = call
        .work(move |registry| {
            // What would make no workflow is told now and not when somebody waits for one.
            let object = registry.lint(kind(shelf.kind), &space, object)?;
            registry.create(kind(shelf.kind), &space, object, &writer())
        })
        .await?;
    Ok(answer::json(&made))
}

async fn lint(mut call: Call, shelf: &'static Shelf) -> Result<Answer, Fault> {
    let object = Message::of(&mut call).await?.object(shelf.field)?;
    let space = shelf.space(&call, Some(&object))?;
    let read = call.work(move |registry| registry.lint(kind(shelf.kind), &space, object)).await?;
    Ok(answer::json(&read))
}

async fn get(call: Call, shelf: &'static Shelf) -> Result<Answer, Fault> {
    let (space, name) = (shelf.space(&call, None)?, name(&call));
    let mut object = call.work(move |registry| registry.get(kind(shelf.kind), &space, &name)).await?;
    Mask::of(&call.query).apply(&mut object);
    Ok(answer::json(&object))
}

async fn update(mut call: Call, shelf: &'static Shelf) -> Result<Answer, Fault> {
    let object = Message::of(&mut call).await?.object(shelf.field)?;
    let (space, name) = (shelf.space(&call, Some(&object))?, name(&call));
    let kept = call
        .work(move |registry| {
            let object = registry.lint(kind(shelf.kind), &space, object)?;
            registry.replace(kind(shelf.kind), &space, &name, object, &writer())
        })
        .await?;
    Ok(answer::json(&kept))
}

async fn delete(call: Call, shelf: &'static Shelf) -> Result<Answer, Fault> {
    let (space, name, options) = (shelf.space(&call, None)?, name(&call), delete_options(&call)?);
    call.work(move |registry| registry.delete(kind(shelf.kind), &space, &name, &options)).await?;
    Ok(answer::json(&json!({})))
}

/// A schedule that makes nothing for a while, or does again.
async fn hold(call: Call, suspend: bool) -> Result<Answer, Fault> {
    let (space, name) = (SHELVES[2].space(&call, None)?, name(&call));
    let kept = call
        .work(move |registry| {
            registry.update(kind("CronWorkflow"), &space, &name, &writer(), |before| {
                let mut after = before.clone();
                after["spec"]["suspend"] = json!(suspend);
                Ok(after)
            })
        })
        .await?;
    Ok(answer::json(&kept))
}
