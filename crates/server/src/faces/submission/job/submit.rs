//! Reading what is submitted, and handing it in.

use octoflow_control::registry::{WriteOptions, job_kind, new_job_id};
use octoflow_model::{meta::DEFAULT_NAMESPACE, plugin::API_VERSION};
use serde_json::{Value, json};

use super::{
    super::outcome::{Outcome, Refused, texts},
    plan,
};
use crate::{answer::fault::Fault, call::Call};

/// Fields of a submission.
const FIELDS: [&str; 7] = ["userID", "jobName", "jobKind", "header", "job", "jobNameSpace", "cluster"];
/// The longest text of a submission beside the job itself; lists are found by them.
const MAX_TEXT: usize = 1024;
const TASK_SET: &str = "taskset";

/// A job as it is submitted.
pub(super) struct Submission {
    pub namespace: String,
    pub object: Value,
}

pub(super) async fn submit(mut call: Call) -> Outcome {
    let body = call.json().await?;
    let Submission { namespace, object } = read(body)?;
    check_scope(&call, &namespace)?;
    if call.query.flag("dryRun") {
        return plan::plan(&call, namespace, object).await.map(Some);
    }
    let (claim, manager) = (call.claim()?, "octoflow-v1".to_owned());
    let options = WriteOptions { claim, manager, ..WriteOptions::default() };
    let made = call.create(job_kind(), namespace, object, options).await?.object;
    Ok(Some(json!({"jobID": made["metadata"]["name"]})))
}

/// Checks whether the caller may submit jobs of this namespace.
pub(super) fn check_scope(call: &Call, namespace: &str) -> Result<(), Refused> {
    let (name, scope) = (&call.caller.name, &call.caller.scope);
    if scope.contains(namespace) {
        return Ok(());
    }
    Err(Fault::forbidden(format!("the token of `{name}` is for {scope} only, not for {namespace}")).into())
}

/// Reads a submission into the object of a job.
pub(super) fn read(body: Value) -> Result<Submission, Refused> {
    let Value::Object(mut fields) = body else {
        return Err(Refused::lacks("a submission is a JSON object with userID, jobName, jobKind and job"));
    };
    fields.retain(|_, value| !value.is_null());
    if let Some(unknown) = fields.keys().find(|name| !FIELDS.contains(&name.as_str())) {
        return Err(Refused::wrong(format!("a submission has no `{unknown}`; it has {}", FIELDS.join(", "))));
    }
    let body = Value::Object(fields);
    if body["job"].is_null() {
        let lacking = ["userID", "jobName", "jobKind"].into_iter().filter(|name| body[*name].is_null());
        let lacking: Vec<&str> = lacking.chain(["job"]).collect();
        return Err(Refused::lacks(format!("{} must be given", lacking.join(", "))));
    }
    let [user, name, kind] = texts(&body, ["userID", "jobName", "jobKind"])?;
    let optional = |field: &str| match &body[field] {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text.clone()),
        _ => Err(Refused::wrong(format!("{field} is a text"))),
    };
    let (space, cluster) = (optional("jobNameSpace")?, optional("cluster")?);
    for (field, text) in [("userID", &user), ("jobName", &name), ("jobKind", &kind), ("cluster", &cluster)] {
        if text.len() > MAX_TEXT {
            return Err(Refused::wrong(format!("{field} has {} bytes; it may have {MAX_TEXT}", text.len())));
        }
    }
    let job = &body["job"];
    if !job.is_object() || job["kind"].as_str().is_none_or(str::is_empty) {
        return Err(Refused::wrong("job is an object with a kind"));
    }
    let header = match &body["header"] {
        Value::Null => json!({}),
        header if header.is_object() => header.clone(),
        _ => return Err(Refused::wrong("header is an object")),
    };
    let namespace = if space.is_empty() { DEFAULT_NAMESPACE.to_owned() } else { space };
    let id = id(job)?;
    let object = json!({
        "apiVersion": API_VERSION, "kind": job_kind().name,
        "metadata": {"name": id, "namespace": namespace},
        "spec": {"userID": user, "jobName": name, "jobKind": kind, "header": header, "job": job, "cluster": cluster},
    });
    Ok(Submission { namespace, object })
}

/// Returns the id of a job: the name of a TaskSet, else what the job names, else a new one.
fn id(job: &Value) -> Result<String, Refused> {
    let is_task_set = job["kind"].as_str().is_some_and(|kind| kind.eq_ignore_ascii_case(TASK_SET));
    let own = if is_task_set { &job["metadata"]["name"] } else { &Value::Null };
    for (given, field) in [(own, "job.metadata.name"), (&job["jobID"], "job.jobID")] {
        match given {
            Value::Null => {}
            Value::String(id) if id.is_empty() => {}
            Value::String(id) => return Ok(id.clone()),
            _ => return Err(Refused::wrong(format!("{field} is a text"))),
        }
    }
    new_job_id().map_err(|error| Refused::Plain(error.into()))
}
