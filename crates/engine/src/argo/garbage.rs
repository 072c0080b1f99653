//! Which artifacts of a run are to be deleted, and when. An artifact's own word counts before the workflow's.

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

/// Everything that will be deleted, at the run's end or with the run.
pub fn of(run: &Run) -> Vec<Garbage> {
    let all = strategy(run.program.workflow.spec.artifact_gc.as_ref());
    let mut found = Vec::new();
    for (at, node) in run.state.nodes.iter().enumerate() {
        // Only tasks make artifacts; everything else hands on theirs.
        let (NodeKind::Pod, Some(outputs)) = (node.kind, &node.outputs) else { continue };
        if node.past.as_ref().is_some_and(|past| past.skipped) {
            // They belong to the run that made them.
            continue;
        }
        let at = NodeIx(at as u32);
        if outputs.artifacts.is_empty() {
            continue;
        }
        let declared = &run.recipe_of(at).template.outputs.artifacts;
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

/// Whether the manifest speaks of deleting artifacts at all.
pub fn is_specified(run: &Run) -> bool {
    strategy(run.program.workflow.spec.artifact_gc.as_ref()).is_some()
        || run
            .program
            .recipes()
            .any(|recipe| recipe.template.outputs.artifacts.iter().any(|one| own_strategy(one).is_some()))
}

/// Where an artifact was sent to, with credentials; `None` when it is only here.
pub fn whereabouts(
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
