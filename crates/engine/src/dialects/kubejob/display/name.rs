//! Names of pods: `{job}-{suffix}` or `{job}-{index}-{suffix}`, and of the logs of their earlier tries. A name may be
//! written without the job's, and an index alone means all pods that had it.

use serde_json::Value;

use super::{pods, text};
use crate::{
    dialects::kubejob::ident,
    run::view::{MAIN, NoSuchPod, PodNames},
};

/// Parses and labels the pod names of a job.
pub(super) struct Names;

/// Reports whether a name means a log of the job: its own name, its pod's, its pod's without the job's, or its index.
pub(super) fn means(job: &str, name: &str, log: &str) -> bool {
    let (pod, _) = ident::log_of(log);
    let short = ident::short_name(job, pod);
    name == log || name == pod || name == short || short.split_once('-').is_some_and(|(index, _)| index == name)
}

/// Reports whether a name may mean a log, without knowing its job.
pub(super) fn may_mean(name: &str, log: &str) -> bool {
    let (pod, _) = ident::log_of(log);
    let indexed = pod.rsplit_once('-').map_or(pod, |(before, _)| before);
    let ends = |whole: &str| whole.strip_suffix(name).is_some_and(|before| before.ends_with('-'));
    name == log || name == pod || ends(pod) || ends(indexed)
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
        pods(job).any(|known| text(known, "name") == pod)
    }

    /// Resolves a pod's name in full or without its job's, or an index.
    fn named(&self, job: &Value, wanted: &str) -> Result<String, NoSuchPod> {
        let own = text(&job["metadata"], "name");
        if pods(job).any(|pod| means(own, wanted, text(pod, "name"))) || self.is_pod_of(job, wanted) {
            return Ok(wanted.to_owned());
        }
        let known: Vec<String> = pods(job).map(|pod| text(pod, "name").to_owned()).take(20).collect();
        Err(NoSuchPod {
            message: format!("Job `{own}` has no pod `{wanted}`"),
            help: match known.is_empty() {
                true => "it has no pods so far".to_owned(),
                false => format!("name one of its pods: {}", known.join(", ")),
            },
            known,
        })
    }

    /// Returns `main` for the container whose end is shown for the pod.
    fn container(&self, job: &Value, name: &str) -> String {
        if super::main_container(job) == name { MAIN.to_owned() } else { name.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_log_is_found_by_its_pod_its_short_name_and_its_index() {
        let pod = ident::pod_name("my-job", Some(12), 7, 8);
        let short = ident::short_name("my-job", &pod).to_owned();
        for log in [pod.clone(), ident::earlier_log(&pod, 0)] {
            for name in [log.as_str(), &pod, &short, "12"] {
                assert!(means("my-job", name, &log) && may_mean(name, &log), "{name}");
            }
            for name in ["2", "1", "my-job", "job"] {
                assert!(!means("my-job", name, &log), "{name}");
            }
        }
        assert!(!may_mean("other", &pod));
    }

    #[test]
    fn names_are_resolved_by_the_object() {
        let pod = ident::pod_name("j", Some(1), 7, 8);
        let job = json!({"metadata": {"name": "j"}, "status": {"pods": [{"name": pod}]}});
        for good in [pod.as_str(), ident::short_name("j", &pod), "1", &ident::earlier_log(&pod, 2)] {
            assert!(Names.named(&job, good).is_ok(), "{good}");
        }
        for bad in ["0", "j", "x"] {
            assert!(Names.named(&job, bad).is_err(), "{bad}");
        }
        assert_eq!(Names.label(&ident::earlier_log(&pod, 3)), format!("{pod} try 3"));
    }
}
