//! Storing features: each change is one commit together with credentials and orders, and the event loop has the new table
//! before whoever asked is answered.

use std::sync::{Arc, MutexGuard, PoisonError};

use octoflow_engine::plugins::PluginTable;
use octoflow_model::{
    Revision,
    mark::Ownership,
    plugin::{FEATURE_KIND, PluginType},
};
use octoflow_store::{Batch, Change};
use serde_json::Value;

use super::Handle;
use crate::{
    Error,
    event_loop::Message,
    objects::{Key, features},
};

impl Handle {
    /// Stores a feature after what is in the batch, its credentials apart from it.
    pub(super) fn put_feature(
        &self,
        object: &Value,
        name: &str,
        uid: String,
        mut batch: Batch,
    ) -> Result<Revision, Error> {
        let mut object = object.clone();
        let secrets = features::split(&mut object)
            .map_err(|why| Error::Object { what: format!("{FEATURE_KIND} `{name}`"), why: format!("spec.{why}") })?;
        let turn = self.feature_turn();
        batch.extend(features::beside_put(&self.store.reader()?, &object, secrets)?);
        let ties = Ownership::of(&object["metadata"]);
        let (kind, namespace) = (FEATURE_KIND.to_owned(), String::new());
        batch.push(Change::PutObject {
            kind: kind.clone(),
            namespace: namespace.clone(),
            name: name.to_owned(),
            uid,
            body: object.to_string().into_bytes(),
        });
        let (owners, deleting) = (ties.owner_uids(), ties.deleted.is_some());
        batch.push(Change::SetOwners { kind, namespace, name: name.to_owned(), owners, deleting });
        let revision = self.commit(batch)?;
        self.tell_plugins()?;
        drop(turn);
        self.changed(Key::new(FEATURE_KIND, "", name));
        Ok(revision)
    }

    pub(super) fn delete_feature(&self, key: &Key, mut batch: Batch) -> Result<(), Error> {
        let turn = self.feature_turn();
        batch.extend(features::beside_deletion(&self.store.reader()?, &key.name)?);
        batch.push(Change::DeleteObject {
            kind: key.kind.clone(),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
        });
        self.commit(batch)?;
        self.tell_plugins()?;
        drop(turn);
        self.changed(key.clone());
        Ok(())
    }

    /// Has one plugin run before another. The inner error is the key that nobody has.
    pub(crate) fn move_plugin(
        &self,
        plugin_type: PluginType,
        first: &str,
        second: &str,
    ) -> Result<Result<(), String>, Error> {
        let _turn = self.feature_turn();
        let changes = features::move_before(&self.store.reader()?, plugin_type, first, second)?;
        match changes {
            Err(unknown) => return Ok(Err(unknown)),
            Ok(None) => {}
            Ok(Some(changes)) => {
                self.commit(changes.into_iter().collect())?;
                self.tell_plugins()?;
            }
        }
        Ok(Ok(()))
    }

    /// Returns the plugins as they are stored.
    pub(crate) fn plugins(&self) -> Result<PluginTable, Error> {
        Ok(features::table(&self.store.reader()?)?.0)
    }

    /// The engine must hear of tables in the order in which they were stored.
    fn feature_turn(&self) -> MutexGuard<'_, ()> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell_plugins(&self) -> Result<(), Error> {
        let (table, left_out) = features::table(&self.store.reader()?)?;
        left_out.iter().for_each(|why| tracing::warn!("{why}"));
        self.ask(|reply| Message::Plugins { table: Arc::new(table), reply })
    }
}
