//! Names and uids of a job's pods. Names are built here and nowhere else; nothing is drawn: the suffix of a name follows
//! from the uid of the job and the number of the pod.

use crate::run::view;

/// Letters and digits of generated names: those that cannot form words.
const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_LENGTH: usize = 5;
/// Number of different suffixes.
const SUFFIXES: u64 = 27u64.pow(SUFFIX_LENGTH as u32);
/// No multiple of 3, so that different numbers have different suffixes.
const STRIDE: u64 = 9_184_369;

/// Longest name of a pod without its suffix, so that the whole fits into a label.
const MAX_BASE: usize = 63 - 1 - SUFFIX_LENGTH;

/// Returns what the suffixes of a job's pods are computed from.
pub fn seed(job_uid: &str) -> u32 {
    let id = view::uid(&[job_uid, "pods"]);
    u32::from_str_radix(&id[..8], 16).unwrap_or_default()
}

/// Returns `{job}-{suffix}`, or `{job}-{index}-{suffix}` for a pod with an index.
pub fn pod_name(job: &str, index: Option<u32>, seed: u32, number: u32) -> String {
    let base = match index {
        None => cut(job, MAX_BASE).to_owned(),
        Some(index) => {
            let tail = format!("-{index}");
            format!("{}{tail}", cut(job, MAX_BASE - tail.len()))
        }
    };
    format!("{base}-{}", suffix(seed, number))
}

/// Returns the name by which a pod with an index is found: `{job}-{index}`.
pub fn host_name(job: &str, index: u32) -> String {
    let tail = format!("-{index}");
    format!("{}{tail}", cut(job, 63 - tail.len()))
}

/// Returns the name of a pod among those of its job.
pub fn short_name<'n>(job: &str, pod: &'n str) -> &'n str {
    pod.strip_prefix(job).and_then(|rest| rest.strip_prefix('-')).unwrap_or(pod)
}

/// Returns the name of an earlier try's log: a pod keeps its name when its containers are started again.
pub fn earlier_log(pod: &str, number: u32) -> String {
    format!("{pod}.{number}")
}

/// Returns the pod that a log is of, and the number of the try if it is an earlier one.
pub fn log_of(name: &str) -> (&str, Option<&str>) {
    match name.rsplit_once('.') {
        // The name of a job may have dots; a suffix has none, and is no number.
        Some((pod, number)) if is_number(number) && pod.rsplit('-').next().is_some_and(is_suffix) => {
            (pod, Some(number))
        }
        _ => (name, None),
    }
}

pub fn pod_uid(job_uid: &str, number: u32) -> String {
    view::uid(&[job_uid, "pod", &number.to_string()])
}

fn suffix(seed: u32, number: u32) -> String {
    let mut rest = (u64::from(seed) + u64::from(number) * STRIDE) % SUFFIXES;
    let mut letters = [0u8; SUFFIX_LENGTH];
    for letter in &mut letters {
        *letter = LETTERS[(rest % 27) as usize];
        rest /= 27;
    }
    letters.iter().copied().map(char::from).collect()
}

fn cut(text: &str, most: usize) -> &str {
    // Names are ASCII.
    text.get(..most).unwrap_or(text)
}

fn is_suffix(text: &str) -> bool {
    text.len() == SUFFIX_LENGTH && text.bytes().all(|byte| LETTERS.contains(&byte))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn pods_of_a_job_never_share_a_name() {
        let seed = seed("some-uid");
        let names: HashSet<String> = (0..100_000).map(|number| pod_name("job", None, seed, number)).collect();
        assert_eq!(names.len(), 100_000);
        assert_ne!(pod_name("job", None, seed, 0), pod_name("job", None, super::seed("other-uid"), 0));
    }

    #[test]
    fn names_fit_into_labels() {
        let long = "j".repeat(63);
        assert_eq!(pod_name(&long, None, 1, 2).len(), 63);
        assert_eq!(pod_name(&long, Some(99_999), 1, 2).len(), 63);
        assert_eq!(host_name(&long, 12).len(), 63);
        assert_eq!(host_name("job", 3), "job-3");
    }

    #[test]
    fn logs_of_earlier_tries_are_told_from_pods() {
        let pod = pod_name("v1.2", Some(4), 7, 8);
        assert_eq!(log_of(&pod), (pod.as_str(), None));
        assert_eq!(log_of(&earlier_log(&pod, 3)), (pod.as_str(), Some("3")));
        assert_eq!(short_name("v1.2", &pod), &pod[5..]);
    }
}
