//! A look at the jobs of a flow before they are made, where their templates are at hand. Templates may change until then, so
//! everything it finds is a warning.

use std::collections::{BTreeMap, BTreeSet};

use octoflow_manifest::{Path, Problem, Severity};
use octoflow_model::{
    jobflow::{EntryProbe, FlowEntry, JobFlow},
    meta::DEFAULT_NAMESPACE,
    request::MakeRequest,
};
use serde::Deserialize;
use serde_json::Value;

use super::longest_name;
use crate::{
    admit::{
        self, Catalog, code,
        findings::{At, Findings},
        shape,
    },
    dialects::{
        jobflow::{program::job_name, template},
        volcano::program::Program,
    },
    expr::nearest,
};

/// Most entries whose jobs are looked at: a check must stay short however long the flow is.
const MAX_LOOKED_AT: usize = 1000;

/// Tasks of the jobs that are known, by entry.
type Tasks<'a> = BTreeMap<&'a str, BTreeSet<String>>;

/// Warns of jobs that could not be admitted, and of probes that ask for tasks that no target has.
pub(super) fn check(manifest: &Value, others: &dyn Catalog, report: &mut Findings) {
    let Ok(flow) = JobFlow::deserialize(manifest) else { return };
    let Some(name) = longest_name(&flow.metadata) else { return };
    let namespace = flow.metadata.namespace.as_deref().filter(|name| !name.is_empty()).unwrap_or(DEFAULT_NAMESPACE);
    let place = Path::root().join("spec").join("flows");
    let at = At::base(&place);
    let mut tasks = Tasks::new();
    for (index, entry) in flow.spec.flows.iter().enumerate().take(MAX_LOOKED_AT) {
        let Some(given) = others.job_template(namespace, &entry.name) else { continue };
        let made = made(&given, entry, namespace, job_name(&name, &entry.name, 0));
        let known: BTreeSet<String> = errors_of(&given, others).into_iter().map(|problem| told(&problem)).collect();
        for problem in admit::examine(&made, others).err().into_iter().flat_map(|problems| problems.0) {
            let message = told(&problem);
            // What is wrong with the template itself is told there.
            if problem.severity == Severity::Error && !known.contains(&message) {
                let field = if entry.patch.is_some() { "patch" } else { "name" };
                report.warn(&at.index(index).key(field), problem.code, || {
                    format!("the job of '{}' would be refused: {message}", shape::short(&entry.name))
                });
            }
        }
        if let Ok(program) = Program::compile(&made) {
            tasks.insert(&entry.name, program.job.spec.tasks.into_iter().map(|task| task.name).collect());
        }
    }
    for (index, entry) in flow.spec.flows.iter().enumerate().take(MAX_LOOKED_AT) {
        if let Some(probe) = entry.probe() {
            probes(report, &at.index(index).key("dependsOn").key("probe"), entry, probe, &tasks);
        }
    }
}

fn made(given: &Value, entry: &FlowEntry, namespace: &str, name: String) -> Value {
    let patch = entry.patch.as_ref().and_then(|patch| patch.content().cloned());
    let asked = MakeRequest { namespace: namespace.to_owned(), name, patch, ..MakeRequest::default() };
    let mut made = template::make(given, &asked);
    // Nobody owns what is not made.
    made["metadata"]["ownerReferences"] = Value::Array(Vec::new());
    made
}

fn errors_of(given: &Value, others: &dyn Catalog) -> Vec<Problem> {
    template::examine(given, others).0
}

fn told(problem: &Problem) -> String {
    let path = problem.path.as_ref().map(ToString::to_string).unwrap_or_default();
    if path.is_empty() { problem.message.clone() } else { format!("{path}: {}", problem.message) }
}

/// Warns of conditions on tasks that no target has. They hold never.
fn probes(report: &mut Findings, at: &At<'_>, entry: &FlowEntry, probe: &EntryProbe, tasks: &Tasks<'_>) {
    let targets = entry.depends_on.iter().flat_map(|needs| &needs.targets);
    let known: Option<Vec<&BTreeSet<String>>> = targets.map(|target| tasks.get(target.as_str())).collect();
    // A target whose template is not at hand may have every task.
    let Some(known) = known.filter(|known| !known.is_empty()) else { return };
    let gets = probe.http_get_list.iter().map(|get| ("httpGetList", &get.task_name));
    let sockets = probe.tcp_socket_list.iter().map(|socket| ("tcpSocketList", &socket.task_name));
    let statuses = probe.task_status_list.iter().map(|status| ("taskStatusList", &status.task_name));
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    for (list, task) in gets.chain(sockets).chain(statuses) {
        let number = numbers.entry(list).or_default();
        let index = *number;
        *number += 1;
        if !task.is_empty() && !known.iter().any(|tasks| tasks.contains(task)) {
            report.warn_with(&at.key(list).index(index).key("taskName"), code::UNKNOWN_TASK, || {
                let near = nearest(task, known.iter().flat_map(|tasks| tasks.iter().map(String::as_str)));
                let message = format!("no target has a task '{}', so this never holds", shape::short(task));
                (message, near.map(|near| format!("did you mean `{near}`?")))
            });
        }
    }
}
