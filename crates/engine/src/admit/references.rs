//! The queues and PriorityClasses that a manifest names, wherever it names them: each must be there and take work. It knows
//! no dialect: labels and annotations of runs and pods have the same names in all of them.

use std::time::Duration;

use octoflow_manifest::{Path, Problem};
use octoflow_model::{meta::DEFAULT_NAMESPACE, submission::Stored};
use serde_json::Value;

use crate::{
    admit::{
        Catalog, code,
        shape::{MAX_PROBLEMS, short},
    },
    expr::{calendar, nearest},
    kinds::{
        ErrorsAndWarnings,
        scheduling::{QUEUE_NAMES, QueueState, named_queue},
    },
    pod::demand::LONGEST_WAITS,
    schedule::spec::DEFAULT,
};

/// The annotation of a pod that names its PodGroup.
const GROUP_NAME: &str = "scheduling.k8s.io/group-name";

/// Fields with the name of a PriorityClass.
const CLASS_FIELDS: [&str; 2] = ["priorityClassName", "podPriorityClassName"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named<'v> {
    Queue(&'v str),
    Class(&'v str),
    /// The longest wait of a run or pod.
    LongestWait(&'v str),
}

/// Checks everything that the object names, and that the templates name which it refers to.
pub(super) fn check(object: &Value, stored: Option<&Stored>, others: &dyn Catalog) -> ErrorsAndWarnings {
    let (mut problems, mut warnings) = (Vec::new(), Vec::new());
    let own = references(object);
    let mut told = |path: Path, named: Named<'_>| {
        if problems.len() + warnings.len() < MAX_PROBLEMS {
            match judge(named, others) {
                Some(Judgement::Refused(problem)) => problems.push((*problem).path(path)),
                Some(Judgement::NotLoaded(message)) => {
                    warnings.push(Problem::warning(code::NOT_LOADED, message).path(path));
                }
                Some(Judgement::Ignored(message)) => {
                    warnings.push(Problem::warning(code::DURATION, message).path(path));
                }
                None => {}
            }
        }
    };
    let templates = stored.into_iter().flat_map(|stored| stored.spec.iter().chain(stored.templates.values()));
    let mut elsewhere: Vec<Named<'_>> = templates.flat_map(references).map(|(_, named)| named).collect();
    elsewhere.retain(|named| own.iter().all(|(_, other)| other != named));
    for (path, named) in own.iter().cloned() {
        told(path, named);
    }
    let (metadata, namespace) = (&object["metadata"], object["metadata"]["namespace"].as_str());
    let inherited = others.queue_of_namespace(namespace.unwrap_or(DEFAULT_NAMESPACE));
    if let Some(queue) = inherited.filter(|_| named_queue(metadata).is_none() && !object["spec"]["queue"].is_string()) {
        told(Path::root().join("metadata").join("namespace"), Named::Queue(&queue));
    }
    for named in elsewhere {
        told(Path::root().join("spec"), named);
    }
    for (group, details) in stored.into_iter().flat_map(|stored| &stored.group_details) {
        let at = path_of_group(object, group).unwrap_or_else(|| Path::root().join("spec"));
        details.queue.iter().for_each(|queue| told(at.clone(), Named::Queue(queue)));
        details.class.iter().for_each(|class| told(at.clone(), Named::Class(class)));
    }
    (problems, warnings)
}

/// Returns where the object first names a PodGroup.
fn path_of_group(object: &Value, group: &str) -> Option<Path> {
    let mut open = vec![(Path::root(), object)];
    while let Some((path, value)) = open.pop() {
        if value["annotations"][GROUP_NAME] == group {
            return Some(path.join("annotations").join(GROUP_NAME));
        }
        match value {
            Value::Object(fields) => {
                open.extend(fields.iter().rev().map(|(key, value)| (path.clone().join(key.as_str()), value)))
            }
            Value::Array(items) => {
                open.extend(items.iter().enumerate().rev().map(|(at, item)| (path.clone().join(at), item)))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    None
}

enum Judgement {
    Refused(Box<Problem>),
    NotLoaded(String),
    Ignored(String),
}

fn judge(named: Named<'_>, others: &dyn Catalog) -> Option<Judgement> {
    let refused = |message: String, help: Option<String>| {
        let mut problem = Problem::error(code::NOT_USABLE, message);
        problem.help = help;
        Some(Judgement::Refused(Box::new(problem)))
    };
    let near = |name: &str, names: Vec<String>| {
        nearest(name, names.iter().map(String::as_str)).map(|near| format!("did you mean `{near}`?"))
    };
    match named {
        Named::Queue(name) => match others.queue(name) {
            Some(QueueState::Open) => None,
            Some(QueueState::Missing) => {
                refused(format!("there is no queue `{}`", short(name)), near(name, others.queue_names()))
            }
            Some(QueueState::Closed) => refused(
                format!("queue `{name}` is closed and takes nothing new"),
                Some("choose another queue, or open it: `octoflow queue open`".to_owned()),
            ),
            Some(QueueState::Inner) => refused(
                format!("queue `{name}` has queues below it, and only leaves take work"),
                Some("choose one of the queues below it".to_owned()),
            ),
            None if name == DEFAULT => None,
            None => Some(Judgement::NotLoaded(format!("queue `{}` is not loaded", short(name)))),
        },
        Named::Class(name) => match others.has_class(name) {
            Some(true) => None,
            Some(false) => {
                refused(format!("there is no PriorityClass `{}`", short(name)), near(name, others.class_names()))
            }
            None => Some(Judgement::NotLoaded(format!("PriorityClass `{}` is not loaded", short(name)))),
        },
        Named::LongestWait(text) if is_wait(text) => None,
        Named::LongestWait(text) => Some(Judgement::Ignored(format!(
            "`{}` is not a time such as 90s, 30m or 2h, so the longest wait of the queue counts",
            short(text)
        ))),
    }
}

/// Reports whether a text is a time that somebody can wait: a number of seconds, or a duration with units.
fn is_wait(text: &str) -> bool {
    let seconds = text.trim().parse::<u64>().ok().map(Duration::from_secs);
    let units = || calendar::duration(text).and_then(|wait| Duration::try_from(wait).ok());
    seconds.or_else(units).is_some_and(|wait| !wait.is_zero())
}

/// Returns every queue and class that is named, with its path. Names that are computed while the run goes on are not
/// among them.
fn references(root: &Value) -> Vec<(Path, Named<'_>)> {
    let known = |text: &&str| !text.is_empty() && !text.contains("{{");
    let mut found = Vec::new();
    if let Some(queue) = root["spec"]["queue"].as_str().filter(known) {
        found.push((Path::root().join("spec").join("queue"), Named::Queue(queue)));
    }
    // Manifests nest as deep as they like, so a list takes the place of our stack.
    let mut open = vec![(Path::root(), root)];
    while let Some((path, value)) = open.pop() {
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    let at = || path.clone().join(key.as_str());
                    match value {
                        Value::String(text) if CLASS_FIELDS.contains(&key.as_str()) && known(&text.as_str()) => {
                            found.push((at(), Named::Class(text)));
                        }
                        Value::Object(entries) if matches!(key.as_str(), "labels" | "annotations") => {
                            for name in QUEUE_NAMES {
                                let queue = entries.get(name).and_then(Value::as_str).filter(known);
                                found.extend(queue.map(|queue| (at().join(name), Named::Queue(queue))));
                            }
                            for name in LONGEST_WAITS {
                                let wait = entries.get(name).and_then(Value::as_str).filter(known);
                                found.extend(wait.map(|wait| (at().join(name), Named::LongestWait(wait))));
                            }
                        }
                        Value::Object(_) | Value::Array(_) => open.push((at(), value)),
                        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
                    }
                }
            }
            Value::Array(items) => {
                let nested = items.iter().enumerate().filter(|(_, item)| item.is_object() || item.is_array());
                open.extend(nested.map(|(index, item)| (path.clone().join(index), item)));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    found.sort_by_cached_key(|(path, _)| path.to_string());
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        kinds::{Kind, scheduling::QueueTree},
        schedule::spec::QueueSpec,
    };

    struct Known(Option<QueueTree>);

    impl Catalog for Known {
        fn has_object(&self, _: &'static Kind, _: &str, _: &str) -> bool {
            true
        }
        fn queue(&self, name: &str) -> Option<QueueState> {
            self.0.as_ref().map(|tree| tree.state(name))
        }
        fn queue_names(&self) -> Vec<String> {
            self.0.iter().flat_map(QueueTree::names).map(str::to_owned).collect()
        }
        fn has_class(&self, name: &str) -> Option<bool> {
            self.0.as_ref().map(|_| name == "high")
        }
        fn class_names(&self) -> Vec<String> {
            vec!["high".to_owned()]
        }
    }

    fn tree() -> QueueTree {
        let mut tree = QueueTree::default();
        tree.put(QueueSpec::new("team"), false);
        tree.put(QueueSpec { parent: Some("team".into()), ..QueueSpec::new("team-a") }, false);
        tree.put(QueueSpec::new("old"), true);
        tree
    }

    fn told(problems: &[Problem]) -> Vec<String> {
        let path = |problem: &Problem| problem.path.as_ref().map(ToString::to_string).unwrap_or_default();
        problems
            .iter()
            .map(|one| format!("{}: {} {}", path(one), one.message, one.help.as_deref().unwrap_or_default()))
            .collect()
    }

    fn manifest() -> Value {
        json!({
            "metadata": {"labels": {"kueue.x-k8s.io/queue-name": "team"}},
            "spec": {
                "podPriorityClassName": "hihg",
                "templates": [
                    {"metadata": {"annotations": {"volcano.sh/queue-name": "tean-a"}}},
                    {"metadata": {"labels": {"scheduling.volcano.sh/queue-name": "old"}}, "priorityClassName": "high"},
                    {"metadata": {"labels": {"volcano.sh/queue-name": "{{inputs.parameters.queue}}"}}},
                ],
            },
        })
    }

    #[test]
    fn every_queue_and_class_that_cannot_be_used_is_told_with_its_path() {
        let (problems, warnings) = check(&manifest(), None, &Known(Some(tree())));
        assert!(warnings.is_empty(), "{warnings:?}");
        let told = told(&problems);
        let wanted = [
            "metadata.labels['kueue.x-k8s.io/queue-name']: queue `team` has queues below it",
            "spec.podPriorityClassName: there is no PriorityClass `hihg` did you mean `high`?",
            "spec.templates[0].metadata.annotations['volcano.sh/queue-name']: there is no queue `tean-a` did you mean `team-a`?",
            "spec.templates[1].metadata.labels['scheduling.volcano.sh/queue-name']: queue `old` is closed",
        ];
        assert_eq!(told.len(), wanted.len(), "{told:#?}");
        for (told, wanted) in told.iter().zip(wanted) {
            assert!(told.starts_with(wanted), "{told}");
        }
    }

    #[test]
    fn without_the_objects_they_are_warnings_and_the_default_queue_is_none() {
        let (problems, warnings) = check(&manifest(), None, &Known(None));
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(warnings.len(), 5, "{warnings:#?}");
        let plain = json!({"spec": {"queue": "default"}});
        assert!(check(&plain, None, &Known(None)).1.is_empty());
    }

    #[test]
    fn a_longest_wait_that_is_no_time_is_told_with_its_path() {
        let run = |wait: &str| json!({"metadata": {"annotations": {"sla-waiting-time": wait}}, "spec": {}});
        let (problems, warnings) = check(&run("soon"), None, &Known(Some(tree())));
        assert!(problems.is_empty());
        assert!(
            told(&warnings)[0].contains("`soon` is not a time") && told(&warnings)[0].contains("sla-waiting-time"),
            "{warnings:?}"
        );
        for good in ["10m", "90s", "2h", "{{workflow.parameters.wait}}"] {
            assert!(check(&run(good), None, &Known(Some(tree()))).1.is_empty(), "{good}");
        }
        assert_eq!(check(&run("0s"), None, &Known(Some(tree()))).1.len(), 1);
    }

    #[test]
    fn what_a_pod_group_names_is_told_where_the_group_is_named() {
        let set = json!({"spec": {"roles": [
            {"template": {}}, {"template": {"metadata": {"annotations": {(GROUP_NAME): "g"}}}},
        ]}});
        let told_for = |queue: &str, class: &str| {
            let details = octoflow_model::submission::GroupDetails {
                queue: Some(queue.to_owned()),
                class: Some(class.to_owned()),
                ..Default::default()
            };
            let stored = Stored { group_details: [("g".to_owned(), details)].into(), ..Stored::default() };
            told(&check(&set, Some(&stored), &Known(Some(tree()))).0)
        };
        assert_eq!(told_for("team-a", "high"), [] as [&str; 0]);
        let at = "spec.roles[1].template.metadata.annotations['scheduling.k8s.io/group-name']: ";
        for (queue, class, wanted) in [
            ("old", "high", "queue `old` is closed"),
            ("team", "high", "queue `team` has queues below it"),
            ("none", "high", "there is no queue `none`"),
            ("team-a", "none", "there is no PriorityClass `none`"),
        ] {
            let told = told_for(queue, class);
            assert!(told.len() == 1 && told[0].starts_with(&format!("{at}{wanted}")), "{told:?}");
        }
    }

    #[test]
    fn what_a_stored_template_names_counts_too() {
        let stored = Stored { spec: Some(json!({"podPriorityClassName": "none"})), ..Stored::default() };
        let (problems, _) = check(&json!({"spec": {"queue": "team-a"}}), Some(&stored), &Known(Some(tree())));
        assert_eq!(told(&problems), ["spec: there is no PriorityClass `none` "]);
    }
}
