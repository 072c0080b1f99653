//! Catalog backed by the store: everything that runs created here may refer to.

use std::{path::Path, sync::Arc};

use octoflow_engine::argo::{admit::Catalog, refer::Reach};
use octoflow_runtime::process::hostpath::HostPaths;
use octoflow_store::Reader;
use serde_json::Value;

pub(crate) struct StoreCatalog {
    reader: Reader,
    machine: Machine,
}

/// What this machine lets steps use.
#[derive(Clone)]
pub(crate) struct Machine {
    pub data_dir: Arc<Path>,
    pub host_paths: Arc<HostPaths>,
}

impl StoreCatalog {
    pub(crate) fn new(reader: Reader, machine: Machine) -> Self {
        Self { reader, machine }
    }

    fn has(&self, kind: &str, namespace: &str, name: &str) -> bool {
        matches!(self.reader.object(kind, namespace, name), Ok(Some(_)))
    }
}

impl Catalog for StoreCatalog {
    fn has_config_map(&self, namespace: &str, name: &str) -> bool {
        self.has("ConfigMap", namespace, name)
    }

    fn has_secret(&self, namespace: &str, name: &str) -> bool {
        self.has("Secret", namespace, name)
    }

    fn has_claim(&self, namespace: &str, name: &str) -> bool {
        self.has("PersistentVolumeClaim", namespace, name)
    }

    fn config_map(&self, namespace: &str, name: &str) -> Option<Value> {
        let object = self.reader.object("ConfigMap", namespace, name).ok()??;
        serde_json::from_slice(&object.body).ok()
    }

    fn pod_group(&self, namespace: &str, name: &str) -> Option<Value> {
        let object = self.reader.object("PodGroup", namespace, name).ok()??;
        serde_json::from_slice(&object.body).ok()
    }

    fn host_path(&self, path: &str) -> Result<(), String> {
        let refused = self.machine.host_paths.check(Path::new(path), &self.machine.data_dir);
        refused.map_err(|refused| refused.to_string())
    }

    fn template(&self, reach: Reach, namespace: &str, name: &str) -> Option<Value> {
        let object = self.reader.object(reach.kind(), stored(reach, namespace), name).ok()??;
        serde_json::from_slice(&object.body).ok()
    }

    fn template_names(&self, reach: Reach, namespace: &str) -> Vec<String> {
        let kept = self.reader.objects(reach.kind(), Some(stored(reach, namespace)));
        kept.into_iter().flatten().map(|object| object.name).collect()
    }
}

fn stored(reach: Reach, namespace: &str) -> &str {
    match reach {
        Reach::Namespace => namespace,
        Reach::Cluster => "",
    }
}
