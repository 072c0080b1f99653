//! Whether the tasks of a manifest could ever start: what no node has and no queue allows is refused where it was declared,
//! and told as a warning where it was only measured. It knows no dialect.

use octoflow_manifest::{Path, Problem};
use octoflow_model::{Time, meta::DEFAULT_NAMESPACE};
use serde_json::Value;

use super::{Admitted, Catalog, code, shape::MAX_PROBLEMS};
use crate::{
    dialects::dialect::{Program, StaticTask},
    kinds::ErrorsAndWarnings,
    pod::quantity::{render, thousandths},
    schedule::{
        Estimate, Scheduler,
        fit::{FitVerdict, Never, judge},
        spec::{Demand, NodeSpec},
    },
};

/// Checks all tasks that are known before the run. Nothing is known where the catalog knows no nodes.
pub(super) fn check(object: &Value, admitted: &mut Admitted, others: &dyn Catalog) -> ErrorsAndWarnings {
    let (mut problems, mut warnings) = (Vec::new(), Vec::new());
    let Some(nodes) = others.nodes() else { return (problems, warnings) };
    // What does not compile is told when it is submitted.
    let Ok(program) = Program::compile(&admitted.manifest, &admitted.stored) else { return (problems, warnings) };
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or(DEFAULT_NAMESPACE);
    let inherited = others.queue_of_namespace(namespace);
    let units = units(&program, &admitted.manifest, inherited.as_deref());
    admitted.program = Some(program);
    for unit in units {
        let (found, certain) = unit.judge(&nodes, others);
        for (task, never) in found.never {
            let told = unit.problem(object, task, &never, certain);
            let list = if is_hard(&never) && certain { &mut problems } else { &mut warnings };
            push(list, told);
        }
        for (task, never) in found.alone {
            push(&mut warnings, unit.warning(object, task, &never));
        }
    }
    (problems, warnings)
}

fn push(list: &mut Vec<Problem>, problem: Problem) {
    let same = |known: &Problem| known.path == problem.path && known.message == problem.message;
    if list.len() < MAX_PROBLEMS && !list.iter().any(same) {
        list.push(problem);
    }
}

/// Labels and taints are changed any time, so what they exclude waits; amounts are what a machine has.
fn is_hard(never: &Never) -> bool {
    match never {
        Never::Node { .. } | Never::Nowhere | Never::Queue { .. } | Never::Together { .. } => true,
        Never::NotSelected | Never::Tainted { .. } => false,
    }
}

/// Tasks that start at once: one, or the first members of a gang.
#[derive(Debug)]
pub struct StaticUnit {
    tasks: Vec<StaticTask>,
}

/// Returns what starts at once, as far as the manifest alone tells.
pub fn units(program: &Program, manifest: &Value, inherited: Option<&str>) -> Vec<StaticUnit> {
    let mut units: Vec<StaticUnit> = Vec::new();
    for task in program.0.static_tasks(manifest, inherited) {
        let mates = |unit: &&mut StaticUnit| task.gang.is_some() && unit.tasks.iter().any(|one| one.gang == task.gang);
        match units.iter_mut().find(mates) {
            Some(unit) => unit.tasks.push(task),
            None => units.push(StaticUnit { tasks: vec![task] }),
        }
    }
    units
}

/// Equal tasks of a unit.
#[derive(Clone, Debug)]
pub struct UnitPart<'u> {
    pub path: &'u Path,
    pub count: u32,
    pub demand: &'u Demand,
}

impl StaticUnit {
    /// Iterates over what it consists of.
    pub fn parts(&self) -> impl Iterator<Item = UnitPart<'_>> {
        self.tasks.iter().map(|task| UnitPart { path: &task.path, count: task.count, demand: &task.demand })
    }

    fn members(&self) -> Vec<(&Demand, u32)> {
        self.tasks.iter().map(|task| (&task.demand, task.count)).collect()
    }

    /// Reports whether it runs, and where it waits, is known before the run.
    pub fn is_certain(&self) -> bool {
        self.tasks.iter().all(|task| task.certain && task.queue_known)
    }

    /// Estimates when it would start if this tenant submitted it now and nothing else came.
    pub fn estimate(&self, scheduler: &Scheduler, tenant: &str, now: Time) -> Estimate {
        let of_tenant = |task: &StaticTask| (Demand { tenant: tenant.into(), ..task.demand.clone() }, task.count);
        let demands: Vec<(Demand, u32)> = self.tasks.iter().map(of_tenant).collect();
        scheduler.estimate_new(demands.iter().map(|(demand, count)| (demand, *count)), now)
    }

    fn judge(&self, nodes: &[NodeSpec], others: &dyn Catalog) -> (FitVerdict, bool) {
        let known = self.tasks.first().filter(|first| first.queue_known);
        let queues = known.map(|first| others.queue_path(&first.demand.queue)).unwrap_or_default();
        (judge(nodes, &queues, &self.members()), self.tasks.iter().all(|task| task.certain))
    }

    fn problem(&self, object: &Value, task: usize, never: &Never, certain: bool) -> Problem {
        let (message, help) = told(never);
        let problem = if is_hard(never) && certain {
            Problem::error(code::NEVER_FITS, message)
        } else {
            let when = if certain { "it waits" } else { "if it is called, it waits" };
            Problem::warning(code::NEVER_FITS, format!("{message}; {when} until that changes"))
        };
        problem.path(self.path(object, task, never)).help(help)
    }

    fn warning(&self, object: &Value, task: usize, never: &Never) -> Problem {
        let message = match never {
            Never::Node { resource, wanted, most } => {
                let (wanted, most) = (render(resource, *wanted), render(resource, *most));
                format!("it asks for {wanted} {resource}, and the largest node has {most}: it gets all of that")
            }
            Never::Together { wanted, most } => {
                format!("{wanted} start at once, and there is room for {most} on all nodes together: they run alone")
            }
            Never::Nowhere | Never::NotSelected | Never::Tainted { .. } | Never::Queue { .. } => told(never).0,
        };
        Problem::warning(code::NEVER_FITS, message).path(self.path(object, task, never))
    }

    fn path(&self, object: &Value, task: usize, never: &Never) -> Path {
        let Some(task) = self.tasks.get(task) else { return Path::root() };
        match never {
            Never::Node { resource, .. } | Never::Queue { resource, .. } => {
                field_of(object, &task.path, resource).unwrap_or_else(|| task.path.clone())
            }
            Never::NotSelected => {
                let placed = |field: &str| at(object, &task.path).is_some_and(|pod| !pod[field].is_null());
                match ["nodeSelector", "affinity"].into_iter().find(|field| placed(field)) {
                    Some(field) => task.path.clone().join(field),
                    None => task.path.clone(),
                }
            }
            Never::Together { .. } => task.gang.as_ref().map_or_else(|| task.path.clone(), |gang| gang.1.clone()),
            Never::Nowhere | Never::Tainted { .. } => task.path.clone(),
        }
    }
}

fn told(never: &Never) -> (String, String) {
    match never {
        Never::Node { resource, wanted, most: 0 } => (
            format!("it asks for {} {resource}, and no node has any", render(resource, *wanted)),
            format!(
                "leave it out, or declare it: `octoflow node set NODE --capacity {resource}={}`",
                render(resource, *wanted)
            ),
        ),
        Never::Node { resource, wanted, most } => (
            format!(
                "it asks for {} {resource}, and no node has more than {}",
                render(resource, *wanted),
                render(resource, *most)
            ),
            format!(
                "ask for at most {}, or declare more: `octoflow node set NODE --capacity {resource}={}`",
                render(resource, *most),
                render(resource, *wanted)
            ),
        ),
        Never::Nowhere => (
            "no node has enough of everything that it asks for".to_owned(),
            "ask for less of one of them; see `octoflow node list`".to_owned(),
        ),
        Never::NotSelected => (
            "the labels of no node match".to_owned(),
            "see `octoflow node list -o wide`, or label one: `octoflow node label NODE NAME=VALUE`".to_owned(),
        ),
        Never::Tainted { key } => (
            format!("every node has a taint that it does not tolerate, such as {key}"),
            format!("tolerate it, or remove it: `kubectl taint nodes --all {key}-`"),
        ),
        Never::Queue { queue, resource, wanted, most } => (
            format!(
                "it asks for {} {resource}, and queue `{queue}` may use at most {}",
                render(resource, *wanted),
                render(resource, *most)
            ),
            format!(
                "ask for at most {}, or raise its capability: `octoflow queue set {queue} --capability {resource}={}`",
                render(resource, *most),
                render(resource, *wanted)
            ),
        ),
        Never::Together { wanted, most } => (
            format!("{wanted} of its gang have to start at once, and all nodes together hold {most}"),
            format!("lower minMember or the replicas to {most}, or let them ask for less"),
        ),
    }
}

/// Returns the value at a path.
fn at<'v>(object: &'v Value, path: &Path) -> Option<&'v Value> {
    path.segments().iter().try_fold(object, |value, segment| match segment {
        octoflow_manifest::Segment::Key(key) => value.get(key.as_str()),
        octoflow_manifest::Segment::Index(index) => value.get(index),
    })
}

/// Returns the field below a path that asks for most of a resource.
fn field_of(object: &Value, base: &Path, resource: &str) -> Option<Path> {
    let mut largest: Option<(u64, Path)> = None;
    let mut open = vec![(base.clone(), at(object, base)?)];
    while let Some((path, value)) = open.pop() {
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    let here = path.clone().join(key.as_str());
                    if key == "resources" {
                        // A limit counts as a request where there is none.
                        let listed = ["requests", "limits"].into_iter().find(|list| !value[*list][resource].is_null());
                        if let Some(list) = listed {
                            let text = octoflow_model::scalar::spelled(value[list][resource].clone());
                            let much = thousandths(&text).unwrap_or(0);
                            if largest.as_ref().is_none_or(|(most, _)| much > *most) {
                                largest = Some((much, here.join(list).join(resource)));
                            }
                        }
                    } else if value.is_object() || value.is_array() {
                        open.push((here, value));
                    }
                }
            }
            Value::Array(items) => {
                open.extend(items.iter().enumerate().map(|(index, item)| (path.clone().join(index), item)));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    largest.map(|(_, path)| path)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        admit::{Reach, examine},
        kinds::Kind,
        schedule::spec::{QueueSpec, ResourceCapacity},
    };

    struct Known {
        nodes: Vec<NodeSpec>,
        queues: Vec<QueueSpec>,
    }

    impl Catalog for Known {
        fn has_object(&self, _: &'static Kind, _: &str, _: &str) -> bool {
            true
        }
        fn queue_path(&self, name: &str) -> Vec<QueueSpec> {
            self.queues.iter().filter(|queue| &*queue.name == name).cloned().collect()
        }
        fn nodes(&self) -> Option<Vec<NodeSpec>> {
            Some(self.nodes.clone())
        }
        fn template(&self, _: Reach, _: &str, _: &str) -> Option<Value> {
            None
        }
        fn template_names(&self, _: Reach, _: &str) -> Vec<String> {
            Vec::new()
        }
    }

    fn known(declared: bool) -> Known {
        let mut node = NodeSpec::measured("n", 10, 8000, 1 << 33);
        node.open_ended = !declared;
        if declared {
            node.capacity.insert("cpu".to_owned(), ResourceCapacity { amount: 8000, declared: true });
            node.labels_declared = true;
        }
        let mut small = QueueSpec::new("small");
        small.capability = [("cpu".to_owned(), 2000)].into();
        Known { nodes: vec![node], queues: vec![small] }
    }

    fn workflow(templates: Value) -> Value {
        json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "w"},
            "spec": {"entrypoint": "main", "templates": templates},
        })
    }

    fn pod(name: &str, requests: Value) -> Value {
        json!({"name": name, "container": {"image": "i", "command": ["c"], "resources": {"requests": requests}}})
    }

    /// Returns errors and warnings about capacity, each with its path.
    fn told(object: &Value, known: &Known) -> (Vec<String>, Vec<String>) {
        let found = match examine(object, known) {
            Ok(admitted) => admitted.warnings,
            Err(problems) => problems.0,
        };
        assert!(
            found
                .iter()
                .all(|problem| problem.severity != octoflow_manifest::Severity::Error
                    || problem.code == code::NEVER_FITS),
            "{found:#?}"
        );
        let ours = found.into_iter().filter(|problem| problem.code == code::NEVER_FITS);
        let (errors, warnings): (Vec<Problem>, Vec<Problem>) =
            ours.partition(|problem| problem.severity == octoflow_manifest::Severity::Error);
        let text = |problem: Problem| {
            format!("{}: {}", problem.path.map(|path| path.to_string()).unwrap_or_default(), problem.message)
        };
        (errors.into_iter().map(text).collect(), warnings.into_iter().map(text).collect())
    }

    #[test]
    fn what_no_declared_node_has_is_refused_with_the_largest_that_fits_all_at_once() {
        let object = workflow(json!([pod("main", json!({"cpu": "16", "nvidia.com/gpu": 1}))]));
        let (errors, _) = told(&object, &known(true));
        assert_eq!(
            errors,
            [
                "spec.templates[0].container.resources.requests.cpu: it asks for 16 cpu, and no node has more than 8",
                "spec.templates[0].container.resources.requests['nvidia.com/gpu']: it asks for 1 nvidia.com/gpu, and no node has any",
            ]
        );
        assert_eq!(told(&workflow(json!([pod("main", json!({"cpu": "8"}))])), &known(true)), (vec![], vec![]));
    }

    #[test]
    fn what_was_only_measured_is_a_warning() {
        let object = workflow(json!([pod("main", json!({"cpu": "16", "nvidia.com/gpu": 1}))]));
        let (errors, warnings) = told(&object, &known(false));
        assert!(errors.is_empty(), "{errors:?}");
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].ends_with("it asks for 16 cpu, and the largest node has 8: it gets all of that"));
    }

    #[test]
    fn a_queue_refuses_what_its_capability_never_allows() {
        let mut object = workflow(json!([pod("main", json!({"cpu": "4"}))]));
        object["metadata"]["labels"] = json!({"volcano.sh/queue-name": "small"});
        let (errors, _) = told(&object, &known(true));
        assert_eq!(
            errors,
            [
                "spec.templates[0].container.resources.requests.cpu: it asks for 4 cpu, and queue `small` may use at most 2"
            ]
        );
    }

    #[test]
    fn a_call_that_may_not_be_made_and_labels_that_may_come_are_warnings() {
        let mut picky = pod("main", json!({"cpu": "1"}));
        picky["nodeSelector"] = json!({"disk": "ssd"});
        let (errors, warnings) = told(&workflow(json!([picky])), &known(true));
        assert!(errors.is_empty(), "{errors:?}");
        assert_eq!(
            warnings,
            ["spec.templates[0].nodeSelector: the labels of no node match; it waits until that changes"]
        );
        let steps = json!({"name": "main", "steps": [[{"name": "a", "template": "big", "when": "1 == 2"}]]});
        let (errors, warnings) = told(&workflow(json!([steps, pod("big", json!({"cpu": "9"}))])), &known(true));
        assert!(errors.is_empty(), "{errors:?}");
        assert!(warnings[0].contains("if it is called, it waits"), "{warnings:?}");
    }

    #[test]
    fn a_gang_that_all_nodes_together_never_hold_is_refused() {
        let set = |replicas: u32| {
            json!({
                "apiVersion": "octopus.openi.pcl.cn/v1alpha1", "kind": "TaskSet", "metadata": {"name": "t"},
                "spec": {"roles": [{"name": "worker", "replicas": replicas, "completionPolicy": {"maxFailed": 1, "minSucceeded": 1}, "template": {
                    "metadata": {"annotations": {"scheduling.k8s.io/group-name": "g"}},
                    "spec": {"containers": [{"name": "m", "image": "i", "command": ["c"],
                        "resources": {"requests": {"cpu": "3"}}}]}}}]},
            })
        };
        let (errors, _) = told(&set(3), &known(true));
        assert_eq!(
            errors,
            [
                "spec.roles[0].template.metadata.annotations['scheduling.k8s.io/group-name']: 3 of its gang have to start at once, \
              and all nodes together hold 2"
            ]
        );
        assert_eq!(told(&set(2), &known(true)).0, Vec::<String>::new());
        let (errors, warnings) = told(&set(3), &known(false));
        assert!(
            errors.is_empty() && warnings[0].ends_with("there is room for 2 on all nodes together: they run alone"),
            "{warnings:?}"
        );
    }
}
