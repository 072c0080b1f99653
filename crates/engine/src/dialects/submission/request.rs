//! What a submitted job asks of runtimes: to call a plugin, and to create the run that came out.

use std::{collections::BTreeMap, time::Duration};

use octoflow_model::{
    NodeIx, Task,
    plugin::{API_VERSION, JOB_KIND},
    request::{BuiltinRequest, HttpRequest, Lane, Request, SubmitRequest},
    submitted::{BoundPlugin, mark},
    task::EnvValue,
};
use serde_json::{Value, json};

use super::{
    answer::MAX_ANSWER,
    run::{CALL, CHILD, Run},
};
use crate::{kinds, plugins::PluginTable};

const BUILTIN: &str = "builtin:";

/// Metadata that belongs to another object: the job as its user had it somewhere, or as a plugin wrote it.
const FOREIGN_METADATA: [&str; 8] = [
    "generateName",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
];

/// Returns the name of a built-in plugin.
pub(super) fn builtin(plugin: &BoundPlugin) -> Option<&str> {
    plugin.address.strip_prefix(BUILTIN)
}

impl Run {
    /// Builds the task of a node's current attempt; on error returns the reason.
    pub(super) fn task(&self, node: NodeIx, table: &PluginTable) -> Result<Task, String> {
        let (name, request) = match node {
            CALL => {
                let plugin = self.state.walk.plugin().ok_or("no plugin has its turn")?;
                (plugin.key.clone(), self.call_request(plugin, table))
            }
            CHILD => (self.state.head.name.to_string(), Request::Submit(self.submit_request())),
            node => return Err(format!("a submitted job has no node {node}")),
        };
        Ok(Task { name, call: Some(Box::new(request)), ..Task::default() })
    }

    /// Returns what plugins are sent.
    fn input(&self) -> Value {
        let state = &self.state;
        json!({"factors": state.walk.factors, "header": state.header, "job": state.walk.job})
    }

    fn call_request(&self, plugin: &BoundPlugin, table: &PluginTable) -> Request {
        let head = &self.state.head;
        if let Some(name) = builtin(plugin) {
            return Request::Builtin(BuiltinRequest {
                name: name.to_owned(),
                options: plugin.options.clone(),
                input: self.input(),
                namespace: head.namespace.to_string(),
                job: head.name.to_string(),
            });
        }
        let plain = |text: &str| EnvValue::Plain(text.to_owned());
        let mut headers = vec![
            ("Content-Type".to_owned(), plain("application/json")),
            ("Accept".to_owned(), plain("application/json")),
        ];
        // A feature that is gone has no credentials any more.
        let secrets = table.of_feature(&plugin.feature, &plugin.key).map(|known| &known.secrets);
        if let Some(authorization) = secrets.and_then(|secrets| secrets.authorization.as_ref()) {
            headers.push(("Authorization".to_owned(), EnvValue::Secret(format!("Basic {authorization}"))));
        }
        Request::Http(HttpRequest {
            method: "POST".to_owned(),
            url: plugin.address.clone(),
            headers,
            body: serde_json::to_vec(&self.input()).expect("a value can be written down"),
            timeout: Duration::from_secs(plugin.timeout_seconds.into()),
            verify: true,
            // What is sent is for the plugin alone.
            follow: false,
            idempotency_key: Some(self.idempotency_key(plugin)),
            lane: Some(Lane { name: plugin.key.clone(), limit: plugin.concurrency }),
            max_body: Some(MAX_ANSWER as u64),
        })
    }

    /// Returns the key under which a plugin knows a question that it is asked again. A gate that is asked once more, because
    /// something may have changed, is asked another question, and so is every plugin when the job is retried.
    fn idempotency_key(&self, plugin: &BoundPlugin) -> String {
        let mut key = format!("{}/{}", self.state.head.name, plugin.key);
        let (walks, asks) = (self.replaced.len(), self.state.walk.asks);
        for (mark, count) in [('~', walks), ('#', asks as usize)] {
            if count > 0 {
                key.push_str(&format!("{mark}{count}"));
            }
        }
        key
    }

    fn submit_request(&self) -> SubmitRequest {
        let head = &self.state.head;
        SubmitRequest {
            namespace: head.namespace.to_string(),
            name: head.name.to_string(),
            seed: "job".to_owned(),
            manifest: self.child_manifest(),
            child: self.child(CHILD),
        }
    }

    /// Returns the manifest of the run that came out: the job under the name of this one, with its header.
    fn child_manifest(&self) -> Value {
        let (state, head) = (&self.state, &self.state.head);
        let mut manifest = state.walk.job.clone();
        if let Some(fields) = manifest.as_object_mut() {
            fields.remove("status");
            // The place where a job of another kind may name its id, which is the name now.
            fields.remove("jobID");
            fields.entry("metadata").or_insert_with(|| json!({}));
        }
        if manifest["apiVersion"].as_str().is_none_or(str::is_empty)
            && let Ok(dialect) = kinds::dialect_of(&manifest)
        {
            manifest["apiVersion"] = json!(dialect.kind.api_version());
        }
        // One that is no mapping stays as it is, and is refused with its place.
        if let Some(metadata) = manifest["metadata"].as_object_mut() {
            metadata.retain(|field, _| !FOREIGN_METADATA.contains(&field.as_str()));
            metadata.insert("name".to_owned(), json!(*head.name));
            metadata.insert("namespace".to_owned(), json!(*head.namespace));
            metadata.insert("ownerReferences".to_owned(), json!([self.owner()]));
            let labels = metadata.entry("labels").or_insert(Value::Null);
            if labels.is_null() {
                *labels = json!({});
            }
            if let Some(labels) = labels.as_object_mut() {
                labels.insert(mark::JOB.to_owned(), json!(*head.name));
            }
            let annotations = metadata.entry("annotations").or_insert(Value::Null);
            if annotations.is_null() {
                *annotations = json!({});
            }
            if let Some(annotations) = annotations.as_object_mut() {
                annotations.insert(mark::HEADER.to_owned(), json!(state.header.to_string()));
            }
        }
        manifest
    }

    fn owner(&self) -> BTreeMap<&'static str, Value> {
        let head = &self.state.head;
        BTreeMap::from([
            ("apiVersion", json!(API_VERSION)),
            ("kind", json!(JOB_KIND)),
            ("name", json!(*head.name)),
            ("uid", json!(*head.uid)),
            ("controller", json!(true)),
            ("blockOwnerDeletion", json!(true)),
        ])
    }
}
