//! Progress of a run on a server, from its object each time it has changed: as lines, or as a tree drawn in place on a
//! terminal.

use std::{collections::HashMap, io::IsTerminal};

use jiff::tz::TimeZone;
use octoflow_engine::view::GROUP;
use octoflow_model::Time;
use serde_json::Value;

use super::{
    Output, clock,
    colour::{Colour, icon, one_line},
    events::{reason, verb},
    live::Live,
    nodes::{self, Columns},
};
use crate::source::workflow::{Node, Workflow, with_nodes};

pub(crate) struct RemoteProgress {
    output: Output,
    zone: TimeZone,
    /// Set on a terminal, where the tree is drawn.
    live: Option<Live>,
    /// Last reported phase of each node.
    told: HashMap<String, String>,
    phase: String,
    several: bool,
}

impl RemoteProgress {
    pub(crate) fn new(output: Output, several: bool) -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let live = (std::io::stderr().is_terminal() && !dumb).then(Live::default);
        Self { output, zone: clock::local_zone(), live, told: HashMap::new(), phase: String::new(), several }
    }

    pub(crate) fn tell(&mut self, object: &Value) {
        let object = with_nodes(object);
        let workflow = Workflow::new(&object);
        let now = clock::now();
        match &mut self.live {
            Some(live) => live.show(&self.output, picture(workflow, now, &self.output)),
            None => {
                for line in self.lines(workflow, now) {
                    self.output.talk(&line);
                }
            }
        }
    }

    fn lines(&mut self, workflow: Workflow<'_>, now: Time) -> Vec<String> {
        let mut lines = Vec::new();
        let before = std::mem::replace(&mut self.phase, workflow.phase().to_owned());
        if before != self.phase && self.phase == "Running" {
            let at = workflow.started().unwrap_or(now);
            lines.push(self.line(
                workflow,
                at,
                "Running",
                false,
                &format!("{} {} started", workflow.noun(), workflow.name()),
            ));
        }
        let mut changed: Vec<Node<'_>> = workflow
            .nodes()
            .into_iter()
            .filter(|node| is_told(*node) && self.told.get(node.id()).is_none_or(|phase| phase != node.phase()))
            .collect();
        changed.sort_by_key(|node| (node.finished().or(node.started()), node.name()));
        for node in changed {
            self.told.insert(node.id().to_owned(), node.phase().to_owned());
            let at = node.finished().or(node.started()).unwrap_or(now);
            let words = match (node.phase(), node.waits_for_resume()) {
                ("Pending" | "Waiting", _) => continue,
                ("Running", _) if node.kind() == GROUP => continue,
                ("Stopped", _) => format!("{} was ended", node.display()),
                (phase, _) if node.kind() == GROUP => {
                    format!("{} {} {}{}", workflow.group_noun(), node.display(), verb(phase), reason(node.message()))
                }
                (_, true) => format!(
                    "{} waits (to go on: octoflow resume {} --node-field-selector displayName={})",
                    node.display(),
                    workflow.name(),
                    node.display()
                ),
                ("Running", false) => format!("{} started", node.display()),
                ("Succeeded", false) => match (node.started(), node.finished()) {
                    (Some(began), Some(ended)) => {
                        format!("{} succeeded ({})", node.display(), clock::short(ended.since(began)))
                    }
                    _ => format!("{} succeeded", node.display()),
                },
                (phase, false) => {
                    format!("{} {}{}", node.display(), verb(phase), reason(&workflow.readable(node.message())))
                }
            };
            lines.push(self.line(workflow, at, node.phase(), node.waits_for_resume(), &words));
        }
        if before != self.phase && matches!(workflow.phase(), "Aborted" | "Suspended") {
            let (noun, name) = (workflow.noun(), workflow.name());
            let words = format!("{noun} {name} {} (to go on: octoflow resume {name})", verb(&self.phase));
            lines.push(self.line(workflow, now, "Running", true, &words));
        }
        if before != self.phase && workflow.finished().is_some() {
            let at = workflow.finished().unwrap_or(now);
            let message = reason(&workflow.readable(workflow.message()));
            let words = format!("{} {} {}{message}", workflow.noun(), workflow.name(), verb(&self.phase));
            lines.push(self.line(workflow, at, &self.phase, false, &words));
        }
        lines
    }

    fn line(&self, workflow: Workflow<'_>, at: Time, phase: &str, waiting: bool, words: &str) -> String {
        let paint = self.output.talk_paint();
        let (icon, colour) = icon(phase, waiting);
        let owner = if self.several {
            format!("{} ", paint.paint(&format!("[{}]", workflow.name()), Colour::Dim))
        } else {
            String::new()
        };
        let (time, words) = (clock::of_day(at, &self.zone), one_line(words));
        format!("{} {} {owner}{words}", paint.paint(&time, Colour::Dim), paint.paint(icon, colour))
    }
}

/// Returns whether a node is reported. Groups and graphs end with their last step, which is reported itself.
fn is_told(node: Node<'_>) -> bool {
    matches!(node.kind(), "Pod" | "HTTP" | "Suspend" | "Skipped" | "Plugin" | GROUP)
}

fn picture(workflow: Workflow<'_>, now: Time, output: &Output) -> Vec<String> {
    let paint = output.talk_paint();
    let (icon, colour) = icon(workflow.phase(), false);
    let took =
        workflow.started().map_or(String::new(), |began| clock::short(workflow.finished().unwrap_or(now).since(began)));
    let head = format!(
        "{} {}  {}  {}  {took}",
        paint.paint(icon, colour),
        paint.paint(workflow.name(), Colour::Bold),
        workflow.phase_in_words(),
        workflow.status()["progress"].as_str().unwrap_or_default(),
    );
    let tree = nodes::render(workflow, Columns::Usual, true, |_| true, now, paint);
    std::iter::once(head).chain(tree.lines().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(phase: &str, node: &str) -> Value {
        json!({"kind": "Workflow", "metadata": {"name": "w"}, "status": {"phase": phase, "startedAt": "2026-01-01T00:00:00Z",
            "finishedAt": if phase == "Running" { Value::Null } else { json!("2026-01-01T00:00:05Z") },
            "nodes": {
                "w": {"id": "w", "name": "w", "type": "Steps", "phase": phase, "startedAt": "2026-01-01T00:00:00Z"},
                "a": {"id": "a", "name": "w[0].a", "displayName": "a", "type": "Pod", "phase": node,
                      "message": if node == "Failed" { "exit code 3" } else { "" },
                      "startedAt": "2026-01-01T00:00:01Z"}}}})
    }

    fn progress() -> RemoteProgress {
        RemoteProgress {
            output: Output::new(true, false),
            zone: TimeZone::UTC,
            live: None,
            told: HashMap::new(),
            phase: String::new(),
            several: false,
        }
    }

    #[test]
    fn a_job_that_is_aborted_and_one_that_is_completed_say_so() {
        let job = |phase: &str, finished: Value| {
            json!({"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "j"},
                   "status": {"state": {"phase": phase}, "finishedAt": finished}})
        };
        let mut news = progress();
        let mut told = |object: &Value| news.lines(Workflow::new(object), Time(0));
        let aborted = ["00:00:00 ǁ Job j is aborted (to go on: octoflow resume j)"];
        assert_eq!(told(&job("Aborted", Value::Null)), aborted);
        assert_eq!(told(&job("Aborted", Value::Null)), Vec::<String>::new());
        assert_eq!(told(&job("Restarting", Value::Null)), Vec::<String>::new());
        assert_eq!(told(&job("Completed", json!("2026-01-01T00:00:05Z"))), ["00:00:05 ✔ Job j completed"]);
    }

    #[test]
    fn each_change_is_told_once() {
        let mut news = progress();
        let mut told = |object: &Value| news.lines(Workflow::new(object), Time(0));
        assert_eq!(told(&object("Running", "Pending")), ["00:00:00 ● workflow w started"]);
        assert_eq!(told(&object("Running", "Running")), ["00:00:01 ● a started"]);
        assert_eq!(told(&object("Running", "Running")), Vec::<String>::new());
        let end = told(&object("Failed", "Failed"));
        assert_eq!(end, ["00:00:01 ✖ a failed: exit code 3", "00:00:05 ✖ workflow w failed"]);
    }
}
