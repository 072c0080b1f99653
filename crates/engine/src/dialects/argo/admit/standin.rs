//! Warns about artifact locations that the local store replaces, because their Secret is missing or only a plugin could
//! reach them, and about undescribed repositories. The run succeeds, but its artifacts are not where the manifest says.

use std::collections::HashSet;

use super::{
    Catalog, Subject, code,
    findings::{At, Findings},
    name,
};
use crate::{
    admit::shape::short,
    dialects::argo::{
        data,
        locate::{DEFAULT_MARK, REPOSITORIES, Repository},
        standin::{self, Obstacle},
    },
};
use octoflow_manifest::Path;
use octoflow_model::{
    argo::{Artifact, ArtifactLocation, location::RepositoryRef},
    meta::DEFAULT_NAMESPACE,
};

pub(super) fn check(subject: &Subject<'_>, others: &dyn Catalog, report: &mut Findings) {
    let workflow = subject.workflow;
    let namespace = workflow.metadata.namespace.as_deref().filter(|name| !name.is_empty()).unwrap_or(DEFAULT_NAMESPACE);
    let mut check = StandInCheck { others, namespace, report, reported: HashSet::new() };
    let spec = Path::root().join("spec");
    let at = At::base(&spec);
    check.artifacts(&at.key("arguments").key("artifacts"), &workflow.spec.arguments.artifacts);
    for entry in &subject.templates.entries {
        let at = At::base(&entry.path);
        check.artifacts(&at.key("inputs").key("artifacts"), &entry.template.inputs.artifacts);
        check.artifacts(&at.key("outputs").key("artifacts"), &entry.template.outputs.artifacts);
        if let Some(place) = &entry.template.archive_location {
            check.place(&at.key("archiveLocation"), place);
        }
        if let Some(Ok(place)) = entry.template.data.as_ref().map(data::source) {
            check.place(&at.key("data").key("source").key("artifactPaths"), &place);
        }
        for (site, call) in entry.calls() {
            check.artifacts(&at.call(site).key("arguments").key("artifacts"), &call.arguments.artifacts);
        }
    }
    check.repository(&at.key("artifactRepositoryRef"), workflow.spec.artifact_repository_ref.as_ref());
}

struct StandInCheck<'a> {
    others: &'a dyn Catalog,
    namespace: &'a str,
    report: &'a mut Findings,
    /// Stores that were reported already.
    reported: HashSet<String>,
}

impl StandInCheck<'_> {
    fn artifacts(&mut self, at: &At<'_>, artifacts: &[Artifact]) {
        for (index, artifact) in artifacts.iter().enumerate() {
            self.place(&at.index(index), &artifact.location);
        }
    }

    fn place(&mut self, at: &At<'_>, place: &ArtifactLocation) {
        let (others, namespace) = (self.others, self.namespace);
        // A Secret named by a variable is only known when the task is built.
        let has_secret = |secret: &str| name::has_variables(secret) || others.has_secret(namespace, secret);
        let Some(obstacle) = standin::obstacle(place, &has_secret) else { return };
        let Some(store) = standin::store(place).filter(|store| self.reported.insert(store.clone())) else { return };
        match obstacle {
            Obstacle::Secret(secret) => self.report.warn(&at.key("s3"), code::STAND_IN, || {
                format!(
                    "Secret '{}' is not here, so the bucket {} is kept in the local store; load the Secret to use the bucket itself",
                    short(secret),
                    short(store.trim_end_matches('/'))
                )
            }),
            Obstacle::Plugin(plugin) => self.report.warn(&at.key("plugin"), code::STAND_IN, || {
                format!(
                    "no plugin runs here, so the store of the plugin '{}' is kept in the local store; name an s3 store to \
                     keep artifacts elsewhere",
                    short(plugin)
                )
            }),
        }
    }

    fn repository(&mut self, at: &At<'_>, reference: Option<&RepositoryRef>) {
        let map = reference.and_then(|reference| reference.config_map.as_deref()).filter(|name| !name.is_empty());
        let key = reference.and_then(|reference| reference.key.as_deref()).filter(|key| !key.is_empty());
        let name = map.unwrap_or(REPOSITORIES);
        if name::has_variables(name) || key.is_some_and(name::has_variables) {
            return;
        }
        if !self.others.has_config_map(self.namespace, name) {
            // The default name alone says no more than no reference.
            if key.is_some() || name != REPOSITORIES {
                self.nobody(&at.key("configMap"), &format!("ConfigMap '{}' is not here", short(name)));
            }
            return;
        }
        let object = self.others.config_map(self.namespace, name);
        let has = |key: &str| match &object {
            Some(object) => ["data", "binaryData"].iter().any(|field| object[*field].get(key).is_some()),
            None => self.others.has_config_key(self.namespace, name, key),
        };
        if let Some(key) = key.filter(|key| !has(key)) {
            return self.nobody(&at.key("key"), &format!("ConfigMap '{}' has no key '{}'", short(name), short(key)));
        }
        let Some(object) = object else { return };
        let Some(key) = key.or_else(|| object["metadata"]["annotations"][DEFAULT_MARK].as_str()) else { return };
        // A malformed repository is reported when it is used.
        let described = object["data"][key].as_str().and_then(|text| Repository::read(text.as_bytes()).ok());
        if let Some(store) = described.and_then(|repository| repository.store) {
            self.place(at, &store);
        }
    }

    fn nobody(&mut self, at: &At<'_>, why: &str) {
        self.report.warn(at, code::STAND_IN, || {
            format!("{why}, so artifacts are kept in the local store; load the repository's description to use it")
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        dialects::argo::admit::admit,
        kinds::{
            Kind,
            core::{CONFIG_MAP, SECRET},
        },
    };

    #[derive(Default)]
    struct Objects {
        secrets: Vec<&'static str>,
        map: Option<Value>,
    }

    impl Catalog for Objects {
        fn has_object(&self, kind: &'static Kind, _: &str, name: &str) -> bool {
            let map = *kind == CONFIG_MAP && self.map.as_ref().is_some_and(|map| map["metadata"]["name"] == name);
            map || *kind == SECRET && self.secrets.contains(&name)
        }
        fn has_config_key(&self, _: &str, _: &str, key: &str) -> bool {
            self.map.as_ref().is_some_and(|map| map["data"].get(key).is_some())
        }
        fn config_map(&self, _: &str, _: &str) -> Option<Value> {
            self.map.clone()
        }
    }

    fn bucket(bucket: &str) -> Value {
        json!({"bucket": bucket, "endpoint": "minio:9000", "key": "k",
            "accessKeySecret": {"name": "cred", "key": "a"}, "secretKeySecret": {"name": "cred", "key": "s"}})
    }

    fn warned(controller: &Objects, spec: Value) -> Vec<(String, String)> {
        let mut object = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "w"},
            "spec": {"entrypoint": "main", "templates": [{"name": "main",
                "container": {"image": "i", "command": ["c"]}}]}});
        object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let admitted = admit(&object, controller).unwrap_or_else(|problems| panic!("{problems:?}"));
        let reported = admitted.warnings().iter().filter(|problem| problem.code == code::STAND_IN);
        reported.map(|one| (one.path.as_ref().unwrap().to_string(), one.message.clone())).collect()
    }

    #[test]
    fn a_bucket_without_its_secret_is_warned_of_once() {
        let outputs = json!([{"name": "a", "path": "/a", "s3": bucket("one")}, {"name": "b", "path": "/b", "s3": bucket("one")},
            {"name": "c", "path": "/c", "s3": bucket("two")}]);
        let spec = json!({"templates": [{"name": "main", "container": {"image": "i", "command": ["c"]},
            "archiveLocation": {"plugin": {"name": "mine", "key": "x"}}, "outputs": {"artifacts": outputs}}]});
        let reported = warned(&Objects::default(), spec.clone());
        assert_eq!(reported.len(), 3, "{reported:?}");
        assert_eq!(reported[0].0, "spec.templates[0].outputs.artifacts[0].s3");
        assert!(
            reported[0].1.contains("Secret 'cred' is not here") && reported[0].1.contains("s3://minio:9000/one"),
            "{reported:?}"
        );
        assert!(reported[0].1.contains("load the Secret to use the bucket itself"), "{reported:?}");
        assert!(
            reported[1].1.contains("s3://minio:9000/two") && reported[2].1.contains("plugin 'mine'"),
            "{reported:?}"
        );
        let reported = warned(&Objects { secrets: vec!["cred"], map: None }, spec);
        assert_eq!(reported.len(), 1, "only the plugin: {reported:?}");
    }

    #[test]
    fn a_repository_that_is_not_described_or_not_reachable_is_warned_of() {
        let map = |data: Value| {
            Some(json!({"metadata": {"name": "artifact-repositories",
            "annotations": {DEFAULT_MARK: "usual"}}, "data": data}))
        };
        let controller = |data: Value| Objects { secrets: Vec::new(), map: map(data) };
        let refer = |reference: Value| json!({"artifactRepositoryRef": reference});
        let none = Objects::default();
        assert!(warned(&none, json!({})).is_empty());
        assert!(warned(&none, refer(json!({"configMap": "artifact-repositories"}))).is_empty());
        assert!(warned(&none, refer(json!({"key": "x"})))[0].1.contains("'artifact-repositories' is not here"));
        assert!(warned(&none, refer(json!({"configMap": "mine"})))[0].1.contains("'mine' is not here"));
        let s3 = json!({"s3": bucket("b")}).to_string();
        assert!(warned(&controller(json!({"x": s3})), refer(json!({"key": "y"})))[0].1.contains("has no key 'y'"));
        assert!(warned(&controller(json!({"x": s3})), refer(json!({"key": "x"})))[0].1.contains("Secret 'cred'"));
        assert!(warned(&controller(json!({"usual": "plugin: {name: p}"})), json!({}))[0].1.contains("plugin 'p'"));
    }
}
