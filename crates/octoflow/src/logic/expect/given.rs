//! What a task was given: command, arguments, environment, script, files.

use octoflow_model::request::Request;
use serde_json::{Map, Value};

use super::Check;
use crate::logic::{answer::source, drive::Launch, snapshot::SnapshotNode, test_document::Located};

/// The last task that was started for a node.
pub(super) fn launch<'c>(check: &Check<'c, '_>, node: &SnapshotNode) -> Option<&'c Launch> {
    let outcome = check.outcome;
    outcome.launches.iter().rev().find(|launch| launch.run == check.run && launch.node == node.name)
}

pub(super) fn check(check: &mut Check<'_, '_>, node: &SnapshotNode, what: &str, expected: &Located<'_>) {
    let Some(launch) = launch(check, node) else {
        check.verdict.miss(expected, what, "a task", "no task was started for it");
        return;
    };
    let (task, main) = (&launch.task, &launch.task.main);
    for (key, located) in expected.entries() {
        let what = format!("{what}.{key}");
        match key {
            "image" => check.text(&located, &what, &main.image),
            "workingDir" => check.text(&located, &what, main.working_dir.as_deref().unwrap_or_default()),
            "source" => check.text(&located, &what, &source(task).unwrap_or_default()),
            "command" => list(check, &located, &what, &main.command),
            "args" => list(check, &located, &what, &main.args),
            "env" => {
                let env = main.env.iter().map(|(name, value)| (name.clone(), Value::from(value.reveal())));
                check.named(&located, &what, &Value::Object(env.collect::<Map<_, _>>()));
            }
            "files" => {
                let text = |bytes: &[u8]| Value::from(String::from_utf8_lossy(bytes));
                let files = task.files.iter().map(|file| (file.path.clone(), text(&file.contents)));
                check.named(&located, &what, &Value::Object(files.collect::<Map<_, _>>()));
            }
            "http" => asked(check, &located, &what, task.call.as_deref()),
            _ => {
                let value = serde_json::to_value(task).unwrap_or_default();
                check.paths(&located, &what, &value);
            }
        }
    }
}

fn asked(check: &mut Check<'_, '_>, expected: &Located<'_>, what: &str, request: Option<&Request>) {
    let Some(Request::Http(request)) = request else {
        check.verdict.miss(expected, what, "an HTTP request", "it makes none");
        return;
    };
    for (key, located) in expected.entries() {
        let what = format!("{what}.{key}");
        match key {
            "method" => check.text(&located, &what, &request.method),
            "url" => check.text(&located, &what, &request.url),
            "body" => check.text(&located, &what, &String::from_utf8_lossy(&request.body)),
            _ => {
                let headers = request.headers.iter().map(|(name, value)| (name.clone(), Value::from(value.reveal())));
                check.named(&located, &what, &Value::Object(headers.collect::<Map<_, _>>()));
            }
        }
    }
}

fn list(check: &mut Check<'_, '_>, expected: &Located<'_>, what: &str, actual: &[String]) {
    let wanted: Vec<Located<'_>> = expected.items().collect();
    if wanted.len() != actual.len() {
        let shown = |list: &[String]| serde_json::to_string(list).unwrap_or_default();
        check.verdict.miss(expected, what, shown(&expected.texts()), shown(actual));
        return;
    }
    for (index, (located, actual)) in wanted.iter().zip(actual).enumerate() {
        check.text(located, &format!("{what}[{index}]"), actual);
    }
}
