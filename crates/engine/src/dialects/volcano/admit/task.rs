//! Validates tasks: names, numbers, dependencies, partitions and pods.

use std::collections::{HashMap, HashSet};

use octoflow_manifest::Path;
use octoflow_model::volcano::{Job, TaskSpec};
use serde_json::Value;

use super::{Given, MAX_NAME_LENGTH, is_broken, is_label, longest_name, name_of, policy};
use crate::{
    admit::{
        Catalog, code,
        findings::{At, Findings},
        shape,
    },
    dialects::{argo::admit::references::ReferenceCheck, volcano::ident},
    expr::nearest,
    graph,
    pod::check::{POD_FIELDS, containers, volumes},
};

/// The tasks by name.
type Places<'j> = HashMap<&'j str, usize>;

pub(super) fn check(report: &mut Findings, at: &At<'_>, given: &Given<'_>, namespace: &str, others: &dyn Catalog) {
    let Given { job, manifest, broken } = *given;
    let mut seen = HashSet::new();
    let places: Places<'_> = job.spec.tasks.iter().enumerate().map(|(at, task)| (task.name.as_str(), at)).collect();
    let job_name = longest_name(&job.metadata);
    for (index, task) in job.spec.tasks.iter().enumerate() {
        let place = at.index(index);
        name_of(report, &place.key("name"), &format!("tasks[{index}].name"), &task.name, is_label);
        if !seen.insert(task.name.as_str()) {
            report.error(&place.key("name"), code::DUPLICATE_NAME, || {
                format!("two tasks are called '{}'", shape::short(&task.name))
            });
        }
        numbers(report, &place, task, &manifest["spec"]["tasks"][index], broken);
        pod_name(report, &place, job_name.as_deref(), task);
        policy::check(report, &place.key("policies"), &task.policies, Some(task), broken);
        dependencies(report, &place.key("dependsOn"), job, task, &places);
        let template = place.key("template");
        let spec_at = template.key("spec");
        let (spec, raw) = (&task.template.spec, &manifest["spec"]["tasks"][index]["template"]["spec"]);
        volumes(report, &spec_at.key("volumes"), &spec.volumes, &raw["volumes"]);
        containers(report, &spec_at, spec, &format!("task '{}'", shape::short(&task.name)));
        let mut look = ReferenceCheck { others, namespace, report, fields: POD_FIELDS, reported: HashSet::new() };
        look.volumes(&spec_at.key("volumes"), &spec.volumes);
        for (field, list) in [("initContainers", &spec.init_containers), ("containers", &spec.containers)] {
            let list_at = spec_at.key(field);
            for (index, one) in list.iter().enumerate() {
                look.container(&list_at.index(index), &one.container);
            }
        }
    }
    circle(report, at, job, &places);
}

fn numbers(report: &mut Findings, at: &At<'_>, task: &TaskSpec, written: &Value, broken: &[Path]) {
    let (name, replicas) = (shape::short(&task.name), task.replicas);
    // Where one of them was refused, the others may have been filled in from what is left.
    let numbers = ["replicas", "minAvailable", "partitionPolicy"];
    if numbers.iter().any(|field| is_broken(broken, &at.key(field))) {
        return;
    }
    // One that follows from the partitions is not told: what is wrong with those is.
    if let Some(least) = written["minAvailable"].as_u64().filter(|least| *least > u64::from(replicas)) {
        report.error_with(&at.key("minAvailable"), code::GANG, || {
            let message = format!("task '{name}': minAvailable {least} is more than its {replicas} replicas");
            (message, Some(format!("write at most {replicas}")))
        });
    }
    let Some(parts) = task.partition_policy else { return };
    let place = at.key("partitionPolicy");
    let all = u64::from(parts.total_partitions) * u64::from(parts.partition_size);
    if all != u64::from(replicas) {
        report.error(&place, code::POLICY, || {
            format!(
                "task '{name}': {} partitions of {} pods are {all} pods, and its replicas are {replicas}",
                parts.total_partitions, parts.partition_size
            )
        });
    }
    if let Some(least) = parts.min_partitions.filter(|least| *least > parts.total_partitions) {
        report.error(&place.key("minPartitions"), code::GANG, || {
            format!("task '{name}': minPartitions {least} is more than its {} partitions", parts.total_partitions)
        });
    }
}

/// Checks that labels hold the names of its pods. The task's own name is checked elsewhere.
fn pod_name(report: &mut Findings, at: &At<'_>, job: Option<&str>, task: &TaskSpec) {
    let Some(job) = job.filter(|job| job.len() <= MAX_NAME_LENGTH && task.name.len() <= MAX_NAME_LENGTH) else {
        return;
    };
    let longest = ident::pod_name(job, &task.name, task.replicas.saturating_sub(1));
    if longest.len() > MAX_NAME_LENGTH {
        report.error_with(&at.key("name"), code::NAME, || {
            let length = longest.len();
            let message =
                format!("its pods would have names of {length} characters, and {MAX_NAME_LENGTH} are the most");
            (message, Some(format!("`{}` is made of the names of the job and the task", shape::short(&longest))))
        });
    }
}

fn dependencies(report: &mut Findings, at: &At<'_>, job: &Job, task: &TaskSpec, places: &Places<'_>) {
    let place = at.key("name");
    let names = || job.spec.tasks.iter().map(|other| other.name.as_str());
    let needs = task.depends_on.iter().flat_map(|needs| &needs.name).enumerate();
    for (index, name) in needs.filter(|(_, name)| !places.contains_key(name.as_str())) {
        report.error_with(&place.index(index), code::UNKNOWN_TASK, || {
            let message =
                format!("task '{}' waits for '{}', which is not a task", shape::short(&task.name), shape::short(name));
            (message, nearest(name, names()).map(|near| format!("did you mean `{near}`?")))
        });
    }
}

/// Refuses tasks that wait for each other: they would wait for ever.
fn circle(report: &mut Findings, at: &At<'_>, job: &Job, places: &Places<'_>) {
    let tasks = &job.spec.tasks;
    let place = |name: &String| places.get(name.as_str()).copied();
    let of = |task: &TaskSpec| task.depends_on.iter().flat_map(|needs| &needs.name).filter_map(place).collect();
    let needs: Vec<Vec<usize>> = tasks.iter().map(of).collect();
    for cycle in graph::find_cycles(&needs) {
        let names: Vec<&str> = cycle.iter().map(|index| tasks[*index].name.as_str()).collect();
        let first = cycle.first().copied().unwrap_or_default();
        report.error(&at.index(first).key("dependsOn"), code::CYCLE, || {
            format!("tasks wait for each other in a circle: {}", graph::show_cycle(&names))
        });
    }
}
