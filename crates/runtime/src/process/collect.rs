//! After the end: reads what the task was wanted for, from its log and its file system. A missing file is data.
//! Before the start: places stored artifacts. Both run on the runtime's small pool, never on the event loop.

use std::io::Read;

use octoflow_model::{
    ids::AttemptId,
    location::Location,
    order::{Collected, Fetched, Found},
    task::{ArtifactInput, ArtifactOutput, ArtifactSource, StoredArtifact, Task, WantedOutputs},
};

use super::{
    plan::{is_stored, working_dir},
    view::{Inside, View},
};
use crate::{
    artifacts::{self, Alive, Carrier, CarrierError},
    logs::Logs,
};

/// The end of standard output that becomes the result.
const RESULT_BYTES: usize = 256 * 1024;

/// A parameter is held in memory, in the journal and in templates; beyond this it is an artifact.
const PARAMETER_BYTES: u64 = 64 * 1024 * 1024;

/// Nobody can take back what is collected: the task is over, and its outputs are wanted whatever becomes of the run.
const ALWAYS: Alive<'static> = &|| true;

/// Whether there is anything to look for. The last words came with the end.
pub(crate) fn is_needed(wanted: &WantedOutputs) -> bool {
    wanted.result || !wanted.parameters.is_empty() || !wanted.artifacts.is_empty() || wanted.log.is_some()
}

pub(crate) fn collect(
    logs: &Logs,
    carrier: &Carrier,
    attempt: AttemptId,
    task: &Task,
    root: Option<&View>,
) -> Collected {
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
                    (Some(view), Ok(place)) => {
                        sent(carrier, output, artifacts::save(carrier.store(), view, &place, output))
                    }
                    (None, _) => Found::Failed(gone()),
                    (_, Err(why)) => Found::Failed(why),
                };
                (output.name.clone(), found)
            })
            .collect(),
        log: wanted
            .log
            .as_ref()
            .map(|output| sent(carrier, output, artifacts::keep_log(carrier.store(), logs, attempt, output))),
        // The spawner has them.
        message: None,
        fetched: Vec::new(),
    }
}

/// What was saved goes on to where it belongs.
fn sent(carrier: &Carrier, output: &ArtifactOutput, found: Found<StoredArtifact>) -> Found<StoredArtifact> {
    match (&output.to, found) {
        (Some(location), Found::Here(artifact)) => match carrier.send(location, &artifact, ALWAYS) {
            Ok(()) => Found::Here(artifact),
            Err(error) => Found::Failed(format!("the artifact `{}` could not be sent away: {error}", output.name)),
        },
        (_, found) => found,
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

/// Whether collecting sends something elsewhere, which may take long.
pub(crate) fn goes_away(task: &Task) -> bool {
    task.wanted.artifacts.iter().chain(task.wanted.log.as_deref()).any(|output| output.to.is_some())
}

/// Whether staging fetches something from elsewhere, which may take long.
pub(crate) fn comes_from_away(task: &Task) -> bool {
    let away = |source: &ArtifactSource| matches!(source, ArtifactSource::Remote { location, .. } if !matches!(location, Location::Local(_)));
    task.inputs.iter().any(|input| away(&input.source))
}

/// Places every input that is not there already; answers what was fetched for it. `Err` is a sentence for the user.
pub(crate) fn stage(
    carrier: &Carrier,
    task: &Task,
    view: &View,
    alive: Alive<'_>,
) -> Result<Vec<(String, Fetched)>, String> {
    let mut fetched = Vec::new();
    for input in task.inputs.iter().filter(|input| is_stored(&input.source, input.archive)) {
        stage_one(carrier, task, view, input, alive, &mut fetched).map_err(|why| {
            format!("the input artifact `{}` could not be placed at `{}`: {why}", input.name, input.path)
        })?;
    }
    Ok(fetched)
}

fn stage_one(
    carrier: &Carrier,
    task: &Task,
    view: &View,
    input: &ArtifactInput,
    alive: Alive<'_>,
    fetched: &mut Vec<(String, Fetched)>,
) -> Result<(), String> {
    let dir = working_dir(task);
    match &input.source {
        ArtifactSource::Stored { artifact, sub_path } => {
            let parcel = artifacts::Parcel::stored(carrier.store(), artifact)?;
            artifacts::place(view, input, parcel, sub_path.as_deref(), dir)
        }
        ArtifactSource::Remote { location, sub_path, optional } => match carrier.fetch(location, alive) {
            Ok((parcel, found)) => {
                fetched.push((input.name.clone(), found));
                artifacts::place(view, input, parcel, sub_path.as_deref(), dir)
            }
            Err(CarrierError::Absent(_)) if *optional => Ok(()),
            Err(error) => Err(error.to_string()),
        },
        ArtifactSource::Raw { data } => {
            Err(format!("it is {} bytes of text and cannot be unpacked; leave its `archive` out", data.len()))
        }
    }
}
