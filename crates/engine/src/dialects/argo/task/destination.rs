//! Resolves where a task's artifacts come from and go to: the artifact's own location, else its template's, else the
//! default repository. Credentials are looked up here, and go into the task and nowhere else.

use octoflow_model::{
    NodeIx,
    argo::{Artifact, ArtifactLocation, Template},
    location::{LocalKey, Location},
    task::ArtifactOutput,
};

use crate::{
    dialects::argo::{
        locate::{self, DEFAULT_MARK, KEY_FORMAT, REPOSITORIES, Repository},
        scope::Scope,
        substitute::{Missing, fill},
        view::View,
    },
    engine::Keyed,
};

impl View<'_> {
    /// Returns the location that an input is fetched from.
    pub(in crate::dialects::argo) fn input_location(
        &self,
        template: &Template,
        declared: &Artifact,
        given: &ArtifactLocation,
    ) -> Result<Location, String> {
        // A location in the template has all its variables filled in by now.
        let place = if declared.location.is_given() { &declared.location } else { given };
        let place = ArtifactLocation { stand_in: given.stand_in, ..place.clone() };
        let namespace = &self.run.state.head.namespace;
        let written = serde_json::to_string(&place).map_err(|error| error.to_string())?;
        if let Some(tag) = written.split_once("{{").and_then(|(_, rest)| rest.split_once("}}")) {
            return Err(format!("failed to resolve {{{{{}}}}}", tag.0));
        }
        let place = self.store_of(template, place)?;
        match place.key_only() {
            Some(key) => Ok(Location::Local(LocalKey { namespace: namespace.to_string(), key: key.to_owned() })),
            None => locate::complete(self.world, namespace, &place),
        }
    }

    /// Completes a location with its store: a key alone is in the default repository. It stays a key alone if that is
    /// the local store. Also decides whether the local store stands in, unless that was decided before.
    pub(in crate::dialects::argo) fn store_of(
        &self,
        template: &Template,
        place: ArtifactLocation,
    ) -> Result<ArtifactLocation, String> {
        let namespace = &self.run.state.head.namespace;
        let whole = match place.key_only() {
            None => place,
            Some(key) => match self.repository(template)?.store {
                Some(store) => ArtifactLocation { stand_in: place.stand_in, ..store.keyed(key) },
                None => return Ok(place),
            },
        };
        Ok(locate::with_stand_in(self.world, namespace, whole))
    }

    /// Whether the local store stands in for an input's location, if that is known when the call is made. Otherwise it
    /// is decided when the task is built.
    pub(in crate::dialects::argo) fn stands_in(&self, template: &Template, place: &ArtifactLocation) -> Option<bool> {
        let decided = self.store_of(template, place.clone()).ok()?;
        // The name of the Secret may still contain a variable.
        let store = serde_json::to_string(&decided.clone().keyed("")).ok()?;
        decided.stand_in.filter(|_| !store.contains("{{"))
    }

    /// Completes an output with its key and its location.
    pub(super) fn with_destination(
        &self,
        at: NodeIx,
        template: &Template,
        artifact: Option<&Artifact>,
        file: &str,
        mut output: ArtifactOutput,
    ) -> Result<ArtifactOutput, String> {
        let namespace = &self.run.state.head.namespace;
        output.namespace = namespace.to_string();
        let place = artifact.map(|artifact| &artifact.location).filter(|place| place.is_given());
        let own_key = place.and_then(ArtifactLocation::key_only);
        let whole = place.filter(|_| own_key.is_none());
        let repository = if whole.is_some() { Repository::default() } else { self.repository(template)? };
        output.key = match own_key {
            Some(key) => key.to_owned(),
            None => self.default_key(at, &repository, file)?,
        };
        let place = match (whole, repository.store) {
            (Some(place), _) => ArtifactLocation { archive_logs: None, stand_in: None, ..place.clone() },
            (None, Some(store)) => store.keyed(&output.key),
            (None, None) => return Ok(output),
        };
        let mut place = locate::with_stand_in(self.world, namespace, place);
        let location = locate::complete(self.world, namespace, &place)?;
        if let Location::Local(at) = location {
            // Only the local store has it, and the key names the store it stands in for.
            output.key = at.key;
        } else {
            output.to = Some(location);
            place.stand_in = None;
        }
        if output.to.is_some()
            && let Some(key) = place.s3.as_ref().and_then(|s3| s3.key.as_ref())
        {
            output.key.clone_from(key);
        }
        output.noted = Some(serde_json::to_value(&place).map_err(|error| error.to_string())?);
        Ok(output)
    }

    /// Whether the log is archived: the template decides first, then the workflow, then the repository.
    pub(super) fn logs_are_kept(&self, template: &Template) -> Result<bool, String> {
        let said = template.archive_location.as_ref().and_then(|place| place.archive_logs);
        if let Some(said) = said.or(self.run.program.workflow.spec.archive_logs) {
            return Ok(said);
        }
        Ok(self.repository(template)?.archive_logs)
    }

    fn default_key(&self, at: NodeIx, repository: &Repository, file: &str) -> Result<String, String> {
        let format = repository.key_format.as_deref().unwrap_or(KEY_FORMAT);
        let locals = self.locals(at);
        let inputs = self.run.state.node(at).inputs.as_deref();
        let scope = Scope { inputs, locals: &locals, ..Scope::of_node(self.run, self.now, at).about("artifact") };
        let key = fill(format, &scope, Missing::Refuse).map_err(|error| error.to_string())?;
        Ok(format!("{}/{file}", key.trim_end_matches('/')))
    }

    /// Returns the default repository of a task's artifacts; without a store it is the local one.
    fn repository(&self, template: &Template) -> Result<Repository, String> {
        if let Some(place) = template.archive_location.as_ref().filter(|place| place.is_given()) {
            let (named, key) = match (&place.s3, &place.plugin) {
                (Some(s3), _) => (s3.bucket.is_some(), &s3.key),
                (None, Some(plugin)) => (!plugin.name.is_empty(), &plugin.key),
                (None, None) => {
                    return Err("archiveLocation names a store that is not supported; use s3".to_owned());
                }
            };
            let store = ArtifactLocation { archive_logs: None, stand_in: None, ..place.clone() };
            let mut repository = match named {
                true => Repository { store: Some(store), ..Repository::default() },
                false => self.repository_of_run()?,
            };
            // A key in `archiveLocation` is the key format.
            repository.key_format = key.clone().or(repository.key_format);
            return Ok(repository);
        }
        self.repository_of_run()
    }

    fn repository_of_run(&self) -> Result<Repository, String> {
        let reference = self.run.program.workflow.spec.artifact_repository_ref.as_ref();
        let named = reference.and_then(|reference| reference.config_map.as_deref()).filter(|name| !name.is_empty());
        let name = named.unwrap_or(REPOSITORIES);
        let namespace = &self.run.state.head.namespace;
        let Some(map) = self.world.keyed(Keyed::ConfigMap, namespace, name) else {
            // Without described repositories there is only the local store.
            return Ok(Repository::default());
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
        let Some(text) = map.entries.get(key) else { return Ok(Repository::default()) };
        Repository::read(text).map_err(|why| format!("repository '{key}' of ConfigMap '{name}': {why}"))
    }
}
