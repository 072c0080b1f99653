//! A trial of a job: its plugins are called as they would be, with the credentials of their features. Nothing is stored.

use octoflow_control::registry::{Fault as RegistryFault, trial_table};
use serde_json::{Value, json};

use super::{
    super::{
        feature,
        outcome::{Outcome, Refused},
    },
    plan, submit,
};
use crate::{answer::fault::Fault, call::Call, route::Need};

/// Takes `job`, a submission, and maybe `features` that are tried instead of those of the server.
pub(super) async fn trial(mut call: Call) -> Outcome {
    let mut body = call.json().await?;
    if let Some(unknown) =
        body.as_object().and_then(|body| body.keys().find(|key| !["job", "features"].contains(&key.as_str())))
    {
        return Err(Refused::wrong(format!("a trial has no `{unknown}`; it has job, features")));
    }
    let features = given(&call, body["features"].take())?;
    let submit::Submission { namespace, object } = submit::read(body["job"].take())?;
    submit::check_scope(&call, &namespace)?;
    let judged = plan::judged(&call, namespace, object).await?;
    let tried = call.work(move |registry| -> Result<Value, RegistryFault> {
        let table = match &features {
            Some(features) => trial_table(features)?,
            None => registry.plugins()?,
        };
        let plan = plan::of(&table, &judged);
        let came = registry.try_job(judged, table)?;
        Ok(json!({
            "plan": plan, "state": came["state"], "message": came["message"], "factors": came["factors"],
            "trace": came["trace"], "job": came["job"], "runs": came["runs"],
        }))
    });
    Ok(Some(tried.await?))
}

/// Reads the features of a trial. Whoever names addresses that are called needs the right to register them.
fn given(call: &Call, features: Value) -> Result<Option<Vec<(String, Value)>>, Refused> {
    let features = match features {
        Value::Null => return Ok(None),
        Value::Array(features) => features,
        _ => return Err(Refused::wrong("features is a list of features")),
    };
    if let Some(missing) = Need::WriteFeature.missing(call.caller.privileges) {
        let name = &call.caller.name;
        let text = format!("the token of `{name}` lacks the privilege {missing}, which features of one's own need");
        return Err(Fault::forbidden(text).into());
    }
    features.into_iter().map(feature::read).collect::<Result<_, _>>().map(Some)
}
