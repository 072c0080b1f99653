//! Names and uids of a job's pods and of its PodGroup. Names are built here and nowhere else.

use crate::run::view;

/// Returns `{job}-{task}-{index}`: the same after every restart.
pub fn pod_name(job: &str, task: &str, index: u32) -> String {
    format!("{job}-{task}-{index}")
}

/// Returns the name of a pod among those of its job, such as `worker-1`.
pub fn short_name(task: &str, index: u32) -> String {
    format!("{task}-{index}")
}

/// Returns the name of an earlier try's log: a pod keeps its name, so the logs of its earlier tries need others.
pub fn earlier_log(pod: &str, number: usize) -> String {
    format!("{pod}.{number}")
}

/// Returns the pod that a log is of, and the number of the try if it is an earlier one.
pub fn log_of(name: &str) -> (&str, Option<&str>) {
    match name.rsplit_once('.') {
        // The name of a job may have dots, and so may not end in an index after one.
        Some((pod, number)) if is_number(number) && pod.rsplit('-').next().is_some_and(is_number) => {
            (pod, Some(number))
        }
        _ => (name, None),
    }
}

/// Returns the name of the job's PodGroup.
pub fn group_name(job: &str, uid: &str) -> String {
    format!("{job}-{uid}")
}

/// Returns the uid of a pod; a pod that is created again has another one.
pub fn pod_uid(job_uid: &str, pod: &str, created: u32) -> String {
    view::uid(&[job_uid, pod, &created.to_string()])
}

/// Returns the name of the claim of a volume that names none.
pub fn claim_name(job: &str, uid: &str, index: usize) -> String {
    let id = view::uid(&[uid, "claim", &index.to_string()]);
    format!("{job}-pvc-{}", &id[..8])
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_of_earlier_tries_are_told_from_pods() {
        assert_eq!(log_of("job-a-0"), ("job-a-0", None));
        assert_eq!(log_of(&earlier_log("job-a-0", 2)), ("job-a-0", Some("2")));
        assert_eq!(log_of("v1.2-a-0"), ("v1.2-a-0", None));
        assert_eq!(log_of("v1.2-a-0.11"), ("v1.2-a-0", Some("11")));
    }
}
