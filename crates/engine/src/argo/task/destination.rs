//! Where a task's artifacts come from and go to: the place an artifact names, else its template's, else the default
//! repository. Credentials are looked up here, and go into the task and nowhere else.

use octoflow_model::{
    NodeIx,
    argo::{Artifact, ArtifactLocation, Template, location::S3Location},
    location::{LocalKey, Location},
    task::ArtifactOutput,
};

use crate::{
    argo::{
        locate::{self, KEY_FORMAT, Repository},
        scope::Scope,
        substitute::{Missing, fill},
        turn::Turn,
    },
    engine::Keyed,
};

/// The ConfigMap of repositories when none is named, and the mark of the one that is used by default.
const REPOSITORIES: &str = "artifact-repositories";
const DEFAULT_MARK: &str = "workflows.argoproj.io/default-artifact-repository";

impl Turn<'_> {
    /// Where an input is fetched from.
    pub(in crate::argo) fn input_location(
        &self,
        template: &Template,
        place: &ArtifactLocation,
    ) -> Result<Location, String> {
        let namespace = &self.run.state.namespace;
        let written = serde_json::to_string(place).map_err(|error| error.to_string())?;
        if let Some(tag) = written.split_once("{{").and_then(|(_, rest)| rest.split_once("}}")) {
            return Err(format!("failed to resolve {{{{{}}}}}", tag.0));
        }
        let Some(key) = place.key_only() else { return locate::complete(self.world, namespace, place) };
        match self.repository(template)?.store {
            Some(store) => {
                let place = ArtifactLocation { s3: Some(keyed(store, key)), ..ArtifactLocation::default() };
                locate::complete(self.world, namespace, &place)
            }
            None => Ok(Location::Local(LocalKey { namespace: namespace.to_string(), key: key.to_owned() })),
        }
    }

    /// Completes an output with its key and the place it goes to.
    pub(super) fn destined(
        &self,
        at: NodeIx,
        template: &Template,
        artifact: Option<&Artifact>,
        file: &str,
        mut output: ArtifactOutput,
    ) -> Result<ArtifactOutput, String> {
        let namespace = &self.run.state.namespace;
        output.namespace = namespace.to_string();
        let place = artifact.map(|artifact| &artifact.location).filter(|place| place.is_given());
        let own_key = place.and_then(ArtifactLocation::key_only);
        let whole = place.filter(|_| own_key.is_none());
        let repository = if whole.is_some() { Repository::default() } else { self.repository(template)? };
        output.key = match own_key {
            Some(key) => key.to_owned(),
            None => self.usual_key(at, &repository, file)?,
        };
        let place = match (whole, repository.store) {
            (Some(place), _) => ArtifactLocation { archive_logs: None, ..place.clone() },
            (None, Some(store)) => {
                ArtifactLocation { s3: Some(keyed(store, &output.key)), ..ArtifactLocation::default() }
            }
            (None, None) => return Ok(output),
        };
        output.to = Some(locate::complete(self.world, namespace, &place)?);
        if let Some(key) = place.s3.as_ref().and_then(|s3| s3.key.as_ref()) {
            output.key.clone_from(key);
        }
        output.noted = Some(serde_json::to_value(&place).map_err(|error| error.to_string())?);
        Ok(output)
    }

    /// Whether the log becomes an artifact: the template's word counts most, then the workflow's, then the repository's.
    pub(super) fn logs_are_kept(&self, template: &Template) -> Result<bool, String> {
        let said = template.archive_location.as_ref().and_then(|place| place.archive_logs);
        if let Some(said) = said.or(self.run.program.workflow.spec.archive_logs) {
            return Ok(said);
        }
        Ok(self.repository(template)?.archive_logs)
    }

    fn usual_key(&self, at: NodeIx, repository: &Repository, file: &str) -> Result<String, String> {
        let format = repository.key_format.as_deref().unwrap_or(KEY_FORMAT);
        let locals = self.locals(at);
        let inputs = self.run.state.node(at).inputs.as_deref();
        let scope = Scope { inputs, locals: &locals, ..Scope::of_node(self.run, self.now, at).about("artifact") };
        let key = fill(format, &scope, Missing::Refuse).map_err(|error| error.to_string())?;
        Ok(format!("{}/{file}", key.trim_end_matches('/')))
    }

    /// The default repository of a task's artifacts. Without a store it is this machine's own.
    fn repository(&self, template: &Template) -> Result<Repository, String> {
        if let Some(place) = template.archive_location.as_ref().filter(|place| place.is_given()) {
            let Some(s3) = &place.s3 else {
                return Err("archiveLocation names a store that is not supported; use s3".to_owned());
            };
            let mut repository = match s3.bucket {
                Some(_) => Repository { store: Some(s3.clone()), ..Repository::default() },
                None => self.repository_of_run()?,
            };
            // A key says what keys begin with.
            repository.key_format = s3.key.clone().or(repository.key_format);
            return Ok(repository);
        }
        self.repository_of_run()
    }

    fn repository_of_run(&self) -> Result<Repository, String> {
        let reference = self.run.program.workflow.spec.artifact_repository_ref.as_ref();
        let named = reference.and_then(|reference| reference.config_map.as_deref()).filter(|name| !name.is_empty());
        let name = named.unwrap_or(REPOSITORIES);
        let namespace = &self.run.state.namespace;
        let Some(map) = self.world.keyed(Keyed::ConfigMap, namespace, name) else {
            // Where nobody describes repositories, there is only this machine's. The usual name says no more than none.
            if name == REPOSITORIES {
                return Ok(Repository::default());
            }
            return Err(format!(
                "artifactRepositoryRef: ConfigMap '{name}' not found in namespace '{namespace}'; give the file that defines it along with the workflow"
            ));
        };
        let key = reference.and_then(|reference| reference.key.as_deref()).filter(|key| !key.is_empty());
        let Some(key) = key.or_else(|| map.annotations.get(DEFAULT_MARK).map(String::as_str)) else {
            return match reference {
                Some(_) => Err(format!(
                    "artifactRepositoryRef names no key, and ConfigMap '{name}' has no annotation {DEFAULT_MARK}"
                )),
                None => Ok(Repository::default()),
            };
        };
        let text = map
            .entries
            .get(key)
            .ok_or_else(|| format!("artifactRepositoryRef: ConfigMap '{name}' has no key '{key}'"))?;
        Repository::read(text).map_err(|why| format!("repository '{key}' of ConfigMap '{name}': {why}"))
    }
}

fn keyed(store: S3Location, key: &str) -> S3Location {
    S3Location { key: Some(key.to_owned()), key_format: None, key_prefix: None, ..store }
}
