//! What a run made here may refer to: everything that is kept.

use octoflow_engine::argo::{admit::Surroundings, refer::Reach};
use octoflow_store::Reader;
use serde_json::Value;

pub(crate) struct Around(pub Reader);

impl Around {
    fn has(&self, kind: &str, namespace: &str, name: &str) -> bool {
        matches!(self.0.object(kind, namespace, name), Ok(Some(_)))
    }
}

impl Surroundings for Around {
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
        let object = self.0.object("ConfigMap", namespace, name).ok()??;
        serde_json::from_slice(&object.body).ok()
    }

    fn pod_group(&self, namespace: &str, name: &str) -> Option<Value> {
        let object = self.0.object("PodGroup", namespace, name).ok()??;
        serde_json::from_slice(&object.body).ok()
    }

    fn template(&self, reach: Reach, namespace: &str, name: &str) -> Option<Value> {
        let object = self.0.object(reach.kind(), shelf(reach, namespace), name).ok()??;
        serde_json::from_slice(&object.body).ok()
    }

    fn template_names(&self, reach: Reach, namespace: &str) -> Vec<String> {
        let kept = self.0.objects(reach.kind(), Some(shelf(reach, namespace)));
        kept.into_iter().flatten().map(|object| object.name).collect()
    }
}

fn shelf(reach: Reach, namespace: &str) -> &str {
    match reach {
        Reach::Namespace => namespace,
        Reach::Cluster => "",
    }
}
