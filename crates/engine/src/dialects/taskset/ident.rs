//! Names and uids of a TaskSet's pods and control units, exactly as users and tools know them. Names are built here and
//! nowhere else.

use crate::expr::digest::sha256;

/// Returns `{taskset}-{role}-{attempt of the TaskSet}-{attempt of the replica}-{index}`.
pub fn pod_name(set: &str, role: &str, attempt: u32, retried: u32, index: u32) -> String {
    format!("{set}-{role}-{attempt}-{retried}-{index}")
}

/// Returns the name of an attempt's control unit, a ConfigMap.
pub fn unit_name(set: &str, attempt: u32) -> String {
    format!("c-{set}-{attempt}")
}

/// Returns the uid of an attempt's control unit.
pub fn unit_uid(set: &str, attempt: u32) -> String {
    uid(set, &["unit", &attempt.to_string()])
}

/// Returns the host name of a replica among its peers.
pub fn host_name(role: &str, index: u32) -> String {
    format!("{role}-{index}")
}

/// Derives a stable uid for a part of the object with this uid.
pub fn uid(of: &str, words: &[&str]) -> String {
    let hex = sha256(format!("{of}\n{}", words.join("\n")).as_bytes());
    format!("{}-{}-5{}-8{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..32])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_both_attempts() {
        assert_eq!(pod_name("demo", "worker", 1, 2, 0), "demo-worker-1-2-0");
        assert_eq!(unit_name("demo", 2), "c-demo-2");
    }

    #[test]
    fn an_id_is_the_same_for_the_same_words_and_no_others() {
        assert_eq!(uid("u", &["a"]), uid("u", &["a"]));
        assert_ne!(uid("u", &["a"]), uid("u", &["b"]));
        assert_eq!(uid("u", &["a"]).len(), 36);
    }
}
