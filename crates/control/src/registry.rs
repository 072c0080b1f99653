//! The registry serves every kind of object behind one set of verbs: get, list, create, replace, delete, watch. Runs
//! and stored objects look the same to callers. It owns identity, revisions and admission; the encoding of answers
//! belongs to the callers.

pub(crate) mod delete;
pub mod events;

use std::sync::{Arc, Mutex, PoisonError};

use octoflow_model::Revision;
use octoflow_store::{ChangedItem, Notification, Reader};
use serde_json::Value;

use crate::{
    Controller, Error,
    controller::Handle,
    event_loop::usage,
    maintenance::MaintenanceThread,
    objects::features::{CREDENTIALS, ORDER},
};

mod admission;
mod apply;
mod artifact;
mod collect;
mod fault;
mod features;
mod feed;
mod fields;
mod history;
mod kept;
mod lint;
mod list;
mod logs;
mod managed;
pub(crate) mod meta;
mod namespace;
mod namespace_tracker;
mod remove;
mod rendered;
mod renderings;
pub(crate) mod run;
mod scheduling;
mod schema;
mod select;
mod size;
mod status;
pub(crate) mod steer;
pub(crate) mod stored;
mod submit;
mod submitted;
mod trial;
mod view;
mod watch;
mod write;

pub use crate::objects::{known::looks_back, patch};
pub use apply::{Applied, ApplyOptions};
pub use artifact::{Artifact, ArtifactRead, Side};
pub use fault::{Cause, Fault};
pub use features::{PlacedPlugin, RegisteredFeature, feature_kind, placed};
pub use fields::{Unknown, ineffective_fields, prune};
pub use history::{History, HistoryFilter, NameTest};
pub use kept::KeptList;
pub use list::{ListOptions, Listing};
pub use logs::{
    LogBatch, LogBytes, LogChunk, LogLine, LogPiece, LogQuery, LogReader, RunFrame, RunFrames, RunLine, RunLines,
};
pub use octoflow_engine::{
    Problem,
    argo::resource::document,
    dialect::Summary,
    kinds::{self, Kind, Storage},
    plugins, submission,
};
pub use octoflow_store::{Filter, MAX_PAGE, NumberedPage, RunRow};
pub use renderings::SharedText;
pub use run::FoundRun;
pub use schema::{schema_name, schemas};
pub use select::{FieldSelector, FieldTest, LabelSelector, Selection, SelectorError};
pub use submit::{EXPECTED_START, Submitted, expected_start_text};
pub use submitted::{JobFilter, job_kind, new_job_id};
pub use trial::trial_table;
pub use watch::{Change, Event, Watch};
pub use write::{Created, DeleteOptions, Deleted, Propagation, WriteOptions};

use admission::AdmissionCache;
use collect::Collector;
use feed::Feed;
use logs::Snapshots;
pub(crate) use meta::is_label_value;
use rendered::RenderedCache;
use renderings::Renderings;

/// Shared handle to all stored objects and runs. Clones share the same state.
#[derive(Clone)]
pub struct Registry(Arc<Inner>);

struct Inner {
    controller: Controller,
    handle: Handle,
    feed: Arc<Feed>,
    rendered: RenderedCache,
    renderings: Renderings,
    snapshots: Snapshots,
    admissions: Arc<AdmissionCache>,
    /// Maintenance thread, once it has been started.
    maintenance: Mutex<Option<MaintenanceThread>>,
    /// Background thread that finishes deletions.
    collector: Collector,
}

impl Registry {
    pub fn new(controller: Controller) -> Result<Self, Error> {
        let store = controller.store().clone();
        let feed = Arc::new(Feed::starting_at(store.reader()?.revision()?));
        let admissions = Arc::new(AdmissionCache::default());
        let (feed_observer, cache_observer) = (feed.clone(), admissions.clone());
        store.observe(Arc::new(move |told| match told {
            Notification::Commits(mut notes) => {
                // Nobody sees these, and what tenants used comes with almost every commit.
                let last = notes.last().map(|note| note.revision);
                notes.retain(|note| !matches!(&note.what, ChangedItem::Put { kind, .. } if is_internal(kind)));
                if notes.iter().any(|note| matches!(note.what, ChangedItem::Put { .. } | ChangedItem::Deleted(_))) {
                    cache_observer.clear();
                }
                feed_observer.publish(notes);
                last.into_iter().for_each(|revision| feed_observer.reach(revision));
            }
            // The disk may hold commits that observers were not notified of.
            Notification::Reopened(revision) => {
                cache_observer.clear();
                feed_observer.reset(revision);
            }
        }));
        feed.raise_floor(store.reader()?.revision()?);
        let handle = controller.handle().clone();
        let (rendered, snapshots) = (RenderedCache::default(), Snapshots::default());
        let (maintenance, collector) = (Mutex::new(None), Collector::new());
        let registry = Self(Arc::new(Inner {
            controller,
            handle,
            feed,
            rendered,
            renderings: Renderings::default(),
            snapshots,
            admissions,
            maintenance,
            collector,
        }));
        registry.0.collector.start(&registry)?;
        Ok(registry)
    }

    pub fn controller(&self) -> &Controller {
        &self.0.controller
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.0.handle
    }

    pub(crate) fn maintenance(&self) -> &Mutex<Option<MaintenanceThread>> {
        &self.0.maintenance
    }

    fn admissions(&self) -> &AdmissionCache {
        &self.0.admissions
    }

    pub(crate) fn feed(&self) -> &Feed {
        &self.0.feed
    }

    /// Returns the object as clients see it.
    pub fn get(&self, kind: &'static Kind, namespace: &str, name: &str) -> Result<Value, Fault> {
        let found = match kind.storage {
            Storage::Run(_) => match self.row(kind, namespace, name)? {
                Some(row) => Some(self.shown_run(&row)?),
                None => None,
            },
            Storage::Stored if kind.name == "Namespace" => self.namespace(kind, name)?,
            Storage::Stored if *kind == kinds::scheduling::QUEUE => self.queue(name)?,
            Storage::Stored => self.shown_object(kind, namespace, name)?,
            Storage::View => self.view(kind, namespace, name)?,
        };
        found.ok_or_else(|| Fault::NotFound { kind, name: name.to_owned() })
    }

    /// Returns the revision of the newest commit that reads can see.
    pub fn revision(&self) -> Result<Revision, Fault> {
        self.read(|reader| Ok(reader.revision()?))
    }

    /// Resumes every unfinished run. Runs that cannot be read are left alone; a notice is returned for each.
    pub fn restore_all(&self) -> Result<Vec<String>, Error> {
        let notices = self.0.controller.restore_all()?;
        self.collect();
        Ok(notices)
    }

    /// Shuts down. Every decision is on disk when this returns; running tasks can be resumed after a restart.
    pub fn close(&self) -> Result<(), Error> {
        let maintenance = self.0.maintenance.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(maintenance) = maintenance {
            maintenance.finish();
        }
        self.0.collector.finish();
        self.0.controller.close()
    }

    pub(crate) fn read<T>(&self, ask: impl FnOnce(&Reader) -> Result<T, Fault>) -> Result<T, Fault> {
        ask(&self.0.handle.store.reader()?)
    }
}

/// Objects of these kinds are the controller's own.
fn is_internal(kind: &str) -> bool {
    [usage::KIND, CREDENTIALS, ORDER].contains(&kind)
}
