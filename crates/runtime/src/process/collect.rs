//! Collects a task's outputs after its end, from its log and its file system; a missing file is data. Stages stored
//! artifacts before its start. Both run on the runtime's small pool, never on the event loop.

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
    artifacts::{self, ArtifactClient, ArtifactError, IsWanted},
    logs::Logs,
};

/// Bytes of standard output, from its end, that become the result.
const RESULT_BYTES: usize = 256 * 1024;

/// Limit of a parameter, which is held in memory, in the journal and in templates; anything larger is an artifact.
const PARAMETER_BYTES: u64 = 64 * 1024 * 1024;

/// Cancellation check for collecting, which is never cancelled: the task is over, and its outputs are wanted whatever
/// becomes of the run.
const ALWAYS: IsWanted<'static> = &|| true;

/// Returns whether there is anything to collect. The termination message came with the end.
pub(crate) fn is_needed(wanted: &WantedOutputs) -> bool {
    wanted.result || !wanted.parameters.is_empty() || !wanted.artifacts.is_empty() || wanted.log.is_some()
}

pub(crate) fn collect(
    logs: &Logs,
    artifact_client: &ArtifactClient,
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
                        sent(artifact_client, output, artifacts::save(artifact_client.store(), view, &place, output))
                    }
                    (None, _) => Found::Failed(gone()),
                    (_, Err(why)) => Found::Failed(why),
                };
                (output.name.clone(), found)
            })
            .collect(),
        log: wanted.log.as_ref().map(|output| {
            sent(artifact_client, output, artifacts::keep_log(artifact_client.store(), logs, attempt, output))
        }),
        // The spawner has it.
        message: None,
        fetched: Vec::new(),
    }
}

/// Uploads a saved artifact to its location, if it has one.
fn sent(
    artifact_client: &ArtifactClient,
    output: &ArtifactOutput,
    found: Found<StoredArtifact>,
) -> Found<StoredArtifact> {
    match (&output.to, found) {
        (Some(location), Found::Here(artifact)) => match artifact_client.send(location, &artifact, ALWAYS) {
            Ok(()) => Found::Here(artifact),
            Err(error) => Found::Failed(format!("the artifact `{}` could not be uploaded: {error}", output.name)),
        },
        (_, found) => found,
    }
}

/// Returns the end of standard output without its last newline. An unreadable log gives no result; the log command says
/// why.
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

/// Returns whether collecting uploads something, which may take long.
pub(crate) fn uploads(task: &Task) -> bool {
    task.wanted.artifacts.iter().chain(task.wanted.log.as_deref()).any(|output| output.to.is_some())
}

/// Returns whether staging downloads something, which may take long.
pub(crate) fn downloads(task: &Task) -> bool {
    let away = |source: &ArtifactSource| matches!(source, ArtifactSource::Remote { location, .. } if !matches!(location, Location::Local(_)));
    task.inputs.iter().any(|input| away(&input.source))
}

/// Places every input that is not written as a file; returns what was fetched. `Err` is a sentence for the user.
pub(crate) fn stage(
    artifact_client: &ArtifactClient,
    task: &Task,
    view: &View,
    is_wanted: IsWanted<'_>,
) -> Result<Vec<(String, Fetched)>, String> {
    let mut fetched = Vec::new();
    for input in task.inputs.iter().filter(|input| is_stored(&input.source, input.archive)) {
        stage_one(artifact_client, task, view, input, is_wanted, &mut fetched).map_err(|why| {
            format!("the input artifact `{}` could not be placed at `{}`: {why}", input.name, input.path)
        })?;
    }
    Ok(fetched)
}

fn stage_one(
    artifact_client: &ArtifactClient,
    task: &Task,
    view: &View,
    input: &ArtifactInput,
    is_wanted: IsWanted<'_>,
    fetched: &mut Vec<(String, Fetched)>,
) -> Result<(), String> {
    let dir = working_dir(task);
    match &input.source {
        ArtifactSource::Stored { artifact, sub_path } => {
            let artifact_file = artifacts::ArtifactFile::stored(artifact_client.store(), artifact)?;
            artifacts::place(view, input, artifact_file, sub_path.as_deref(), dir)
        }
        ArtifactSource::Remote { location, sub_path, optional } => match artifact_client.fetch(location, is_wanted) {
            Ok((artifact_file, found)) => {
                fetched.push((input.name.clone(), found));
                artifacts::place(view, input, artifact_file, sub_path.as_deref(), dir)
            }
            Err(ArtifactError::Absent(_)) if *optional => Ok(()),
            Err(error) => Err(error.to_string()),
        },
        ArtifactSource::Raw { data } => {
            Err(format!("it is {} bytes of text and cannot be unpacked; leave its `archive` out", data.len()))
        }
    }
}
