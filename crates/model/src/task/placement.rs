//! Where a task may run and where it went: node constraints as manifests write them, and the assignment that the fact of a
//! launch records. Describes only; the scheduler matches and decides.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

use super::Labels;
use crate::Time;

/// The node of an attempt, and the devices it got there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assignment {
    /// Empty: the machine that the run was submitted on.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub node: String,
    /// Device numbers by resource, such as `nvidia.com/gpu`. Two attempts never hold the same one at a time.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub devices: BTreeMap<String, Vec<u32>>,
}

/// Constraints on the node of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NodeConstraints {
    /// Labels that the node must have.
    #[serde(skip_serializing_if = "Labels::is_empty")]
    pub selector: Labels,
    /// Required node affinity: the node must match one of the terms. Empty: no requirement.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub affinity: Vec<NodeTerm>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
}

/// A term of a node affinity: every requirement must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeTerm {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<Requirement>,
    /// Requirements on `metadata.name`, the only field that Kubernetes allows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<Requirement>,
}

/// A requirement on one label, or on the node's name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requirement {
    pub key: String,
    pub operator: Operator,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
    /// Numbers greater than the one value.
    Gt,
    /// Numbers less than the one value.
    Lt,
}

/// A mark of a node that keeps tasks away which do not tolerate it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Taint {
    pub key: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
    pub effect: TaintEffect,
    /// Since when the node has it; tasks that tolerate it for a time leave so long after it.
    #[serde(default, rename = "timeAdded", with = "rfc3339", skip_serializing_if = "Option::is_none")]
    pub added: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TaintEffect {
    /// No new task that does not tolerate it.
    NoSchedule,
    /// A preference only.
    PreferNoSchedule,
    /// Neither new tasks nor running ones that do not tolerate it.
    NoExecute,
}

/// A taint that a task accepts.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Toleration {
    /// Empty with `exists`: every key.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// True: any value of the key. False: the value must be equal.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub exists: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// `None`: every effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<TaintEffect>,
    /// How long a running task stays in spite of a `NoExecute` taint. `None`: as long as it runs.
    #[serde(rename = "tolerationSeconds", skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
}

/// A time as Kubernetes writes it.
mod rfc3339 {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use crate::Time;

    pub(super) fn serialize<S: Serializer>(time: &Option<Time>, serializer: S) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => serializer.collect_str(time),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Time>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        let parse = |text: String| Time::parse(&text).ok_or_else(|| D::Error::custom(format!("'{text}' is no time")));
        text.map(parse).transpose()
    }
}

impl Taint {
    pub fn new(key: &str, value: &str, effect: TaintEffect) -> Self {
        Self { key: key.to_owned(), value: value.to_owned(), effect, added: None }
    }
}

impl NodeConstraints {
    pub fn is_empty(&self) -> bool {
        self.selector.is_empty() && self.affinity.is_empty() && self.tolerations.is_empty()
    }

    /// Reports whether labels and name of a node satisfy selector and affinity.
    pub fn selects(&self, name: &str, labels: &Labels) -> bool {
        self.selector.iter().all(|(key, value)| labels.get(key) == Some(value))
            && (self.affinity.is_empty() || self.affinity.iter().any(|term| term.matches(name, labels)))
    }

    /// Reports whether a task may be started in spite of this taint. One that would have to leave again is not started.
    pub fn tolerates(&self, taint: &Taint) -> bool {
        let for_good = |one: &Toleration| taint.effect != TaintEffect::NoExecute || one.seconds.is_none();
        taint.effect == TaintEffect::PreferNoSchedule
            || self.tolerations.iter().any(|one| one.covers(taint) && for_good(one))
    }

    /// Returns until when a running task stays in spite of this taint: `None` if it is not concerned or stays for good, and
    /// the time at which the taint was added if it does not tolerate it.
    pub fn stays_until(&self, taint: &Taint) -> Option<Time> {
        if taint.effect != TaintEffect::NoExecute {
            return None;
        }
        let added = taint.added.unwrap_or(Time(i64::MIN));
        let mut covering = self.tolerations.iter().filter(|one| one.covers(taint)).peekable();
        if covering.peek().is_none() {
            return Some(added);
        }
        let seconds = covering.filter_map(|one| one.seconds).min()?;
        Some(added.saturating_add(Duration::from_secs(seconds)))
    }
}

impl NodeTerm {
    /// A term without requirements matches no node, as in Kubernetes.
    fn matches(&self, name: &str, labels: &Labels) -> bool {
        !(self.labels.is_empty() && self.names.is_empty())
            && self.labels.iter().all(|one| one.matches(labels.get(&one.key).map(String::as_str)))
            && self.names.iter().all(|one| one.matches(Some(name)))
    }
}

impl Requirement {
    fn matches(&self, value: Option<&str>) -> bool {
        let listed = || value.is_some_and(|value| self.values.iter().any(|one| one == value));
        let number = |text: &str| text.parse::<i64>().ok();
        let bound = || self.values.first().and_then(|text| number(text));
        match self.operator {
            Operator::In => listed(),
            Operator::NotIn => !listed(),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::Gt => value.and_then(number).zip(bound()).is_some_and(|(value, bound)| value > bound),
            Operator::Lt => value.and_then(number).zip(bound()).is_some_and(|(value, bound)| value < bound),
        }
    }
}

impl Toleration {
    fn covers(&self, taint: &Taint) -> bool {
        let key = if self.key.is_empty() { self.exists } else { self.key == taint.key };
        key && self.effect.is_none_or(|effect| effect == taint.effect) && (self.exists || self.value == taint.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn requires(operator: Operator, values: &[&str]) -> NodeConstraints {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        let term =
            NodeTerm { labels: vec![Requirement { key: "disk".to_owned(), operator, values }], names: Vec::new() };
        NodeConstraints { affinity: vec![term], ..NodeConstraints::default() }
    }

    #[test]
    fn operators_mean_what_kubernetes_means() {
        let node = labels(&[("disk", "20")]);
        let holds = |operator, values: &[&str]| requires(operator, values).selects("n", &node);
        assert!(holds(Operator::In, &["10", "20"]) && !holds(Operator::In, &["10"]));
        assert!(!holds(Operator::NotIn, &["20"]) && requires(Operator::NotIn, &["20"]).selects("n", &Labels::new()));
        assert!(holds(Operator::Exists, &[]) && !holds(Operator::DoesNotExist, &[]));
        assert!(holds(Operator::Gt, &["19"]) && !holds(Operator::Gt, &["20"]) && holds(Operator::Lt, &["21"]));
        assert!(!requires(Operator::Gt, &["1"]).selects("n", &labels(&[("disk", "fast")])));
    }

    #[test]
    fn a_term_without_requirements_matches_nothing_and_one_of_several_terms_is_enough() {
        let mut wanted = requires(Operator::In, &["ssd"]);
        assert!(!wanted.selects("n", &labels(&[("disk", "hdd")])));
        wanted.affinity.push(NodeTerm::default());
        assert!(!wanted.selects("n", &labels(&[("disk", "hdd")])));
        let named =
            Requirement { key: "metadata.name".to_owned(), operator: Operator::In, values: vec!["n".to_owned()] };
        wanted.affinity.push(NodeTerm { labels: Vec::new(), names: vec![named] });
        assert!(wanted.selects("n", &Labels::new()) && !wanted.selects("m", &Labels::new()));
    }

    #[test]
    fn tolerations_cover_by_key_value_and_effect() {
        let taint = Taint::new("gpu", "yes", TaintEffect::NoSchedule);
        let tolerates = |toleration: Toleration| {
            NodeConstraints { tolerations: vec![toleration], ..NodeConstraints::default() }.tolerates(&taint)
        };
        assert!(!NodeConstraints::default().tolerates(&taint));
        assert!(tolerates(Toleration { exists: true, ..Toleration::default() }));
        let equal = Toleration { key: "gpu".to_owned(), value: "yes".to_owned(), ..Toleration::default() };
        assert!(tolerates(equal.clone()));
        assert!(!tolerates(Toleration { value: "no".to_owned(), ..equal.clone() }));
        assert!(!tolerates(Toleration { effect: Some(TaintEffect::NoExecute), ..equal }));
        let soft = Taint { effect: TaintEffect::PreferNoSchedule, ..taint.clone() };
        assert!(NodeConstraints::default().tolerates(&soft));
    }

    #[test]
    fn a_running_task_stays_as_long_as_it_tolerates_a_taint() {
        let added = Time::from_secs(100);
        let taint = Taint { added: Some(added), ..Taint::new("broken", "", TaintEffect::NoExecute) };
        let tolerating = |seconds: &[Option<u64>]| {
            let one = |seconds: &Option<u64>| Toleration { exists: true, seconds: *seconds, ..Toleration::default() };
            NodeConstraints { tolerations: seconds.iter().map(one).collect(), ..NodeConstraints::default() }
        };
        assert_eq!(tolerating(&[]).stays_until(&taint), Some(added));
        assert_eq!(tolerating(&[None]).stays_until(&taint), None);
        assert_eq!(tolerating(&[Some(60), None, Some(30)]).stays_until(&taint), Some(Time::from_secs(130)));
        assert!(tolerating(&[None]).tolerates(&taint) && !tolerating(&[Some(60)]).tolerates(&taint));
        let other = Taint { effect: TaintEffect::NoSchedule, ..taint.clone() };
        assert_eq!(tolerating(&[]).stays_until(&other), None);
        let text = serde_json::to_string(&taint).unwrap();
        assert!(text.contains(r#""timeAdded":"1970-01-01T00:01:40Z""#), "{text}");
        assert_eq!(serde_json::from_str::<Taint>(&text).unwrap(), taint);
        assert!(serde_json::from_str::<Taint>(&text.replace("01:40Z", "soon")).is_err());
    }
}
