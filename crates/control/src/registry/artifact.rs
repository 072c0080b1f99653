//! Artifacts of runs, looked up by node and name as the status lists them. No input of a caller becomes part of a path.

use std::fs::File;

use octoflow_engine::argo::garbage::remote_location;
use octoflow_model::task::StoredArtifact;
use octoflow_runtime::artifacts::{ArtifactError, Download};
use octoflow_store::RunRow;
use serde::Deserialize;
use serde_json::Value;

use super::{Fault, Registry};
use crate::{Error, controller::world};

/// Whether a node's input or output artifacts are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Inputs,
    Outputs,
}

/// Content of an artifact.
#[derive(Debug)]
pub struct Artifact {
    /// File name for a download.
    pub name: String,
    pub file: File,
    pub size: u64,
}

#[derive(Debug)]
pub enum ArtifactRead {
    Found(Artifact),
    /// The artifact does not exist or has no content; the text says why.
    Absent(String),
}

impl Registry {
    /// Opens an artifact of a node; `inner` selects one file of a directory.
    pub fn artifact(
        &self,
        row: &RunRow,
        node: &str,
        side: Side,
        name: &str,
        inner: Option<&str>,
    ) -> Result<ArtifactRead, Fault> {
        let object = self.run_with_node(row, node)?;
        let nodes = &object["status"]["nodes"];
        let Some(found) = nodes.get(node) else {
            return Ok(ArtifactRead::Absent(format!("workflow `{}` has no node with the id `{node}`", row.name)));
        };
        let put = match side {
            Side::Inputs => "inputs",
            Side::Outputs => "outputs",
        };
        let listed = found[put]["artifacts"].as_array().into_iter().flatten().find(|one| one["name"] == name);
        let Some(listed) = listed else {
            return Ok(ArtifactRead::Absent(format!("node `{node}` has no artifact `{name}` among its {put}")));
        };
        let inner = inner.or(listed["subPath"].as_str());
        let loan = match self.open_artifact(&row.namespace, listed, inner) {
            Ok(loan) => loan,
            Err(ArtifactError::Absent(why)) => {
                return Ok(ArtifactRead::Absent(format!("artifact `{name}` is not there: {why}")));
            }
            Err(ArtifactError::Failed(why)) => {
                return Err(Fault::Controller(Error::Object { what: format!("artifact `{name}`"), why }));
            }
        };
        let Download { file, size, tarball } = loan;
        Ok(ArtifactRead::Found(Artifact { name: file_name(listed, name, inner, tarball), file, size }))
    }

    fn open_artifact(&self, namespace: &str, listed: &Value, inner: Option<&str>) -> Result<Download, ArtifactError> {
        let failed = ArtifactError::Failed;
        if listed["deleted"] == true {
            return Err(ArtifactError::Absent("it was deleted".to_owned()));
        }
        let artifact_client = self.controller().artifact_client();
        if let Some(text) = listed["raw"]["data"].as_str() {
            return artifact_client.download_text(text);
        }
        if let Some(kept) = listed.get("local") {
            let kept = StoredArtifact::deserialize(kept).map_err(|error| failed(error.to_string()))?;
            match artifact_client.download(&kept, inner) {
                // It may still be in the external storage it was uploaded to.
                Err(ArtifactError::Absent(_)) if is_external(listed) => {}
                answer => return answer,
            }
        }
        if !is_external(listed) {
            return Err(ArtifactError::Absent("it is optional, and nothing was given".to_owned()));
        }
        let reader = self.handle().store.reader().map_err(|error| failed(error.to_string()))?;
        let world = world(&reader).map_err(|error| failed(error.to_string()))?;
        let place = StoredArtifact { noted: Some(listed.clone()), ..StoredArtifact::default() };
        let location = remote_location(&world, namespace, &place).map_err(failed)?;
        let location = location.ok_or_else(|| failed("its location is unknown".to_owned()))?;
        artifact_client.download_from(&location, inner)
    }
}

fn is_external(listed: &Value) -> bool {
    const PLACES: [&str; 9] = ["s3", "http", "git", "gcs", "oss", "azure", "hdfs", "artifactory", "plugin"];
    PLACES.iter().any(|place| listed[place].is_object())
}

/// Returns the last part of its key or path, or its own name.
fn file_name(listed: &Value, name: &str, inner: Option<&str>, tarball: bool) -> String {
    let end = |text: &str| text.rsplit('/').find(|part| !part.is_empty()).map(str::to_owned);
    if let Some(inner) = inner {
        return end(inner).unwrap_or_else(|| name.to_owned());
    }
    let keys = [&listed["local"]["key"], &listed["s3"]["key"], &listed["path"]];
    let base = keys.into_iter().filter_map(Value::as_str).find_map(end).unwrap_or_else(|| name.to_owned());
    if tarball && !base.ends_with(".tgz") { format!("{base}.tgz") } else { base }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn files_are_called_by_what_they_were() {
        let listed = json!({"name": "a", "local": {"key": "w/p/a.tgz"}, "path": "/tmp/out"});
        assert_eq!(file_name(&listed, "a", None, false), "a.tgz");
        assert_eq!(file_name(&json!({"path": "/tmp/out/"}), "a", None, true), "out.tgz");
        assert_eq!(file_name(&json!({}), "a", Some("x/y.txt"), false), "y.txt");
        assert_eq!(file_name(&json!({}), "a", None, false), "a");
    }
}
