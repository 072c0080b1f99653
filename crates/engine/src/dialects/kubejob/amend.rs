//! Changes of an open job: the numbers and limits that Kubernetes lets change. Everything else of its specification is
//! refused, each field with its path.

use octoflow_model::kubejob::{Amendment, KubeJobFact};
use serde_json::{Map, Value, json};

use super::{defaults, program::MAX_PODS, turn::Turn};
use crate::engine::input::Refusal;

/// Fields that change with a command of their own.
const COMMANDS: [&str; 2] = ["suspend", "shutdown"];
/// Fields that may change while a job is open.
const MUTABLE: [&str; 6] = [
    "parallelism",
    "completions",
    "backoffLimit",
    "maxFailedIndexes",
    "activeDeadlineSeconds",
    "ttlSecondsAfterFinished",
];

/// Returns every change of a specification that is not allowed: its path, and why not.
pub(super) fn forbidden(before: &Value, after: &Value) -> Vec<(String, String)> {
    judge(before, after).err().unwrap_or_default()
}

/// Returns the settings of the new specification; on error, every path with a problem.
fn judge(before: &Value, after: &Value) -> Result<Amendment, Vec<(String, String)>> {
    let after = filled(before, after);
    let (none, mut wrong) = (Map::new(), Vec::new());
    let (was, is) = (before.as_object().unwrap_or(&none), after.as_object().unwrap_or(&none));
    let mut names: Vec<&String> = was.keys().chain(is.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let fixed = |name: &&&String| !MUTABLE.contains(&name.as_str()) && !COMMANDS.contains(&name.as_str());
    for name in names.iter().filter(fixed) {
        let null = |value: Option<&Value>| value.is_none_or(Value::is_null);
        if was.get(*name) != is.get(*name) && !(null(was.get(*name)) && null(is.get(*name))) {
            let why = format!("field is immutable: of a Job only {} and suspend can be changed", MUTABLE.join(", "));
            wrong.push((format!("spec.{name}"), format!("{why}; submit another one")));
        }
    }
    let to = Amendment {
        parallelism: small(&after, "parallelism", &mut wrong).unwrap_or(1),
        completions: small(&after, "completions", &mut wrong),
        backoff_limit: small(&after, "backoffLimit", &mut wrong).unwrap_or(defaults::BACKOFF_LIMIT),
        max_failed_indexes: small(&after, "maxFailedIndexes", &mut wrong),
        active_deadline_seconds: number(&after, "activeDeadlineSeconds", &mut wrong),
        ttl_seconds_after_finished: number(&after, "ttlSecondsAfterFinished", &mut wrong),
    };
    impossible(before, &after, &to, &mut wrong);
    if wrong.is_empty() { Ok(to) } else { Err(wrong) }
}

/// Finds what is wrong with the numbers together.
fn impossible(before: &Value, after: &Value, to: &Amendment, wrong: &mut Vec<(String, String)>) {
    let mut refuse = |field: &str, why: String| wrong.push((format!("spec.{field}"), why));
    for (field, count) in [("parallelism", Some(to.parallelism)), ("completions", to.completions)] {
        if count.is_some_and(|count| count > MAX_PODS) {
            refuse(field, format!("must be less than or equal to {MAX_PODS}"));
        }
    }
    if before["completions"].as_u64() != to.completions.map(u64::from) {
        let indexed = after["completionMode"] == "Indexed";
        if !indexed || to.completions != Some(to.parallelism) {
            let why =
                "field is immutable; of an Indexed Job it may change together with parallelism, to the same number";
            refuse("completions", why.to_owned());
        } else if !after["successPolicy"].is_null() {
            refuse("completions", "field is immutable while there is a success policy".to_owned());
        }
    }
    if to.active_deadline_seconds == Some(0) {
        refuse("activeDeadlineSeconds", "must be greater than 0".to_owned());
    }
    if let Some(most) = to.max_failed_indexes {
        if after["backoffLimitPerIndex"].is_null() {
            refuse("maxFailedIndexes", "needs backoffLimitPerIndex".to_owned());
        } else if to.completions.is_some_and(|all| most > all) {
            refuse("maxFailedIndexes", format!("{most} is more than the number of completions"));
        }
    }
}

/// Returns the new specification with its defaults, and with what was added to the old one to identify the job.
fn filled(before: &Value, after: &Value) -> Value {
    let mut object = json!({ "spec": after });
    defaults::fill(&mut object);
    let mut spec = object["spec"].take();
    if spec["selector"].is_null() && !before["selector"].is_null() {
        spec["selector"] = before["selector"].clone();
    }
    if spec["template"].is_object() {
        let added = defaults::identifying_labels(&before["template"]["metadata"]["labels"]);
        if !added.is_empty() && !spec["template"]["metadata"].is_object() {
            spec["template"]["metadata"] = json!({});
        }
        for (key, value) in added {
            let labels = &mut spec["template"]["metadata"]["labels"];
            if labels.is_null() {
                *labels = json!({});
            }
            if let Some(labels) = labels.as_object_mut() {
                labels.entry(key).or_insert(value);
            }
        }
    }
    spec
}

fn number(spec: &Value, field: &str, wrong: &mut Vec<(String, String)>) -> Option<u64> {
    let value = spec.get(field).filter(|value| !value.is_null())?;
    let number = value.as_u64();
    if number.is_none() {
        wrong.push((format!("spec.{field}"), "must be a number from 0 on".to_owned()));
    }
    number
}

fn small(spec: &Value, field: &str, wrong: &mut Vec<(String, String)>) -> Option<u32> {
    let number = number(spec, field, wrong)?;
    let small = u32::try_from(number).ok();
    if small.is_none() {
        wrong.push((format!("spec.{field}"), "is too large".to_owned()));
    }
    small
}

impl Turn<'_> {
    /// Changes what may change to what another specification says.
    pub(super) fn amend(&mut self, after: &Value) -> Result<(), Refusal> {
        let before = super::status::summary_of(self.run, self.run.manifest())["spec"].take();
        let to = judge(&before, after).map_err(|wrong| {
            let told: Vec<String> = wrong.into_iter().map(|(path, why)| format!("{path}: {why}")).collect();
            Refusal::Invalid(told.join("; "))
        })?;
        if to != self.run.state.settings {
            self.decide(KubeJobFact::Amended { at: self.now, to: Box::new(to) });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(given: Value) -> Value {
        let mut object = json!({"spec": given});
        defaults::fill(&mut object);
        defaults::identify(&mut object, "j", "u");
        object["spec"].take()
    }

    fn paths(before: &Value, after: &Value) -> Vec<String> {
        forbidden(before, after).into_iter().map(|(path, _)| path).collect()
    }

    #[test]
    fn what_kubernetes_lets_change_changes_and_all_else_is_refused_at_once() {
        let given = json!({"completions": 4, "template": {"spec": {"restartPolicy": "Never"}}});
        let before = spec(given.clone());
        assert_eq!(paths(&before, &given), [] as [String; 0], "what somebody gives again has no defaults in it");
        let mut good = before.clone();
        for (field, value) in
            [("parallelism", 3), ("backoffLimit", 0), ("activeDeadlineSeconds", 9), ("ttlSecondsAfterFinished", 0)]
        {
            good[field] = json!(value);
        }
        good["suspend"] = json!(true);
        assert_eq!(paths(&before, &good), [] as [String; 0]);
        let mut bad = before.clone();
        bad["completionMode"] = json!("Indexed");
        bad["template"]["spec"]["restartPolicy"] = json!("OnFailure");
        bad["activeDeadlineSeconds"] = json!(0);
        bad["maxFailedIndexes"] = json!(1);
        bad["parallelism"] = json!("two");
        bad["completions"] = json!(9);
        let all = [
            "spec.completionMode",
            "spec.template",
            "spec.parallelism",
            "spec.completions",
            "spec.activeDeadlineSeconds",
            "spec.maxFailedIndexes",
        ];
        assert_eq!(paths(&before, &bad), all);
    }

    #[test]
    fn indexes_come_and_go_together_with_parallelism_only() {
        let elastic = spec(json!({"completions": 2, "parallelism": 2, "completionMode": "Indexed", "template": {}}));
        let mut more = elastic.clone();
        more["completions"] = json!(5);
        assert_eq!(paths(&elastic, &more), ["spec.completions"]);
        more["parallelism"] = json!(5);
        assert_eq!(paths(&elastic, &more), [] as [String; 0]);
        let policy = json!({"rules": [{"succeededCount": 1}]});
        let (mut before, mut after) = (elastic, more);
        (before["successPolicy"], after["successPolicy"]) = (policy.clone(), policy);
        assert_eq!(paths(&before, &after), ["spec.completions"]);
    }
}
