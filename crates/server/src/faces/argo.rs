//! Argo Server's face: the REST API under /api/v1 that its clients and Hera use. It maps requests to the registry and
//! results to Argo's formats; it decides nothing about runs itself.

use axum::http::{HeaderValue, Method, StatusCode};
use octoflow_control::registry::{self, Kind, schema_name};
use serde_json::json;

use crate::{
    answer::{Answer, fault::Fault},
    faces::openapi::{
        operation::{Content, refer, text},
        shapes::{self, empty, message},
    },
    route::{Face, Need, Table},
};

mod about;
mod archive;
mod artifact;
mod body;
mod collection;
mod event;
mod list;
mod listing;
mod log;
mod mask;
mod refused;
mod rerun;
mod steer;
mod submit;
mod sync;
mod watch;
mod workflow;

pub(crate) use refused::{REFUSED, refused};

const WORKFLOWS: &str = "/api/v1/workflows";

pub(crate) fn routes() -> Table {
    let mut table = Table::new(Face::Argo);
    about::routes(&mut table);
    workflows(&mut table);
    collection::routes(&mut table);
    rerun::routes(&mut table);
    event::routes(&mut table);
    archive::routes(&mut table);
    sync::routes(&mut table);
    artifact::routes(&mut table);
    table
}

fn workflows(table: &mut Table) {
    let (get, post, put, delete) = (Method::GET, Method::POST, Method::PUT, Method::DELETE);
    let made = || {
        Content::json(message(json!({
            "workflow": refer(&schema_name(kind("Workflow"))), "namespace": {"type": "string"},
            "serverDryRun": {"type": "boolean"},
            "createOptions": message(json!({"dryRun": {"type": "array", "items": {"type": "string"}}})),
        })))
    };
    // A client without a namespace leaves the segment empty and means all of them.
    let here = format!("{WORKFLOWS}/{{namespace}}");
    for all in [WORKFLOWS.to_owned(), format!("{WORKFLOWS}/"), here.clone(), format!("{here}/")] {
        table
            .add(get.clone(), all.clone(), Need::ReadJob, list::list)
            .about("Lists workflows, newest first")
            .query(list::OPTIONS)
            .query(list::OF_RUNS)
            .gives(several("Workflow"));
        if !all.ends_with("}/") {
            table
                .add(post.clone(), all, Need::WriteJob, workflow::create)
                .about("Creates a workflow")
                .takes(made())
                .gives(one("Workflow"));
        }
    }
    table
        .add(post.clone(), format!("{here}/lint"), Need::ReadJob, workflow::lint)
        .about("Judges a workflow and keeps nothing")
        .takes(made())
        .gives(one("Workflow"));
    table
        .add(post, format!("{here}/submit"), Need::WriteJob, submit::submit)
        .about("Creates a workflow from a template or a schedule")
        .takes(Content::json(submit::shape()))
        .gives(one("Workflow"));
    // A workflow may be called `lint` or `submit`.
    for name in ["{name}", "lint", "submit"] {
        table
            .add(get.clone(), format!("{here}/{name}"), Need::ReadJob, workflow::get)
            .about("Reads a workflow")
            .query(&[list::FIELDS, text("uid", "The workflow of this uid, whatever its name is now")])
            .gives(one("Workflow"));
        table
            .add(delete.clone(), format!("{here}/{name}"), Need::WriteJob, workflow::delete)
            .about("Deletes a workflow")
            .query(workflow::DELETE)
            .gives(Content::json(empty()));
    }
    let name = format!("{here}/{{name}}");
    let text_field = || json!({"type": "string"});
    let selected = || message(json!({"nodeFieldSelector": text_field(), "message": text_field()}));
    let set = message(json!({
        "nodeFieldSelector": text_field(), "message": text_field(), "outputParameters": text_field(),
        "phase": {"type": "string", "enum": ["Succeeded", "Failed", "Error"]},
    }));
    table
        .add(put.clone(), format!("{name}/suspend"), Need::WriteJob, steer::suspend)
        .about("Starts nothing new in a workflow until it is resumed")
        .may_take(Content::json(selected()))
        .gives(one("Workflow"));
    table
        .add(put.clone(), format!("{name}/resume"), Need::WriteJob, steer::resume)
        .about("Lets a suspended workflow, or nodes of it, go on")
        .may_take(Content::json(selected()))
        .gives(one("Workflow"));
    table
        .add(put.clone(), format!("{name}/stop"), Need::WriteJob, steer::stop)
        .about("Ends a workflow; its exit handlers still run")
        .may_take(Content::json(selected()))
        .gives(one("Workflow"));
    table
        .add(put.clone(), format!("{name}/set"), Need::WriteJob, steer::set)
        .about("Gives nodes that wait values, a message or an end")
        .takes(Content::json(set))
        .gives(one("Workflow"));
    table
        .add(put, format!("{name}/terminate"), Need::WriteJob, steer::terminate)
        .about("Ends a workflow at once")
        .may_take(Content::json(selected()))
        .gives(one("Workflow"));
    for path in [format!("{name}/log"), format!("{name}/{{pod}}/log")] {
        table
            .get(path, Need::ReadJob, log::log)
            .about("What a workflow wrote, a JSON value a line or server-sent events")
            .query(log::OPTIONS)
            .gives(streamed());
    }
    for events in ["/api/v1/workflow-events/", "/api/v1/workflow-events/{namespace}"] {
        table
            .get(events, Need::ReadJob, watch::workflows)
            .about("What happens to workflows, a JSON value a line or server-sent events")
            .query(watch::OPTIONS)
            .gives(streamed());
    }
    for events in ["/api/v1/stream/events/", "/api/v1/stream/events/{namespace}"] {
        table
            .get(events, Need::ReadJob, watch::events)
            .about("Events as they come, a JSON value a line or server-sent events")
            .query(watch::OPTIONS)
            .gives(streamed());
    }
}

/// Response with one object of a kind.
fn one(name: &str) -> Content {
    Content::json(refer(&schema_name(kind(name))))
}

/// Response with a list of objects of a kind.
fn several(name: &str) -> Content {
    Content::json(shapes::argo_list(kind(name)))
}

/// Response with a stream of JSON values.
fn streamed() -> Content {
    Content::default().or("application/json", None).or("text/event-stream", None)
}

/// Adds the version header that clients compare with their own. Unauthorized callers do not get it.
pub(crate) fn sign(answer: &mut Answer) {
    if answer.status() != StatusCode::UNAUTHORIZED {
        let version = HeaderValue::from_static(concat!("v", env!("CARGO_PKG_VERSION")));
        answer.headers_mut().insert("grpc-metadata-argo-version", version);
    }
}

/// Returns a kind of the registry that this face serves.
pub(crate) fn kind(name: &str) -> &'static Kind {
    registry::kinds::find("argoproj.io", name)
        .or_else(|| registry::kinds::find("", name))
        .unwrap_or_else(|| unreachable!("the table of kinds has no `{name}`"))
}

/// Returns the validated namespace. Names become parts of paths and files elsewhere, so only valid Kubernetes names
/// pass.
fn namespace(call: &crate::call::Call) -> Result<Option<String>, Fault> {
    let Some(name) = call.optional_param("namespace").filter(|name| !name.is_empty()) else { return Ok(None) };
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.len() <= 63 && name.bytes().all(letter) && !name.starts_with('-') && !name.ends_with('-') {
        return Ok(Some(name.to_owned()));
    }
    Err(Fault::bad_request(format!(
        "`{name}` is no namespace: at most 63 lower case letters, digits and `-`, with a letter or digit at both ends"
    )))
}
