//! Argo Server's face: the REST shapes under /api/v1 that its clients and Hera speak.
//! It maps requests to the registry and answers to those shapes; it decides nothing about runs itself.

use axum::http::{HeaderValue, Method, StatusCode};
use octoflow_control::registry::{self, Kind};

use crate::{
    answer::Answer,
    fault::Fault,
    route::{Face, Need, Table},
};

mod about;
mod again;
mod archive;
mod artifact;
mod body;
mod event;
mod list;
mod log;
mod mask;
mod refused;
mod shelf;
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
    shelf::routes(&mut table);
    again::routes(&mut table);
    event::routes(&mut table);
    archive::routes(&mut table);
    sync::routes(&mut table);
    artifact::routes(&mut table);
    table
}

fn workflows(table: &mut Table) {
    let (get, post, put, delete) = (Method::GET, Method::POST, Method::PUT, Method::DELETE);
    // A client that names no namespace leaves the segment empty and means all of them.
    for all in [WORKFLOWS.to_owned(), format!("{WORKFLOWS}/")] {
        table.add(get.clone(), all.clone(), Need::ReadJob, list::list);
        table.add(post.clone(), all, Need::WriteJob, workflow::create);
    }
    let here = format!("{WORKFLOWS}/{{namespace}}");
    table.add(get.clone(), here.clone(), Need::ReadJob, list::list);
    table.add(post.clone(), here.clone(), Need::WriteJob, workflow::create);
    table.add(get.clone(), format!("{here}/"), Need::ReadJob, list::list);
    table.add(post.clone(), format!("{here}/lint"), Need::ReadJob, workflow::lint);
    table.add(post, format!("{here}/submit"), Need::WriteJob, submit::submit);
    // A workflow may well be called `lint` or `submit`.
    for one in ["{name}", "lint", "submit"] {
        table.add(get.clone(), format!("{here}/{one}"), Need::ReadJob, workflow::get);
        table.add(delete.clone(), format!("{here}/{one}"), Need::WriteJob, workflow::delete);
    }
    let one = format!("{here}/{{name}}");
    table.add(put.clone(), format!("{one}/suspend"), Need::WriteJob, steer::suspend);
    table.add(put.clone(), format!("{one}/resume"), Need::WriteJob, steer::resume);
    table.add(put.clone(), format!("{one}/stop"), Need::WriteJob, steer::stop);
    table.add(put.clone(), format!("{one}/set"), Need::WriteJob, steer::set);
    table.add(put, format!("{one}/terminate"), Need::WriteJob, steer::terminate);
    table.get(format!("{one}/log"), Need::ReadJob, log::log);
    table.get(format!("{one}/{{pod}}/log"), Need::ReadJob, log::log);
    for events in ["/api/v1/workflow-events/", "/api/v1/workflow-events/{namespace}"] {
        table.get(events, Need::ReadJob, watch::workflows);
    }
    for events in ["/api/v1/stream/events/", "/api/v1/stream/events/{namespace}"] {
        table.get(events, Need::ReadJob, watch::events);
    }
}

/// Clients compare this with what they are. Whoever is not let in learns nothing.
pub(crate) fn sign(answer: &mut Answer) {
    if answer.status() != StatusCode::UNAUTHORIZED {
        let version = HeaderValue::from_static(concat!("v", env!("CARGO_PKG_VERSION")));
        answer.headers_mut().insert("grpc-metadata-argo-version", version);
    }
}

/// A kind of the registry that this face is about.
fn kind(name: &str) -> &'static Kind {
    registry::find(name).unwrap_or_else(|| unreachable!("the table of kinds has no `{name}`"))
}

/// Names become parts of paths and files elsewhere, so they are what the Kubernetes API takes, and nothing else.
fn namespace(call: &crate::call::Call) -> Result<Option<String>, Fault> {
    let Some(name) = call.maybe("namespace").filter(|name| !name.is_empty()) else { return Ok(None) };
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.len() <= 63 && name.bytes().all(letter) && !name.starts_with('-') && !name.ends_with('-') {
        return Ok(Some(name.to_owned()));
    }
    Err(Fault::bad_request(format!(
        "`{name}` is no namespace: at most 63 lower case letters, digits and `-`, with a letter or digit at both ends"
    )))
}
