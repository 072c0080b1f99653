//! What manifests of every dialect say to the scheduler: queue, priority class, node constraints, and whether a pod may be
//! preempted. Reads only; the dialects say which manifest wins, and the scheduler decides.

use std::collections::BTreeMap;

use octoflow_model::task::{
    Labels,
    placement::{NodeConstraints, NodeTerm, Operator, Requirement, TaintEffect, Toleration},
};
use serde_json::Value;

/// Labels or annotations that name a queue.
pub(crate) const QUEUE_NAMES: [&str; 3] =
    ["volcano.sh/queue-name", "scheduling.volcano.sh/queue-name", "kueue.x-k8s.io/queue-name"];
/// Labels or annotations with the longest wait before a task is first in its queue.
pub(crate) const LONGEST_WAITS: [&str; 2] = ["sla-waiting-time", "volcano.sh/sla-waiting-time"];
/// Label or annotation that says whether a pod may be preempted.
pub(crate) const PREEMPTABLE: [&str; 1] = ["volcano.sh/preemptable"];

/// Reports whether the scheduler reads this label or annotation.
pub(crate) fn is_read(key: &str) -> bool {
    QUEUE_NAMES.iter().chain(&LONGEST_WAITS).chain(&PREEMPTABLE).any(|known| *known == key)
}

/// What labels and annotations of one object say to the scheduler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    pub(crate) queue: Option<String>,
    pub(crate) preemptable: Option<bool>,
    /// A duration, as written.
    pub(crate) longest_wait: Option<String>,
}

impl Marks {
    /// Reads an object's labels and annotations. A label wins over an annotation.
    pub(crate) fn of(labels: &Labels, annotations: &Labels) -> Self {
        let found = |names: &[&str]| {
            let of = |texts: &Labels| names.iter().find_map(|name| texts.get(*name).cloned());
            of(labels).or_else(|| of(annotations)).filter(|text| !text.trim().is_empty())
        };
        Self {
            queue: found(&QUEUE_NAMES).map(|name| name.trim().to_owned()),
            preemptable: found(&PREEMPTABLE).and_then(|text| text.trim().to_ascii_lowercase().parse().ok()),
            longest_wait: found(&LONGEST_WAITS),
        }
    }

    /// Returns these marks, with what they leave out taken from others.
    pub(crate) fn or(self, others: &Self) -> Self {
        Self {
            queue: self.queue.or_else(|| others.queue.clone()),
            preemptable: self.preemptable.or(others.preemptable),
            longest_wait: self.longest_wait.or_else(|| others.longest_wait.clone()),
        }
    }
}

/// Node constraints as a pod or its template writes them. A field that is left out is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Constraints {
    selector: Option<Labels>,
    affinity: Option<Vec<NodeTerm>>,
    tolerations: Option<Vec<Toleration>>,
}

impl Constraints {
    /// Reads the three fields. What cannot be read constrains nothing: admission has refused or warned about it.
    pub(crate) fn of(selector: Option<&Value>, affinity: Option<&Value>, tolerations: Option<&Value>) -> Self {
        Self {
            selector: selector.and_then(labels).filter(|labels| !labels.is_empty()),
            affinity: affinity.filter(|affinity| !affinity.is_null()).map(terms),
            tolerations: tolerations.and_then(Value::as_array).filter(|list| !list.is_empty()).map(|list| {
                let mut all: Vec<Toleration> = list.iter().map(toleration).collect();
                all.sort_unstable();
                all
            }),
        }
    }

    /// Returns these constraints, with each field that they leave out taken from others.
    pub(crate) fn or(self, others: &Self) -> Self {
        Self {
            selector: self.selector.or_else(|| others.selector.clone()),
            affinity: self.affinity.or_else(|| others.affinity.clone()),
            tolerations: self.tolerations.or_else(|| others.tolerations.clone()),
        }
    }

    pub(crate) fn into_placement(self) -> NodeConstraints {
        NodeConstraints {
            selector: self.selector.unwrap_or_default(),
            affinity: self.affinity.unwrap_or_default(),
            tolerations: self.tolerations.unwrap_or_default(),
        }
    }
}

fn labels(value: &Value) -> Option<Labels> {
    let fields = value.as_object()?;
    Some(fields.iter().map(|(key, value)| (key.clone(), spelled(value))).collect())
}

fn spelled(value: &Value) -> String {
    octoflow_model::scalar::spelled(value.clone())
}

/// Reads the required terms of `affinity.nodeAffinity`. Preferences are not read.
fn terms(affinity: &Value) -> Vec<NodeTerm> {
    let required = &affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let terms = required["nodeSelectorTerms"].as_array().into_iter().flatten();
    let read = |list: &Value| list.as_array().into_iter().flatten().filter_map(requirement).collect();
    terms.map(|term| NodeTerm { labels: read(&term["matchExpressions"]), names: read(&term["matchFields"]) }).collect()
}

fn requirement(value: &Value) -> Option<Requirement> {
    let operator = match value["operator"].as_str()? {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        "Gt" => Operator::Gt,
        "Lt" => Operator::Lt,
        _ => return None,
    };
    let values = value["values"].as_array().into_iter().flatten().map(spelled).collect();
    Some(Requirement { key: value["key"].as_str()?.to_owned(), operator, values })
}

fn toleration(value: &Value) -> Toleration {
    let text = |field: &str| value[field].as_str().unwrap_or_default().to_owned();
    Toleration {
        key: text("key"),
        exists: value["operator"] == "Exists",
        value: text("value"),
        effect: match value["effect"].as_str() {
            Some("NoSchedule") => Some(TaintEffect::NoSchedule),
            Some("PreferNoSchedule") => Some(TaintEffect::PreferNoSchedule),
            Some("NoExecute") => Some(TaintEffect::NoExecute),
            _ => None,
        },
        seconds: value["tolerationSeconds"].as_i64().map(|seconds| u64::try_from(seconds).unwrap_or(0)),
    }
}

/// Returns the variables that tell a task which devices it has: `OCTOFLOW_DEVICES_<RESOURCE>` with their numbers, and for
/// GPUs the variable that CUDA reads.
pub(crate) fn device_variables(devices: &BTreeMap<String, Vec<u32>>) -> Vec<(String, String)> {
    let mut variables = Vec::new();
    for (resource, numbers) in devices {
        let list = numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let name: String =
            resource.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
        if resource == "nvidia.com/gpu" {
            variables.push(("CUDA_VISIBLE_DEVICES".to_owned(), list.clone()));
        }
        variables.push((format!("OCTOFLOW_DEVICES_{name}"), list));
    }
    variables
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn labels_of(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn each_name_of_a_queue_is_read_and_a_label_wins_over_an_annotation() {
        for name in QUEUE_NAMES {
            let one = labels_of(&[(name, "a")]);
            assert_eq!(Marks::of(&one, &Labels::new()).queue.as_deref(), Some("a"));
            assert_eq!(Marks::of(&Labels::new(), &one).queue.as_deref(), Some("a"));
            assert_eq!(Marks::of(&labels_of(&[(QUEUE_NAMES[2], "b")]), &one).queue.as_deref(), Some("b"));
        }
        assert_eq!(Marks::of(&labels_of(&[(QUEUE_NAMES[0], " ")]), &Labels::new()).queue, None);
    }

    #[test]
    fn a_flag_that_is_none_says_nothing() {
        let read = |preemptable: &str| {
            let texts = labels_of(&[(PREEMPTABLE[0], preemptable), (LONGEST_WAITS[1], "90")]);
            let marks = Marks::of(&Labels::new(), &texts);
            (marks.preemptable, marks.longest_wait)
        };
        assert_eq!(read("true"), (Some(true), Some("90".to_owned())));
        assert_eq!((read("False").0, read("perhaps").0), (Some(false), None));
    }

    #[test]
    fn constraints_are_read_as_kubernetes_writes_them_and_each_field_falls_back_alone() {
        let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]},
            {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n"]}]}]}}});
        let tolerations =
            json!([{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}, {"key": "x", "value": "y"}]);
        let own = Constraints::of(Some(&json!({"disk": "ssd", "size": 2})), None, None);
        let other = Constraints::of(Some(&json!({"disk": "hdd"})), Some(&affinity), Some(&tolerations));
        let found = own.or(&other).into_placement();
        assert_eq!(found.selector, labels_of(&[("disk", "ssd"), ("size", "2")]));
        assert_eq!((found.affinity[0].labels.len(), found.affinity[1].names.len()), (1, 1));
        assert!(found.selects("m", &labels_of(&[("disk", "ssd"), ("size", "2")])));
        assert!(!found.selects("n", &labels_of(&[("disk", "ssd"), ("size", "2"), ("zone", "c")])));
        assert_eq!(found.tolerations.len(), 2);
        assert!(Constraints::of(None, Some(&json!({"podAffinity": {}})), None).into_placement().is_empty());
    }

    #[test]
    fn devices_are_told_by_number_and_gpus_as_cuda_reads_them() {
        let devices =
            BTreeMap::from([("nvidia.com/gpu".to_owned(), vec![0, 2]), ("example.org/fpga-x".to_owned(), vec![7])]);
        let told: BTreeMap<String, String> = device_variables(&devices).into_iter().collect();
        assert_eq!(told["CUDA_VISIBLE_DEVICES"], "0,2");
        assert_eq!(told["OCTOFLOW_DEVICES_NVIDIA_COM_GPU"], "0,2");
        assert_eq!(told["OCTOFLOW_DEVICES_EXAMPLE_ORG_FPGA_X"], "7");
        assert_eq!(told.len(), 3);
    }
}
