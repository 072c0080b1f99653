//! The binder of gangs: the pods of a job start together or not at all, and what the factors say of its priority becomes
//! the priority of its pods.

use serde_json::{Value, json};

use super::{Question, settings::Settings, templates};

const GROUP: &str = "scheduling.k8s.io/group-name";
const SCHEDULER: &str = "volcano";

pub(super) struct GangSettings {
    /// The PodGroup that all jobs join; by default each job is a group of its own.
    group: Option<String>,
    scheduler: String,
}

impl GangSettings {
    pub(super) fn read(settings: &Settings<'_>) -> Result<Self, String> {
        settings.only(&["podGroup", "schedulerName"])?;
        let scheduler = settings.text("schedulerName")?.unwrap_or(SCHEDULER);
        let group = settings.text("podGroup")?.filter(|group| !group.is_empty());
        Ok(Self { group: group.map(str::to_owned), scheduler: scheduler.to_owned() })
    }
}

pub(super) fn bind(question: &Question<'_>, settings: &GangSettings) -> Result<Value, String> {
    let mut job = question.job.clone();
    let own = match question.header("jobID") {
        "" => job["metadata"]["name"].as_str().unwrap_or("job").to_owned(),
        id => id.to_owned(),
    };
    let group = settings.group.as_deref().unwrap_or(&own);
    // Who waits for others of the job cannot start together with them.
    let roles = job["spec"]["roles"].as_array().into_iter().flatten();
    let waits = |role: &&Value| role["dependsOn"].as_array().is_some_and(|others| !others.is_empty());
    let late: Vec<Value> = roles.filter(waits).map(|role| role["name"].clone()).collect();
    templates::each(&mut job, |role, template| {
        if !late.iter().any(|name| *name == role) {
            templates::texts(template, "annotations")?.entry(GROUP).or_insert_with(|| json!(group));
        }
        let spec = template.get_mut("spec").and_then(Value::as_object_mut).ok_or("a pod template has no spec")?;
        let unset = |name: &Value| name.is_null() || name == "";
        if !settings.scheduler.is_empty() && spec.get("schedulerName").is_none_or(unset) {
            spec.insert("schedulerName".to_owned(), json!(settings.scheduler));
        }
        Ok(())
    })?;
    if let Some(priority) = priority(question.factors)
        && job["spec"]["roles"].is_array()
        && job["spec"]["priority"].is_null()
    {
        job["spec"]["priority"] = json!(priority);
    }
    Ok(job)
}

/// Returns the mean of what the factors advise; advice that is no number counts for nothing.
fn priority(factors: &Value) -> Option<i32> {
    let advice = factors["priority"].as_array()?.iter().filter_map(|factor| match &factor["advice"] {
        Value::String(text) => text.trim().parse::<f64>().ok(),
        Value::Number(number) => number.as_f64(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    });
    let advice: Vec<f64> = advice.filter(|advice| advice.is_finite()).collect();
    if advice.is_empty() {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "there are few")]
    let mean = advice.iter().sum::<f64>() / advice.len() as f64;
    #[expect(clippy::cast_possible_truncation, reason = "the cast keeps to the limits")]
    let rounded = mean.round() as i32;
    Some(rounded)
}
