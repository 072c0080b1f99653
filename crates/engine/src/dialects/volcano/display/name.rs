//! Names of pods: `{job}-{task}-{index}`, and of the logs of their earlier tries. Jobs and tasks may have dashes in their
//! names, so only the object tells where one ends.

use serde_json::Value;

use super::{list, text};
use crate::{
    dialects::volcano::ident,
    run::view::{MAIN, NoSuchPod, PodNames},
};

/// Parses and labels the pod names of a job.
pub(super) struct Names;

/// Reports whether a name means a log of the job: its own name, its pod's, its short name or its task's.
pub(super) fn means(job: &str, name: &str, log: &str) -> bool {
    let (pod, _) = ident::log_of(log);
    let Some(short) = pod.strip_prefix(job).and_then(|rest| rest.strip_prefix('-')) else { return name == log };
    let task = short.rsplit_once('-').map_or(short, |(task, _)| task);
    name == log || name == short || name == task
}

/// Reports whether a name may mean a log, without knowing its job.
pub(super) fn may_mean(name: &str, log: &str) -> bool {
    let (pod, _) = ident::log_of(log);
    let task = pod.rsplit_once('-').map_or(pod, |(task, _)| task);
    let ends = |whole: &str| whole.strip_suffix(name).is_some_and(|before| before.ends_with('-'));
    name == log || ends(pod) || ends(task)
}

impl PodNames for Names {
    fn label(&self, log: &str) -> String {
        match ident::log_of(log) {
            (pod, Some(number)) => format!("{pod} try {number}"),
            (pod, None) => pod.to_owned(),
        }
    }

    fn is_pod_of(&self, job: &Value, name: &str) -> bool {
        let (pod, _) = ident::log_of(name);
        let rest = pod.strip_prefix(text(&job["metadata"], "name")).and_then(|rest| rest.strip_prefix('-'));
        rest.is_some_and(|short| is_pod(job, short))
    }

    /// Resolves the name of a task, or of a pod in full or without its job's.
    fn named(&self, job: &Value, wanted: &str) -> Result<String, NoSuchPod> {
        let tasks = || list(&job["spec"]["tasks"]).iter().map(|task| text(task, "name"));
        if tasks().any(|task| task == wanted) || is_pod(job, wanted) || self.is_pod_of(job, wanted) {
            return Ok(wanted.to_owned());
        }
        let known: Vec<String> = tasks().map(str::to_owned).collect();
        let first = known.first().map_or("", String::as_str);
        Err(NoSuchPod {
            message: format!("Job `{}` has no task or pod `{wanted}`", text(&job["metadata"], "name")),
            help: format!("name a task ({}) or a pod such as {first}-0", known.join(", ")),
            known,
        })
    }

    /// Returns `main` for the container whose end is the pod's.
    fn container(&self, job: &Value, name: &str) -> String {
        let mut first = list(&job["spec"]["tasks"]).iter().map(super::main_container);
        if first.any(|container| container == name) { MAIN.to_owned() } else { name.to_owned() }
    }
}

/// Reports whether there is a pod of this short name.
fn is_pod(job: &Value, short: &str) -> bool {
    let Some((task, index)) = short.rsplit_once('-') else { return false };
    let spec = list(&job["spec"]["tasks"]).iter().find(|known| text(known, "name") == task);
    let count = spec.and_then(|spec| spec["replicas"].as_u64()).unwrap_or_default();
    index.parse::<u64>().is_ok_and(|at| at < count && at.to_string() == index)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_log_is_found_by_its_pod_its_short_name_and_its_task() {
        for log in ["my-job-big-worker-1", "my-job-big-worker-1.0"] {
            for name in [log, "big-worker-1", "big-worker"] {
                assert!(means("my-job", name, log) && may_mean(name, log), "{name}");
            }
            for name in ["worker-1", "big", "my-job", "1"] {
                assert!(!means("my-job", name, log), "{name}");
            }
        }
        assert!(!may_mean("other", "my-job-big-worker-1"));
    }

    #[test]
    fn names_are_resolved_by_the_object() {
        let job = json!({"metadata": {"name": "my-job"}, "spec": {"tasks": [{"name": "a-b", "replicas": 2}]}});
        for good in ["a-b", "a-b-1", "my-job-a-b-0", "my-job-a-b-0.3"] {
            assert!(Names.named(&job, good).is_ok(), "{good}");
        }
        for bad in ["a", "a-b-2", "my-job", "a-b-01"] {
            assert!(Names.named(&job, bad).is_err(), "{bad}");
        }
        assert_eq!(Names.label("my-job-a-b-0.3"), "my-job-a-b-0 try 3");
    }
}
