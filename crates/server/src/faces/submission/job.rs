//! Jobs: submitting, stopping and resuming them, and what is known of them.

mod detail;
mod list;
mod plan;
mod replica;
mod steer;
mod submit;
mod trial;

use axum::http::Method;
use octoflow_control::registry::{FoundRun, job_kind};
use serde_json::{Value, json};

use super::{
    add,
    outcome::{Outcome, Refused},
    schema,
};
use crate::{
    answer::fault::Fault,
    call::Call,
    faces::openapi::operation::{count, flag, text},
    gate::area::Area,
    route::{Need, Table},
};

pub(super) fn routes(table: &mut Table) {
    // A job is named without its namespace, so handlers look whether the caller may see it.
    let shared = Area::Shared;
    let object = || json!({"type": "object"});
    let id = json!({"type": "object", "properties": {"jobID": schema::text()}});
    add(table, Method::POST, "/job", Need::WriteJob, submit::submit)
        .within(shared)
        .about("Submits a job")
        .query(&[flag("dryRun", "Only tell which plugins the job would meet; nothing is stored")])
        .takes(schema::body(json!({
            "userID": schema::text(), "jobName": schema::text(), "jobKind": schema::text(), "header": object(),
            "job": object(), "jobNameSpace": schema::text(), "cluster": schema::text(),
        })))
        .gives(schema::with(id));
    let trial = json!({"type": "object", "properties": {
        "plan": object(), "state": schema::text(), "message": schema::text(), "factors": object(),
        "trace": schema::list(object()), "job": object(), "runs": {"type": ["object", "null"]},
    }});
    add(table, Method::POST, "/job/trial", Need::WriteJob, trial::trial)
        .within(shared)
        .about("Calls the plugins that a job would meet; nothing is stored")
        .takes(schema::body(json!({"job": object(), "features": schema::list(object())})))
        .gives(schema::with(trial));
    let steered = || schema::body(json!({"jobID": schema::text(), "reason": schema::text()}));
    for path in ["/job/stop/{jobID}", "/job/stop"] {
        add(table, Method::PUT, path, Need::WriteJob, steer::stop)
            .within(shared)
            .about("Stops a job")
            .may_take(steered())
            .gives(schema::done());
    }
    for path in ["/job/resume/{jobID}", "/job/resume"] {
        add(table, Method::PUT, path, Need::WriteJob, steer::resume)
            .within(shared)
            .about("Resumes a job that a gate has suspended")
            .query(&[flag("recheck", "Ask the same gate again instead of going on with the next")])
            .may_take(steered())
            .gives(schema::done());
    }
    let mut read = |path: &str, about: &str, handler: fn(Call) -> super::Handled| {
        add(table, Method::GET, path, Need::ReadJob, handler).within(shared).about(about).gives(schema::with(object()));
    };
    read("/job/config/{jobID}", "The job as it was submitted", |call| Box::pin(config(call)));
    read("/job/taskset/{jobID}", "The job as it is now: the TaskSet, once it is translated", |call| {
        Box::pin(taskset(call))
    });
    read("/job/detail/{jobID}", "What became of a job, down to its replicas", |call| Box::pin(detail(call)));
    read("/job/trace/{jobID}", "What each plugin made of a job", |call| Box::pin(trace(call)));
    let filters = [
        text("userID", "Users, separated by commas"),
        text("startAt", "Submitted after this time, in seconds since 1970"),
        text("endAt", "Submitted before this time, in seconds since 1970"),
        text("kind", "The kind of job"),
        text("state", "States, separated by commas"),
        text("name", "The beginning of the job's name"),
        text("cluster", "The cluster"),
    ];
    let paged = [
        count("pageNumber", "The page, counted from 1"),
        count("pageSize", "How many jobs are on a page: 10, 20 or 50"),
        text("order", "`asc` or `desc`, by the time of submission"),
    ];
    add(table, Method::GET, "/job/list", Need::ReadJob, list::list)
        .within(shared)
        .about("A page of jobs")
        .query(&filters)
        .query(&paged)
        .gives(schema::with(schema::list(object())));
    let number = json!({"type": "object", "properties": {"count": {"type": "integer"}}});
    add(table, Method::GET, "/job/count", Need::ReadJob, list::count)
        .within(shared)
        .about("How many jobs there are")
        .query(&filters)
        .gives(schema::with(number));
}

/// Finds a job that the caller may see.
async fn find(call: &Call, id: String) -> Result<FoundRun, Fault> {
    let scope = call.caller.scope.clone();
    call.work(move |registry| registry.job(&id, |namespace| scope.contains(namespace))).await
}

/// Reads a job that the path names. One that is not there has the status of its own.
async fn read(call: &Call) -> Result<Value, Refused> {
    let found = find(call, call.param("jobID").to_owned()).await;
    let found = found.map_err(Refused::Plain)?;
    let object = call.work(move |registry| registry.run_object(&found.row)).await.map_err(Refused::Plain)?;
    debug_assert!(object["kind"] == job_kind().name, "only jobs are found by id");
    Ok(object)
}

async fn config(call: Call) -> Outcome {
    Ok(Some(read(&call).await?["spec"]["job"].take()))
}

async fn taskset(call: Call) -> Outcome {
    Ok(Some(read(&call).await?["status"]["job"].take()))
}

async fn trace(call: Call) -> Outcome {
    let job = read(&call).await?;
    let status = &job["status"];
    Ok(Some(json!({
        "jobID": job["metadata"]["name"], "state": status["phase"], "stage": status["stage"],
        "message": status["message"], "header": status["header"], "factors": status["factors"],
        "trace": status["trace"], "reasons": status["reasons"],
    })))
}

async fn detail(call: Call) -> Outcome {
    let job = read(&call).await?;
    let child = job["status"]["child"].clone();
    let child = match child["name"].as_str() {
        Some(_) => call.work(move |registry| replica::child(registry, &child)).await?,
        None => None,
    };
    Ok(Some(detail::document(&job, child.as_ref())))
}
