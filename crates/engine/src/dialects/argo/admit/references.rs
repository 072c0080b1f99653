//! Warns about references to missing ConfigMaps, Secrets and claims, and to pod fields that tasks do not have: they may
//! be optional, or loaded later. Refuses host paths that may not be mounted.

use std::collections::HashSet;

use octoflow_manifest::Path;
use octoflow_model::{
    argo::{Synchronization, template::Parameter},
    meta::DEFAULT_NAMESPACE,
    podspec::{Container, Volume},
};

use super::{
    Catalog, Subject, code,
    findings::{At, Findings},
    name,
};
use crate::{admit::shape, dialects::argo::lock::DATABASE_LIMITS};

/// Pod fields that every task has a value for.
const TASK_FIELDS: &[&str] = &["metadata.name", "metadata.namespace", "metadata.uid"];

pub(super) fn check(subject: &Subject<'_>, others: &dyn Catalog, report: &mut Findings) {
    let workflow = subject.workflow;
    let namespace = workflow.metadata.namespace.as_deref().filter(|name| !name.is_empty()).unwrap_or(DEFAULT_NAMESPACE);
    let mut check = ReferenceCheck { others, namespace, report, fields: TASK_FIELDS, reported: HashSet::new() };
    let place = Path::root().join("spec");
    let at = At::base(&place);
    let arguments = at.key("arguments");
    check.parameters(&arguments.key("parameters"), &workflow.spec.arguments.parameters);
    check.volumes(&at.key("volumes"), &workflow.spec.volumes);
    check.locks(&at.key("synchronization"), workflow.spec.synchronization.as_ref());
    for entry in &subject.templates.entries {
        let at = At::base(&entry.path);
        let inputs = at.key("inputs");
        check.parameters(&inputs.key("parameters"), &entry.template.inputs.parameters);
        check.volumes(&at.key("volumes"), &entry.template.volumes);
        check.locks(&at.key("synchronization"), entry.template.synchronization.as_ref());
        if let Some(container) = &entry.template.container {
            check.container(&at.key("container"), container);
        }
        if let Some(script) = &entry.template.script {
            check.container(&at.key("script"), &script.container);
        }
        let set = entry.template.container_set.iter().flat_map(|set| &set.containers);
        let (set_at, lists) = (at.key("containerSet"), ["initContainers", "sidecars"]);
        for (index, one) in set.enumerate() {
            check.container(&set_at.key("containers").index(index), &one.container);
        }
        for (field, list) in lists.into_iter().zip([&entry.template.init_containers, &entry.template.sidecars]) {
            for (index, one) in list.iter().enumerate() {
                check.container(&at.key(field).index(index), &one.container);
            }
        }
    }
}

/// Looks up referenced objects and reports those that are missing.
pub(crate) struct ReferenceCheck<'a> {
    pub(crate) others: &'a dyn Catalog,
    pub(crate) namespace: &'a str,
    pub(crate) report: &'a mut Findings,
    /// Pod fields that have a value.
    pub(crate) fields: &'static [&'static str],
    /// References that were reported already.
    pub(crate) reported: HashSet<(&'static str, String)>,
}

impl ReferenceCheck<'_> {
    fn parameters(&mut self, at: &At<'_>, parameters: &[Parameter]) {
        for (index, parameter) in parameters.iter().enumerate() {
            if let Some(from) = &parameter.value_from
                && let Some(key) = &from.config_map_key_ref
            {
                let may_miss = key.optional == Some(true) || from.default.is_some();
                let place = at.index(index);
                let place = place.key("valueFrom");
                self.config_value(&place.key("configMapKeyRef"), &key.name, &key.key, may_miss);
            }
        }
    }

    pub(crate) fn volumes(&mut self, at: &At<'_>, volumes: &[Volume]) {
        for (index, volume) in volumes.iter().enumerate() {
            let place = at.index(index);
            if let Some(host) = &volume.host_path
                && !name::has_variables(&host.path)
                && let Err(why) = self.others.host_path(&host.path)
            {
                self.report.error(&place.key("hostPath").key("path"), code::HOST_PATH, || why);
            }
            if let Some(map) = &volume.config_map {
                self.config_map(&place.key("configMap").key("name"), &map.name, map.optional);
            }
            if let Some(secret) = &volume.secret {
                self.secret(&place.key("secret").key("secretName"), &secret.secret_name, secret.optional);
            }
            if let Some(claim) = &volume.persistent_volume_claim {
                let there = self.others.has_claim(self.namespace, &claim.claim_name);
                self.missing(
                    &place.key("persistentVolumeClaim").key("claimName"),
                    "PersistentVolumeClaim",
                    &claim.claim_name,
                    there,
                );
            }
        }
    }

    pub(crate) fn container(&mut self, at: &At<'_>, container: &Container) {
        let list = at.key("env");
        for (index, variable) in container.env.iter().enumerate() {
            let Some(from) = &variable.value_from else { continue };
            let place = list.index(index);
            let place = place.key("valueFrom");
            if let Some(key) = &from.config_map_key_ref {
                self.config_value(&place.key("configMapKeyRef"), &key.name, &key.key, key.optional == Some(true));
            }
            if let Some(key) = &from.secret_key_ref {
                self.secret_value(&place.key("secretKeyRef"), &key.name, &key.key, key.optional == Some(true));
            }
            if let Some(field) = &from.field_ref {
                self.field(&place.key("fieldRef").key("fieldPath"), &field.field_path);
            }
        }
        let list = at.key("envFrom");
        for (index, from) in container.env_from.iter().enumerate() {
            let place = list.index(index);
            if let Some(map) = &from.config_map_ref {
                self.config_map(&place.key("configMapRef").key("name"), &map.name, map.optional);
            }
            if let Some(secret) = &from.secret_ref {
                self.secret(&place.key("secretRef").key("name"), &secret.name, secret.optional);
            }
        }
    }

    fn locks(&mut self, at: &At<'_>, wanted: Option<&Synchronization>) {
        let list = at.key("semaphores");
        let listed = wanted.map_or(0, |wanted| wanted.semaphores.len());
        for (index, semaphore) in wanted.into_iter().flat_map(Synchronization::all_semaphores).enumerate() {
            let (one, single) = (list.index(index), at.key("semaphore"));
            // The deprecated field holds one semaphore and is checked after the list.
            let at = if index < listed { &one } else { &single };
            let namespace = semaphore.namespace.as_deref().filter(|name| !name.is_empty()).unwrap_or(self.namespace);
            if let Some(reference) = &semaphore.config_map_key_ref {
                let there = name::has_variables(namespace) || self.others.has_config_map(namespace, &reference.name);
                let at = at.key("configMapKeyRef");
                self.missing(&at.key("name"), "ConfigMap", &reference.name, there);
                if there && !name::has_variables(namespace) && !name::has_variables(&reference.key) {
                    let has = self.others.has_config_key(namespace, &reference.name, &reference.key);
                    self.keyless(&at.key("key"), "ConfigMap", &reference.name, &reference.key, has);
                }
            }
            if let Some(database) = &semaphore.database
                && !self.others.has_config_map(namespace, DATABASE_LIMITS)
                && self.reported.insert(("database", database.key.clone()))
            {
                self.report.warn(at, code::NOT_LOADED, || {
                    format!(
                        "the semaphore '{}' has no limit, so one holder at a time is allowed; to allow more, load a \
                         ConfigMap '{DATABASE_LIMITS}' with that key",
                        shape::short(&database.key)
                    )
                });
            }
        }
    }

    fn config_value(&mut self, at: &At<'_>, name: &str, key: &str, may_miss: bool) {
        self.config_map(&at.key("name"), name, may_miss);
        if !may_miss && !name::has_variables(name) && !name::has_variables(key) {
            let there = !self.others.has_config_map(self.namespace, name)
                || self.others.has_config_key(self.namespace, name, key);
            self.keyless(&at.key("key"), "ConfigMap", name, key, there);
        }
    }

    fn secret_value(&mut self, at: &At<'_>, name: &str, key: &str, may_miss: bool) {
        self.secret(&at.key("name"), name, may_miss);
        if !may_miss && !name::has_variables(name) && !name::has_variables(key) {
            let there =
                !self.others.has_secret(self.namespace, name) || self.others.has_secret_key(self.namespace, name, key);
            self.keyless(&at.key("key"), "Secret", name, key, there);
        }
    }

    fn keyless(&mut self, at: &At<'_>, kind: &'static str, name: &str, key: &str, there: bool) {
        if !there && self.reported.insert((kind, format!("{name}/{key}"))) {
            self.report.warn(at, code::NOT_LOADED, || {
                format!("{kind} '{}' has no key '{}'", shape::short(name), shape::short(key))
            });
        }
    }

    fn config_map(&mut self, at: &At<'_>, name: &str, may_miss: bool) {
        let there = may_miss || self.others.has_config_map(self.namespace, name);
        self.missing(at, "ConfigMap", name, there);
    }

    fn secret(&mut self, at: &At<'_>, name: &str, may_miss: bool) {
        let there = may_miss || self.others.has_secret(self.namespace, name);
        self.missing(at, "Secret", name, there);
    }

    fn missing(&mut self, at: &At<'_>, kind: &'static str, name: &str, there: bool) {
        if !there && !name.is_empty() && !name::has_variables(name) && self.reported.insert((kind, name.to_owned())) {
            self.report.warn(at, code::NOT_LOADED, || {
                format!(
                    "{kind} '{name}' is not loaded in namespace '{}'; load it before the run needs it",
                    self.namespace
                )
            });
        }
    }

    fn field(&mut self, at: &At<'_>, path: &str) {
        if !self.fields.contains(&path) && !path.contains("['") && self.reported.insert(("fieldRef", path.to_owned())) {
            self.report.warn(at, shape::code::IGNORED, || {
                format!(
                    "the pod field `{}` has no value here; known are: {}",
                    shape::short(path),
                    self.fields.join(", ")
                )
            });
        }
    }
}
