//! After the end: reads what the task was wanted for, from its log and its file system. A missing file is data.
//! Before the start: places stored artifacts. Both run on the runtime's small pool, never on the event loop.

use std::io::Read;

use octoflow_model::{
    ids::AttemptId,
    order::{Collected, Found},
    task::{ArtifactSource, Task},
};

use super::{
    plan::{is_stored, working_dir},
    view::{Inside, View},
};
use crate::{
    artifacts::{self, Store},
    logs::Logs,
};

/// The end of standard output that becomes the result.
const RESULT_BYTES: usize = 256 * 1024;

/// A parameter is held in memory, in the journal and in templates; beyond this it is an artifact.
const PARAMETER_BYTES: u64 = 64 * 1024 * 1024;

pub(crate) fn collect(logs: &Logs, store: &Store, attempt: AttemptId, task: &Task, root: Option<&View>) -> Collected {
    let wanted = &task.wanted;
    let place = |path: &str| Inside::new(path, working_dir(task));
    let gone = || "the task's files are gone: its spawner died before they were collected".to_owned();
    Collected {
        result: wanted.result.then(|| result(logs, attempt)).flatten(),
        parameters: wanted
            .parameters
            .iter()
            .map(|(name, path)| {
                let found = match (root, place(path)) {
                    (Some(view), Ok(place)) => parameter(view, &place),
                    (None, _) => Found::Failed(gone()),
                    (_, Err(why)) => Found::Failed(why),
                };
                (name.clone(), found)
            })
            .collect(),
        artifacts: wanted
            .artifacts
            .iter()
            .map(|output| {
                let found = match (root, place(&output.path)) {
                    (Some(view), Ok(place)) => artifacts::save(store, view, &place, output),
                    (None, _) => Found::Failed(gone()),
                    (_, Err(why)) => Found::Failed(why),
                };
                (output.name.clone(), found)
            })
            .collect(),
    }
}

/// The end of standard output without its last newline. An unreadable log gives no result; the log command says why.
fn result(logs: &Logs, attempt: AttemptId) -> Option<String> {
    let (bytes, _) = logs.tail_of_stdout(attempt, RESULT_BYTES).ok()?;
    Some(without_newline(&bytes))
}

fn parameter(view: &View, place: &Inside) -> Found<String> {
    let path = place.path().display();
    let found = match view.find(place.path()) {
        Ok(Some(found)) => found,
        Ok(None) => return Found::Missing,
        Err(error) => return Found::Failed(format!("`{path}`: {error}")),
    };
    if found.about.is_dir() {
        return Found::Failed(format!("`{path}` is a directory"));
    }
    let mut bytes = Vec::new();
    match found.open().and_then(|file| file.take(PARAMETER_BYTES + 1).read_to_end(&mut bytes)) {
        Ok(_) if bytes.len() as u64 > PARAMETER_BYTES => {
            Found::Failed(format!("`{path}` is larger than {PARAMETER_BYTES} bytes; make it an output artifact"))
        }
        Ok(_) => Found::Here(without_newline(&bytes)),
        Err(error) => Found::Failed(format!("`{path}`: {error}")),
    }
}

fn without_newline(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.strip_suffix(b"\n").unwrap_or(bytes)).into_owned()
}

/// Places every stored input. `Err` is a sentence for the user.
pub(crate) fn stage(store: &Store, task: &Task, view: &View) -> Result<(), String> {
    let dir = working_dir(task);
    for input in task.inputs.iter().filter(|input| is_stored(&input.source, input.archive)) {
        match &input.source {
            ArtifactSource::Stored { artifact, sub_path } => {
                artifacts::place(store, view, input, artifact, sub_path.as_deref(), dir)?;
            }
            ArtifactSource::Raw { data } => {
                return Err(format!(
                    "the input artifact `{}` is {} bytes of text and cannot be unpacked; leave its `archive` out",
                    input.name,
                    data.len()
                ));
            }
        }
    }
    Ok(())
}
