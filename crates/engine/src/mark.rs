//! What people write on a run of any dialect, and what a run's object says of its being held or ended.
//! None of it changes what the run does.

use octoflow_model::{Fact, Marks, RunFact, Shutdown, Time};
use serde_json::{Value, json};

use crate::input::Refusal;

/// The fact that writes on a run, if what stands there is still what was read; nothing when it stands there already.
pub(crate) fn written(now: &Marks, read: &Marks, write: &Marks, at: Time) -> Result<Option<Fact>, Refusal> {
    // Also when somebody else wrote the very same: two who count must not both count to the same number.
    if now != read {
        return Err(Refusal::Stale);
    }
    Ok((now != write).then(|| Fact::Run(RunFact::Marked { at, marks: Box::new(write.clone()) })))
}

/// Completes the specification of a run's object with how it is held, and how it is being ended.
pub(crate) fn stand(object: &mut Value, suspended: bool, shutdown: Option<Shutdown>) {
    let Some(spec) = object["spec"].as_object_mut() else { return };
    if suspended {
        spec.insert("suspend".to_owned(), json!(true));
    } else if spec.get("suspend") == Some(&Value::Bool(true)) {
        spec.remove("suspend");
    }
    if let Some(how) = shutdown {
        spec.insert("shutdown".to_owned(), json!(how.word()));
    }
}
