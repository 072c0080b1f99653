//! Commands of Volcano's bus: an object that asks for an action on a job. It is carried out when it is created, and not
//! kept, as Volcano's controllers delete it before they act.

use octoflow_manifest::{Path, Problem};
use octoflow_model::volcano::Action;
use serde_json::Value;

use super::kinds::JOB;
use crate::{
    admit::{
        code,
        shape::{self, BOOL, Field, Shape, TEXT},
    },
    dialects::argo::fields::OBJECT,
    engine::input::Command,
    kinds::{ErrorsAndWarnings, Kind, Requested},
};

pub(super) static COMMAND: Kind = Kind {
    plural: "commands",
    singular: "command",
    short: &["vccmd"],
    key: "VolcanoCommand",
    schema_prefix: "sh.volcano.bus.v1alpha1.",
    shape: Some(&FIELDS),
    check: Some(check),
    not_run: Some((
        "a Command acts on a Job and does not run itself",
        "create it at a server, or use suspend and resume",
    )),
    requests: Some(requested),
    ..Kind::new("bus.volcano.sh", "v1alpha1", "Command")
};

static FIELDS: Shape = Shape::Object(&[
    OBJECT,
    &[
        Field::yes("action", &TEXT, "The action, such as AbortJob or ResumeJob"),
        Field::yes("target", &TARGET, "The Job it is for"),
        Field::yes("reason", &TEXT, "Recorded nowhere: the Job's reason is CommandIssued"),
        Field::yes("message", &TEXT, "Recorded nowhere"),
    ],
]);
static TARGET: Shape = Shape::Object(&[&[
    Field::yes("apiVersion", &TEXT, "The group and version of the Job"),
    Field::yes("kind", &TEXT, "`Job`"),
    Field::yes("name", &TEXT, "The Job's name; it is in the namespace of the Command"),
    Field::yes("uid", &TEXT, "Only a Job with this uid"),
    Field::yes("controller", &BOOL, "No effect"),
    Field::yes("blockOwnerDeletion", &BOOL, "No effect"),
]]);

/// Actions that are about a job as a whole.
const OF_JOB: [Action; 5] =
    [Action::AbortJob, Action::RestartJob, Action::TerminateJob, Action::CompleteJob, Action::ResumeJob];

fn check(object: &Value) -> ErrorsAndWarnings {
    let checked = shape::check(object, &FIELDS);
    let mut problems = checked.problems;
    let mut wrong = |path: &[&str], message: String, help: &str| {
        let at = path.iter().fold(Path::root(), |at, key| at.join(*key));
        problems.push(Problem::error(code::POLICY, message).path(at).help(help));
    };
    let action = object["action"].as_str().unwrap_or_default();
    if !OF_JOB.iter().any(|known| known.word() == action) {
        let known = OF_JOB.map(|known| known.word()).join(", ");
        wrong(&["action"], format!("`{}` is no action on a Job", shape::short(action)), &format!("one of {known}"));
    }
    let target = &object["target"];
    let text = |field: &str| target[field].as_str().unwrap_or_default();
    if text("kind") != JOB.name || !JOB.accepts_api_version(text("apiVersion")) {
        let message = format!("a Command is for a {} of {}", JOB.name, JOB.api_version());
        wrong(&["target", "kind"], message, "queues are opened and closed with `octoflow queue`");
    }
    if text("name").is_empty() {
        wrong(&["target", "name"], "target.name is required".to_owned(), "name the Job");
    }
    (problems, checked.warnings)
}

fn requested(object: &Value) -> Requested {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Requested {
        kind: &JOB,
        name: text(&object["target"]["name"]),
        uid: object["target"]["uid"].as_str().filter(|uid| !uid.is_empty()).map(str::to_owned),
        command: Command::Perform { action: text(&object["action"]) },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn command(action: &str, kind: &str, name: &str) -> Value {
        json!({"apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", "metadata": {"generateName": "c-"},
               "action": action, "target": {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": kind, "name": name}})
    }

    #[test]
    fn a_command_names_an_action_and_a_job() {
        assert!(check(&command("AbortJob", "Job", "j")).0.is_empty());
        for (wrong, count) in [
            (command("Dance", "Job", "j"), 1),
            (command("RestartPod", "Job", "j"), 1),
            (command("CloseQueue", "Queue", ""), 3),
        ] {
            assert_eq!(check(&wrong).0.len(), count, "{wrong}");
        }
        let asked = requested(&command("ResumeJob", "Job", "j"));
        assert_eq!((asked.name.as_str(), asked.uid, asked.kind), ("j", None, &JOB));
    }
}
