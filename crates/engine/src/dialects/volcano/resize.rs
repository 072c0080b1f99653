//! Changes of a running job: the numbers of pods and the priority class. Everything else of its specification is refused,
//! each field with its path.

use octoflow_model::volcano::{Action, Event, JobFact, JobPhase, KillWork, Sizes, TaskSize};
use serde_json::{Value, json};

use super::{
    defaults,
    phase::Asker,
    policy::Cause,
    program::{MAX_PODS, Rule},
    turn::{Turn, contiguous},
};
use crate::engine::input::Refusal;

/// Fields of a job that may change, and fields of its tasks that may.
const OF_JOB: [&str; 3] = ["minAvailable", "priorityClassName", "tasks"];
const OF_TASK: [&str; 2] = ["replicas", "minAvailable"];

/// Returns every change of a specification that is not allowed: its path, and why not.
pub(super) fn forbidden(before: &Value, after: &Value) -> Vec<(String, String)> {
    let after = filled(before, after);
    let mut wrong = Vec::new();
    let only = "of a Job only minAvailable, priorityClassName, suspend, and replicas and minAvailable of tasks can be \
                changed; submit another one";
    each_change(before, &after, &OF_JOB, |field| wrong.push((format!("spec.{field}"), only.to_owned())));
    let (was, is) = (list(before), list(&after));
    if was.len() != is.len() {
        wrong.push(("spec.tasks".to_owned(), "tasks cannot be added or removed; submit another Job".to_owned()));
        return wrong;
    }
    for (at, (was, is)) in was.iter().zip(is).enumerate() {
        each_change(was, is, &OF_TASK, |field| wrong.push((format!("spec.tasks[{at}].{field}"), only.to_owned())));
    }
    wrong.extend(impossible(&after));
    wrong
}

/// Calls back with each field that differs, except those of a list.
fn each_change(before: &Value, after: &Value, except: &[&str], mut changed: impl FnMut(&str)) {
    let none = serde_json::Map::new();
    let (was, is) = (before.as_object().unwrap_or(&none), after.as_object().unwrap_or(&none));
    let mut names: Vec<&String> = was.keys().chain(is.keys()).collect();
    names.sort_unstable();
    names.dedup();
    for name in names.into_iter().filter(|name| !except.contains(&name.as_str())) {
        let null = |value: Option<&Value>| value.is_none_or(Value::is_null);
        if was.get(name) != is.get(name) && !(null(was.get(name)) && null(is.get(name))) {
            changed(name);
        }
    }
}

fn list(spec: &Value) -> &[Value] {
    spec["tasks"].as_array().map_or(&[], Vec::as_slice)
}

/// Returns the new specification with its defaults; the queue may be left out, it is the one it was.
fn filled(before: &Value, after: &Value) -> Value {
    let mut object = json!({ "spec": after });
    defaults::fill(&mut object);
    let mut spec = object["spec"].take();
    if let (Some(fields), Some(was)) = (spec.as_object_mut(), before.as_object()) {
        for name in ["queue", "suspend", "shutdown"] {
            match was.get(name) {
                Some(value) if name != "queue" || !fields.contains_key(name) => {
                    fields.insert(name.to_owned(), value.clone());
                }
                None if name != "queue" => drop(fields.remove(name)),
                Some(_) | None => {}
            }
        }
    }
    spec
}

/// Returns what is wrong with the numbers of pods.
fn impossible(spec: &Value) -> Vec<(String, String)> {
    let number = |value: &Value| value.as_u64().filter(|number| *number <= u64::from(MAX_PODS));
    let mut wrong = Vec::new();
    let mut all = 0;
    for (at, task) in list(spec).iter().enumerate() {
        let path = |field: &str| format!("spec.tasks[{at}].{field}");
        let (Some(replicas), Some(least)) = (number(&task["replicas"]), number(&task["minAvailable"])) else {
            let why = format!("replicas and minAvailable are whole numbers from 0 to {MAX_PODS}");
            wrong.push((path("replicas"), why));
            continue;
        };
        all += replicas;
        if least > replicas {
            wrong.push((path("minAvailable"), format!("{least} is more than the {replicas} replicas of the task")));
        }
        let parts = &task["partitionPolicy"];
        let sum =
            parts["totalPartitions"].as_u64().zip(parts["partitionSize"].as_u64()).map(|(one, other)| one * other);
        if let Some(sum) = sum.filter(|sum| *sum != replicas) {
            wrong.push((path("replicas"), format!("the partitions of the task have {sum} pods")));
        }
    }
    if all > u64::from(MAX_PODS) {
        wrong.push(("spec.tasks".to_owned(), format!("{all} pods in all are more than a Job may have")));
    }
    match number(&spec["minAvailable"]) {
        Some(least) if least <= all => {}
        Some(least) => {
            let why = format!("{least} is more than the {all} pods of all tasks together");
            wrong.push(("spec.minAvailable".to_owned(), why));
        }
        None => wrong.push(("spec.minAvailable".to_owned(), "it is a whole number".to_owned())),
    }
    wrong
}

impl Turn<'_> {
    /// Changes the numbers of pods to those of another specification. The highest indices of a task go, or new ones come.
    pub(super) fn amend(&mut self, after: &Value) -> Result<(), Refusal> {
        let before = super::status::summary_of(self.run, self.run.manifest())["spec"].take();
        if let Some((path, why)) = forbidden(&before, after).into_iter().next() {
            return Err(Refusal::Invalid(format!("{path}: {why}")));
        }
        let sizes = self.sizes(&filled(&before, after));
        // Tasks that had more pods before keep the numbers of those.
        self.run.program.resized(&sizes).map_err(|why| Refusal::Invalid(format!("spec.tasks: {why}")))?;
        let spec = &self.run.program.job.spec;
        let same = spec
            .tasks
            .iter()
            .zip(&sizes.tasks)
            .all(|(task, size)| task.replicas == size.replicas && task.min_available == Some(size.min_available));
        if same && spec.min_available == Some(sizes.min_available) && spec.priority_class_name == sizes.class {
            return Ok(());
        }
        self.decide(JobFact::Resized(Box::new(sizes)));
        let surplus: Vec<u32> = (0..self.run.program.slots).filter(|pod| self.run.program.is_surplus(*pod)).collect();
        let waiting: Vec<u32> =
            surplus.iter().copied().filter(|pod| self.run.state.delayed.contains_key(pod)).collect();
        for pod in waiting {
            self.decide(JobFact::DelayEnded { pod, at: self.now, called_off: true });
        }
        let why = "the task has become smaller".to_owned();
        self.kill(KillWork { pods: contiguous(&surplus), keep_finished: false, why, calls_off: None });
        self.raise_updated();
        Ok(())
    }

    fn sizes(&self, spec: &Value) -> Sizes {
        let number = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok()).unwrap_or(0);
        let size = |task: &Value| TaskSize {
            replicas: number(&task["replicas"]),
            min_available: number(&task["minAvailable"]),
        };
        Sizes {
            at: self.now,
            min_available: number(&spec["minAvailable"]),
            class: spec["priorityClassName"].as_str().filter(|class| !class.is_empty()).map(str::to_owned),
            tasks: list(spec).iter().map(size).collect(),
        }
    }

    /// Does what the policies of the job say about its change. It is about no pod, so only actions on the whole count.
    fn raise_updated(&mut self) {
        if !matches!(self.run.state.phase, JobPhase::Pending | JobPhase::Running | JobPhase::Restarting) {
            return;
        }
        let meant = |rule: &&Rule| rule.events.contains(&Event::JobUpdated) || rule.events.contains(&Event::Any);
        let Some(action) = self.run.program.policies.iter().find(meant).and_then(|rule| rule.action) else { return };
        if !matches!(action, Action::RestartTask | Action::RestartPod | Action::RestartPartition) {
            self.act(action, None, Asker::Policy, &Cause::Event(Event::JobUpdated));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> Value {
        let mut object = json!({"spec": {"queue": "q", "tasks": [{"name": "a", "replicas": 3, "template": {}}]}});
        defaults::fill(&mut object);
        object["spec"].take()
    }

    fn paths(after: &Value) -> Vec<String> {
        forbidden(&spec(), after).into_iter().map(|(path, _)| path).collect()
    }

    #[test]
    fn only_numbers_of_pods_and_the_class_change() {
        let mut good = spec();
        good["tasks"][0]["replicas"] = json!(5);
        good["minAvailable"] = json!(4);
        good["priorityClassName"] = json!("high");
        assert_eq!(paths(&good), [] as [String; 0]);
        // What somebody applies again has no defaults in it.
        assert_eq!(paths(&json!({"tasks": [{"name": "a", "replicas": 3, "template": {}}]})), [] as [String; 0]);
        let mut bad = spec();
        bad["maxRetry"] = json!(9);
        bad["tasks"][0]["template"] = json!({"spec": {}});
        bad["tasks"][0]["replicas"] = json!(2);
        assert_eq!(
            paths(&bad),
            ["spec.maxRetry", "spec.tasks[0].template", "spec.tasks[0].minAvailable", "spec.minAvailable"]
        );
        let mut more = spec();
        more["tasks"] = json!([more["tasks"][0], {"name": "b"}]);
        assert_eq!(paths(&more), ["spec.tasks"]);
    }
}
