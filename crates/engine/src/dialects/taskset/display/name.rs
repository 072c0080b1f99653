//! Names of pods: `{taskset}-{role}-{attempt}-{retry}-{index}`. None of the parts contains a dash.

use serde_json::Value;

use super::{list, text};
use crate::run::view::{MAIN, NoSuchPod, PodNames};

/// Parses and labels the pod names of a TaskSet.
pub(super) struct Names;

impl PodNames for Names {
    /// Returns the replica, and the try unless it is the first.
    fn label(&self, pod: &str) -> String {
        let parts: Vec<&str> = pod.split('-').collect();
        let [_, role, attempt, retry, index] = parts[..] else { return pod.to_owned() };
        let attempt = if attempt == "0" { String::new() } else { format!(" attempt {attempt}") };
        let retry = if retry == "0" { String::new() } else { format!(" retry {retry}") };
        format!("{role}-{index}{attempt}{retry}")
    }

    fn is_pod_of(&self, set: &Value, name: &str) -> bool {
        let parts: Vec<&str> = name.split('-').collect();
        let [of, role, attempt, retry, index] = parts[..] else { return false };
        let number = |text: &str| text.parse::<u32>().is_ok();
        of == text(&set["metadata"], "name") && number(attempt) && number(retry) && has_replica(set, role, index)
    }

    /// Resolves the name of a role, a replica or a pod.
    fn named(&self, set: &Value, wanted: &str) -> Result<String, NoSuchPod> {
        let roles = || list(&set["spec"]["roles"]).iter().map(|role| text(role, "name"));
        let replica = wanted.split_once('-').is_some_and(|(role, index)| has_replica(set, role, index));
        if roles().any(|role| role == wanted) || replica || self.is_pod_of(set, wanted) {
            return Ok(wanted.to_owned());
        }
        let known: Vec<String> = roles().map(str::to_owned).collect();
        let first = known.first().map_or("", String::as_str);
        Err(NoSuchPod {
            message: format!("TaskSet `{}` has no role, replica or pod `{wanted}`", text(&set["metadata"], "name")),
            help: format!("name a role ({}), a replica such as {first}-0, or a pod", known.join(", ")),
            known,
        })
    }

    /// Returns `main` for the container whose end is the replica's.
    fn container(&self, set: &Value, name: &str) -> String {
        let mut first = list(&set["spec"]["roles"]).iter().map(|role| &role["template"]["spec"]["containers"][0]);
        let main = first.any(|container| text(container, "name") == name);
        if main { MAIN.to_owned() } else { name.to_owned() }
    }
}

fn has_replica(set: &Value, role: &str, index: &str) -> bool {
    let spec = list(&set["spec"]["roles"]).iter().find(|known| text(known, "name") == role);
    let count = spec.and_then(|spec| spec["replicas"].as_u64()).unwrap_or_default();
    index.parse::<u64>().is_ok_and(|at| at < count && at.to_string() == index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_is_called_as_its_replica_and_its_try() {
        assert_eq!(Names.label("demo-worker-0-0-1"), "worker-1");
        assert_eq!(Names.label("demo-worker-0-2-1"), "worker-1 retry 2");
        assert_eq!(Names.label("demo-ps-1-0-0"), "ps-0 attempt 1");
        assert_eq!(Names.label("something else"), "something else");
    }
}
