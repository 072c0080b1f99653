//! The archive: finished workflows by uid, and their labels.

use axum::http::Method;
use octoflow_control::registry::{Fault as RegistryFault, FoundRun, Registry, SharedText};
use serde_json::json;

use super::{
    kind,
    list::{self, history_filter},
    one, several,
    workflow::{DELETE, delete_options},
};
use crate::{
    answer::{self, Answer, fault::Fault},
    call::Call,
    faces::openapi::{
        operation::{Content, Parameter, text},
        shapes::{empty, message},
    },
    gate::area::Area,
    route::{Need, Table},
};

const NAMESPACE: Parameter = text("namespace", "Only workflows of this namespace");
const NAME: Parameter = text("name", "With the namespace: the workflow of this name, if there is none of the uid");

const ARCHIVE: &str = "/api/v1/archived-workflows";

pub(super) fn routes(table: &mut Table) {
    for path in [ARCHIVE.to_owned(), format!("{ARCHIVE}/")] {
        table
            .get(path, Need::ReadJob, list)
            .within(Area::Query("namespace"))
            .about("Lists workflows that are over, newest first")
            .query(list::OPTIONS)
            .query(list::OF_RUNS)
            .query(&[NAMESPACE])
            .gives(several("Workflow"));
    }
    table
        .get(format!("{ARCHIVE}/{{uid}}"), Need::ReadJob, get)
        .about("Reads a workflow that is over")
        .query(&[NAMESPACE, NAME])
        .gives(one("Workflow"));
    table
        .add(Method::DELETE, format!("{ARCHIVE}/{{uid}}"), Need::WriteJob, delete)
        .about("Deletes a workflow that is over")
        .query(&[NAMESPACE, NAME])
        .query(DELETE)
        .gives(Content::json(empty()));
    let texts = || Content::json(message(json!({"items": {"type": "array", "items": {"type": "string"}}})));
    table
        .get(format!("{ARCHIVE}-label-keys"), Need::ReadJob, keys)
        .within(Area::Query("namespace"))
        .about("The keys of labels that workflows have")
        .query(&[NAMESPACE])
        .gives(texts());
    table
        .get(format!("{ARCHIVE}-label-values"), Need::ReadJob, values)
        .within(Area::Query("namespace"))
        .about("The values workflows have for one label")
        .query(&[NAMESPACE, text("listOptions.labelSelector", "The key of the label; must be given")])
        .gives(texts());
}

async fn list(call: Call) -> Result<Answer, Fault> {
    let mut wanted = history_filter(&call.query, call.query.get("namespace").map(str::to_owned))?;
    wanted.over = true;
    list::answer(&call, wanted).await
}

async fn get(call: Call) -> Result<Answer, Fault> {
    let which = ArchivedRef::of(&call);
    let text = call.work(move |registry| -> Result<SharedText, RegistryFault> {
        let found = which.find(registry)?;
        registry.run_text(&found.row, "argo", |object| answer::encode(&object))
    });
    Ok(answer::shared(text.await?))
}

async fn delete(call: Call) -> Result<Answer, Fault> {
    let (which, options) = (ArchivedRef::of(&call), delete_options(&call)?);
    call.work(move |registry| {
        let row = which.find(registry)?.row;
        registry.delete(kind("Workflow"), &row.namespace, &row.name, &options)
    })
    .await?;
    Ok(answer::json(&json!({})))
}

async fn keys(call: Call) -> Result<Answer, Fault> {
    let namespace = call.query.get("namespace").map(str::to_owned);
    let keys = call.work(move |registry| registry.label_keys(namespace.as_deref())).await?;
    Ok(answer::json(&json!({ "items": keys })))
}

/// Lists the values of a label; the selector is only its key.
async fn values(call: Call) -> Result<Answer, Fault> {
    let namespace = call.query.get("namespace").map(str::to_owned);
    let key = call.query.get("listOptions.labelSelector").map(str::to_owned);
    let key = key.ok_or_else(|| Fault::bad_request("listOptions.labelSelector must be the key of a label"))?;
    let values = call.work(move |registry| registry.label_values(&key, namespace.as_deref())).await?;
    Ok(answer::json(&json!({ "items": values })))
}

/// Archived workflow by uid, or by namespace and name if the uid is unknown.
pub(super) struct ArchivedRef {
    uid: String,
    named: Option<(String, String)>,
}

impl ArchivedRef {
    pub(super) fn of(call: &Call) -> Self {
        let named = call.query.get("namespace").zip(call.query.get("name"));
        Self {
            uid: call.param("uid").to_owned(),
            named: named.map(|(namespace, name)| (namespace.to_owned(), name.to_owned())),
        }
    }

    /// Adds the namespace and name from a request body.
    pub(super) fn or_named(mut self, namespace: Option<String>, name: Option<String>) -> Self {
        self.named = self.named.or(namespace.zip(name));
        self
    }

    /// Finds the workflow. Open workflows are not in the archive.
    pub(super) fn find(&self, registry: &Registry) -> Result<FoundRun, RegistryFault> {
        let missing = || RegistryFault::NotFound { kind: kind("Workflow"), name: self.uid.clone() };
        let found = match (registry.find_run_by_uid(kind("Workflow"), &self.uid), &self.named) {
            (Err(RegistryFault::NotFound { .. }), Some((namespace, name))) => {
                registry.find_run(kind("Workflow"), namespace, name)
            }
            (found, _) => found,
        }?;
        if found.row.archived { Ok(found) } else { Err(missing()) }
    }
}
