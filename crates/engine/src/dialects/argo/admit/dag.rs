//! Checks the dependencies of one DAG: they parse, name existing tasks, use one style, and form no cycle.

use std::collections::HashMap;

use octoflow_model::argo::Call;

use super::{
    code,
    findings::{At, Findings},
    index::{TemplateEntry, TemplateType},
    name,
};
use crate::{
    admit::shape::short,
    expr::{
        Error,
        depends::{self, Depends, TaskOutcome},
    },
    graph,
};

/// The tasks of a DAG and their dependencies.
pub(super) struct TaskGraph<'a> {
    index: HashMap<&'a str, usize>,
    /// Dependencies by task, each once, in ascending order.
    pub(super) needs: Vec<Vec<usize>>,
    conditions: Vec<Option<Result<Depends, Error>>>,
}

impl<'a> TaskGraph<'a> {
    pub(super) fn of(entry: &'a TemplateEntry<'_>) -> Option<Self> {
        let dag = entry.template.dag.as_ref().filter(|_| entry.kind == TemplateType::Dag && !entry.broken)?;
        let mut index = HashMap::with_capacity(dag.tasks.len());
        for (at, task) in dag.tasks.iter().enumerate() {
            index.entry(task.name.as_str()).or_insert(at);
        }
        let mut graph = Self { index, needs: Vec::new(), conditions: Vec::new() };
        for task in &dag.tasks {
            let condition = written(task).map(depends::parse);
            let mut needs: Vec<usize> = match &condition {
                Some(Ok(condition)) => condition.terms().iter().filter_map(|term| graph.find(&term.task)).collect(),
                Some(Err(_)) => Vec::new(),
                None => task.dependencies.iter().filter_map(|name| graph.find(name)).collect(),
            };
            needs.sort_unstable();
            needs.dedup();
            graph.needs.push(needs);
            graph.conditions.push(condition);
        }
        Some(graph)
    }

    /// Whether the dependencies of a task could be parsed.
    pub(super) fn readable(&self, task: usize) -> bool {
        !matches!(self.conditions.get(task), Some(Some(Err(_))))
    }

    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.index.get(name).copied()
    }
}

pub(super) fn check(report: &mut Findings, at: &At<'_>, entry: &TemplateEntry<'_>, graph: Option<&TaskGraph<'_>>) {
    let (Some(dag), Some(graph)) = (&entry.template.dag, graph) else { return };
    let label = &entry.label;
    let at = at.key("dag");
    let list = at.key("tasks");
    if dag.tasks.is_empty() {
        report.error(&list, code::REQUIRED, || format!("templates.{label} must have at least one task"));
        return;
    }
    let using_depends = dag.tasks.iter().any(|task| written(task).is_some());
    for (index, task) in dag.tasks.iter().enumerate() {
        let place = list.index(index);
        style(report, &place, label, task, using_depends);
        match &graph.conditions[index] {
            Some(Ok(condition)) => terms(report, &place.key("depends"), label, &dag.tasks, index, condition, graph),
            Some(Err(error)) => report.error(&place.key("depends"), code::DEPENDS, || {
                format!(
                    "templates.{label}.tasks.{} {} (at character {} of depends)",
                    task.name, error.message, error.column
                )
            }),
            None => {
                let list = place.key("dependencies");
                for (position, name) in task.dependencies.iter().enumerate() {
                    if graph.find(name).is_none() {
                        undefined(report, &list.index(position), label, &task.name, name, &dag.tasks);
                    }
                }
            }
        }
    }
    if let Some(found) = graph::find_cycle(&graph.needs) {
        let names: Vec<&str> = found.iter().map(|task| dag.tasks[*task].name.as_str()).collect();
        report.error_with(&list.index(found[0]), code::CYCLE, || {
            (
                format!("templates.{label}.tasks dependency cycle detected: {}", graph::show_cycle(&names)),
                Some("each of these waits for the next; remove one of the dependencies".to_owned()),
            )
        });
    }
    targets(report, &at.key("target"), label, dag.target.as_deref().unwrap_or_default(), &dag.tasks, graph);
}

fn written(task: &Call) -> Option<&str> {
    task.depends.as_deref().filter(|text| !text.is_empty())
}

fn style(report: &mut Findings, at: &At<'_>, label: &str, task: &Call, using_depends: bool) {
    if using_depends && !task.dependencies.is_empty() {
        report.error_with(&at.key("dependencies"), code::DEPENDENCY_STYLE, || {
            (
                format!("templates.{label} cannot use both 'depends' and 'dependencies' in the same DAG template"),
                Some(format!("write `depends: \"{}\"`", short(&task.dependencies.join(" && ")))),
            )
        });
    }
    if using_depends && task.continue_on.is_some() {
        report.error(&at.key("continueOn"), code::DEPENDENCY_STYLE, || {
            format!("templates.{label} cannot use 'continueOn' when using 'depends'. Instead use 'dep-task.Failed'/'dep-task.Errored'")
        });
    }
    let ordered = using_depends || !task.dependencies.is_empty();
    if ordered && task.name.starts_with(|c: char| c.is_ascii_digit()) {
        report.error(&at.key("name"), code::DEPENDENCY_STYLE, || {
            format!("templates.{label}.tasks.{} name cannot begin with a digit when using either 'depends' or 'dependencies'", task.name)
        });
    }
}

fn terms(
    report: &mut Findings,
    at: &At<'_>,
    label: &str,
    tasks: &[Call],
    index: usize,
    condition: &Depends,
    graph: &TaskGraph<'_>,
) {
    for term in condition.terms() {
        match graph.find(&term.task) {
            None => undefined(report, at, label, &tasks[index].name, &term.task, tasks),
            Some(needed) => {
                let by_item = matches!(term.outcome, Some(TaskOutcome::AnySucceeded | TaskOutcome::AllFailed));
                if by_item && !tasks[needed].looped() {
                    report.error(at, code::DEPENDS, || format!(
                        "templates.{label}.tasks.{} dependency '{}' uses an items-based condition such as .AnySucceeded or .AllFailed but does not contain any items",
                        tasks[index].name, term.task,
                    ));
                }
            }
        }
    }
}

fn undefined(report: &mut Findings, at: &At<'_>, label: &str, task: &str, needed: &str, tasks: &[Call]) {
    report.error_with(at, code::UNKNOWN_TASK, || {
        (
            format!("templates.{label}.tasks.{task} dependency '{}' not defined", short(needed)),
            name::suggest(needed, tasks.iter().map(|task| task.name.as_str())),
        )
    });
}

fn targets(report: &mut Findings, at: &At<'_>, label: &str, target: &str, tasks: &[Call], graph: &TaskGraph<'_>) {
    if name::has_variables(target) {
        return;
    }
    for name in target.split_whitespace().filter(|name| graph.find(name).is_none()) {
        report.error_with(at, code::UNKNOWN_TASK, || {
            (
                format!("templates.{label}.targets: target '{}' is not defined", short(name)),
                name::suggest(name, tasks.iter().map(|task| task.name.as_str())),
            )
        });
    }
}
