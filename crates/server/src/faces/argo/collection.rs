//! Stored objects other than workflows, all served in one way: templates, cluster templates, schedules.

use axum::http::Method;
use octoflow_control::registry::{Fault as RegistryFault, KeptList, ListOptions, schema_name};
use octoflow_model::{Revision, meta::DEFAULT_NAMESPACE};
use serde_json::{Value, json};

use super::{
    body::Message,
    kind,
    list::{FIELDS, OPTIONS, limit, selection},
    listing::{Items, List},
    mask::Mask,
    namespace, several,
    workflow::{DELETE, delete_options, name, sign, space_of, writer},
};
use crate::{
    answer::{self, Answer, fault::Fault, pieces},
    call::Call,
    faces::openapi::{
        operation::{Content, Parameter, refer, text},
        shapes::empty,
    },
    gate::area::Area,
    route::{Need, Route, Table},
};

/// One kind with its path and the field that carries it in requests.
pub(super) struct Collection {
    kind: &'static str,
    path: &'static str,
    field: &'static str,
}

static COLLECTIONS: [Collection; 3] = [
    Collection { kind: "WorkflowTemplate", path: "/api/v1/workflow-templates", field: "template" },
    Collection { kind: "ClusterWorkflowTemplate", path: "/api/v1/cluster-workflow-templates", field: "template" },
    Collection { kind: "CronWorkflow", path: "/api/v1/cron-workflows", field: "cronWorkflow" },
];

pub(super) fn routes(table: &mut Table) {
    for collection in &COLLECTIONS {
        let base = collection.path;
        let all = [base.to_owned(), format!("{base}/")];
        let here = if kind(collection.kind).namespaced { format!("{base}/{{namespace}}") } else { base.to_owned() };
        let mut lists = all.to_vec();
        if here != base {
            lists.extend([here.clone(), format!("{here}/")]);
        }
        for path in lists {
            shared(table.get(path.clone(), Need::ReadJob, move |call| list(call, collection)), collection)
                .about(format!("Lists objects of kind {}", collection.kind))
                .query(OPTIONS)
                .query(&[PATTERN])
                .gives(several(collection.kind));
            table
                .add(Method::POST, path, Need::WriteJob, move |call| create(call, collection))
                .about(format!("Creates a {}", collection.kind))
                .takes(collection.body())
                .gives(super::one(collection.kind));
        }
        shared(
            table.add(Method::POST, format!("{here}/lint"), Need::ReadJob, move |call| lint(call, collection)),
            collection,
        )
        .about(format!("Judges a {} and keeps nothing", collection.kind))
        .takes(collection.body())
        .gives(super::one(collection.kind));
        for one in ["{name}", "lint"] {
            let one = format!("{here}/{one}");
            shared(table.get(one.clone(), Need::ReadJob, move |call| get(call, collection)), collection)
                .about(format!("Reads a {}", collection.kind))
                .query(&[FIELDS])
                .gives(super::one(collection.kind));
            table
                .add(Method::PUT, one.clone(), Need::WriteJob, move |call| update(call, collection))
                .about(format!("Replaces a {}", collection.kind))
                .takes(collection.body())
                .gives(super::one(collection.kind));
            table
                .add(Method::DELETE, one, Need::WriteJob, move |call| delete(call, collection))
                .about(format!("Deletes a {}", collection.kind))
                .query(DELETE)
                .gives(Content::json(empty()));
        }
    }
    let cron = &COLLECTIONS[2];
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

/// Objects without a namespace may be read by callers of every namespace.
fn shared<'a>(route: &'a mut Route, collection: &Collection) -> &'a mut Route {
    if kind(collection.kind).namespaced { route } else { route.within(Area::Shared) }
}

static BINDINGS: Collection = Collection { kind: "WorkflowEventBinding", path: "", field: "" };

const PATTERN: Parameter = text("namePattern", "Only objects whose name has this in it");

impl Collection {
    /// Schema of the request body.
    fn body(&self) -> Content {
        let object = refer(&schema_name(kind(self.kind)));
        Content::json(json!({"type": "object", "required": [self.field], "properties": {self.field: object}}))
    }

    /// Returns the namespace of an object: from the path, else from the object itself.
    fn space(&self, call: &Call, object: Option<&Value>) -> Result<String, Fault> {
        if !kind(self.kind).namespaced {
            return Ok(String::new());
        }
        let fallback = || object.map_or_else(|| DEFAULT_NAMESPACE.to_owned(), space_of);
        Ok(namespace(call)?.unwrap_or_else(fallback))
    }
}

async fn list(call: Call, collection: &'static Collection) -> Result<Answer, Fault> {
    let mut options = ListOptions {
        namespace: namespace(&call)?,
        selection: selection(&call.query)?,
        limit: limit(&call.query)?,
        after: call.query.get("listOptions.continue").map(str::to_owned),
    };
    // Filter on part of the name, in either notation.
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
    let name = part.map(|part| if begins { NamePart::Begins(part) } else { NamePart::Within(part) });
    let mask = Mask::of(&call.query);
    pieces::begin(&call, move |registry| {
        let kept = Kept { list: registry.kept(kind(collection.kind), &options)?, name };
        Ok(List::new(format!("{}List", collection.kind), kept, mask))
    })
    .await
}

enum NamePart {
    Begins(String),
    Within(String),
}

/// Kept objects of a list. A page counts also those whose name does not match.
struct Kept {
    list: KeptList,
    name: Option<NamePart>,
}

impl Items for Kept {
    fn next_item(&mut self) -> Result<Option<Value>, RegistryFault> {
        while let Some(object) = self.list.next_item()? {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let wanted = match &self.name {
                None => true,
                Some(NamePart::Begins(part)) => name.starts_with(part),
                Some(NamePart::Within(part)) => name.contains(part),
            };
            if wanted {
                return Ok(Some(object));
            }
        }
        Ok(None)
    }

    fn end(&mut self) -> Result<(Revision, Option<String>), RegistryFault> {
        Ok((self.list.revision(), self.list.next_place()?))
    }
}

async fn create(mut call: Call, collection: &'static Collection) -> Result<Answer, Fault> {
    let mut object = Message::of(&mut call).await?.object(collection.field)?;
    let space = collection.space(&call, Some(&object))?;
    sign(&mut object, &call.caller.name);
    let made = call
        .work(move |registry| {
            // Problems are reported now rather than when a workflow is made from it.
            let object = registry.lint(kind(collection.kind), &space, object)?;
            registry.create(kind(collection.kind), &space, object, &writer())
        })
        .await?;
    Ok(answer::json(&made))
}

async fn lint(mut call: Call, collection: &'static Collection) -> Result<Answer, Fault> {
    let object = Message::of(&mut call).await?.object(collection.field)?;
    let space = collection.space(&call, Some(&object))?;
    let read = call.work(move |registry| registry.lint(kind(collection.kind), &space, object)).await?;
    Ok(answer::json(&read))
}

async fn get(call: Call, collection: &'static Collection) -> Result<Answer, Fault> {
    let (space, name) = (collection.space(&call, None)?, name(&call));
    let mut object = call.work(move |registry| registry.get(kind(collection.kind), &space, &name)).await?;
    Mask::of(&call.query).apply(&mut object);
    Ok(answer::json(&object))
}

async fn update(mut call: Call, collection: &'static Collection) -> Result<Answer, Fault> {
    let object = Message::of(&mut call).await?.object(collection.field)?;
    let (space, name) = (collection.space(&call, Some(&object))?, name(&call));
    let kept = call
        .work(move |registry| {
            let object = registry.lint(kind(collection.kind), &space, object)?;
            registry.replace(kind(collection.kind), &space, &name, object, &writer())
        })
        .await?;
    Ok(answer::json(&kept))
}

async fn delete(call: Call, collection: &'static Collection) -> Result<Answer, Fault> {
    let (space, name, options) = (collection.space(&call, None)?, name(&call), delete_options(&call)?);
    call.work(move |registry| registry.delete(kind(collection.kind), &space, &name, &options)).await?;
    Ok(answer::json(&json!({})))
}

/// Suspends or resumes a schedule.
async fn hold(call: Call, suspend: bool) -> Result<Answer, Fault> {
    let (space, name) = (COLLECTIONS[2].space(&call, None)?, name(&call));
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
