//! Catalog backed by the store: everything that runs created here may refer to.

use std::{path::Path, sync::Arc};

use octoflow_engine::{
    argo::{admit::Catalog, refer::Reach},
    kinds::{Kind, scheduling::QueueState},
    schedule::spec::{NodeSpec, QueueSpec},
};
use octoflow_runtime::process::hostpath::HostPaths;
use octoflow_store::Reader;
use serde_json::Value;

use super::scheduling::{Declared, SharedDeclared};
use crate::node;

pub(crate) struct StoreCatalog {
    reader: Reader,
    machine: Machine,
    declared: SharedDeclared,
}

/// What this machine lets steps use.
#[derive(Clone)]
pub(crate) struct Machine {
    pub data_dir: Arc<Path>,
    pub host_paths: Arc<HostPaths>,
    /// This machine as a node, without what people have changed since.
    pub node: Arc<NodeSpec>,
}

impl StoreCatalog {
    pub(crate) fn new(reader: Reader, machine: Machine, declared: SharedDeclared) -> Self {
        Self { reader, machine, declared }
    }
}

impl Catalog for StoreCatalog {
    fn has_object(&self, kind: &'static Kind, namespace: &str, name: &str) -> bool {
        matches!(self.reader.object(kind.key, namespace, name), Ok(Some(_)))
    }

    fn config_map(&self, namespace: &str, name: &str) -> Option<Value> {
        let object = self.reader.object("ConfigMap", namespace, name).ok()??;
        serde_json::from_slice(&object.body).ok()
    }

    fn pod_group(&self, namespace: &str, name: &str) -> Option<Value> {
        let object = self.reader.object("PodGroup", namespace, name).ok()??;
        serde_json::from_slice(&object.body).ok()
    }

    fn queue(&self, name: &str) -> Option<QueueState> {
        self.declared.read(&self.reader, |declared| declared.queue(name)).ok()
    }

    fn queue_path(&self, name: &str) -> Vec<QueueSpec> {
        self.declared.read(&self.reader, |declared| declared.queue_path(name)).unwrap_or_default()
    }

    fn nodes(&self) -> Option<Vec<NodeSpec>> {
        node::stored(&self.reader, &self.machine.node).ok().map(|node| vec![node])
    }

    fn queue_of_namespace(&self, namespace: &str) -> Option<String> {
        self.declared.read(&self.reader, |declared| declared.queue_of_namespace(namespace)).ok()?
    }

    fn queue_names(&self) -> Vec<String> {
        self.declared.read(&self.reader, Declared::queue_names).unwrap_or_default()
    }

    fn has_class(&self, name: &str) -> Option<bool> {
        self.declared.read(&self.reader, |declared| declared.has_class(name)).ok()
    }

    fn class_names(&self) -> Vec<String> {
        self.declared.read(&self.reader, Declared::class_names).unwrap_or_default()
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
