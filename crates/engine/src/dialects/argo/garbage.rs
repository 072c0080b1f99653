//! Selects the artifacts of a run that are to be deleted, and when. An artifact's own strategy overrides the
//! workflow's.

use octoflow_model::{
    NodeIx,
    argo::{Artifact, ArtifactGc, ArtifactLocation, NodeKind},
    garbage::{Garbage, GcStrategy},
    location::Location,
    task::StoredArtifact,
};
use serde::Deserialize;

use super::{locate, run::Run};
use crate::engine::SharedState;

/// Returns all artifacts to be deleted, when the run ends or when it is deleted.
pub fn of(run: &Run) -> Vec<Garbage> {
    let all = strategy(run.program.workflow.spec.artifact_gc.as_ref());
    let mut found = Vec::new();
    for (at, node) in run.state.nodes.iter().enumerate() {
        // Only tasks produce artifacts; all other nodes pass them on.
        let (NodeKind::Pod, Some(outputs)) = (node.kind, &node.outputs) else { continue };
        if node.reuse.as_ref().is_some_and(|reuse| reuse.skipped) {
            // Reused artifacts belong to the run that produced them.
            continue;
        }
        let at = NodeIx(at as u32);
        if outputs.artifacts.is_empty() {
            continue;
        }
        let declared = &run.compiled_of(at).template.outputs.artifacts;
        for output in &outputs.artifacts {
            let own = declared.iter().find(|artifact| artifact.name == output.name).and_then(own_strategy);
            let strategy = own.or(all).unwrap_or(GcStrategy::Never);
            if strategy != GcStrategy::Never && !output.artifact.deleted {
                found.push(Garbage {
                    node: run.state.id_of(at),
                    name: output.name.clone(),
                    strategy,
                    artifact: output.artifact.clone(),
                });
            }
        }
    }
    found
}

/// Whether the manifest has any artifact garbage collection.
pub fn is_specified(run: &Run) -> bool {
    strategy(run.program.workflow.spec.artifact_gc.as_ref()).is_some()
        || run
            .program
            .templates()
            .any(|compiled| compiled.template.outputs.artifacts.iter().any(|one| own_strategy(one).is_some()))
}

/// Returns the remote location of an artifact, with credentials; `None` if it is only in the local store.
pub fn remote_location(
    world: &SharedState,
    namespace: &str,
    artifact: &StoredArtifact,
) -> Result<Option<Location>, String> {
    let Some(noted) = &artifact.noted else { return Ok(None) };
    let place = ArtifactLocation::deserialize(noted).map_err(|error| error.to_string())?;
    locate::complete(world, namespace, &place).map(Some)
}

fn own_strategy(artifact: &Artifact) -> Option<GcStrategy> {
    strategy(artifact.artifact_gc.as_ref())
}

fn strategy(gc: Option<&ArtifactGc>) -> Option<GcStrategy> {
    gc.and_then(|gc| gc.strategy).filter(|strategy| *strategy != GcStrategy::Unset)
}
