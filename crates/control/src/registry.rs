//! Every kind of object behind one set of verbs: get, list, create, replace, delete, watch. Runs and kept objects look
//! the same from here. It owns identity, revisions and admission; how an answer is written down is its caller's business.

use std::sync::{Arc, Mutex, PoisonError};

use octoflow_model::Revision;
use octoflow_store::{Reader, Told, What};
use serde_json::Value;

use crate::{Controller, Error, controller::Handle, maintenance::MaintenanceThread};

mod apply;
mod artifact;
mod collect;
mod fault;
mod feed;
mod fields;
mod history;
mod homes;
mod judge;
mod kept;
mod lint;
mod list;
mod logs;
mod managed;
pub(crate) mod meta;
mod namespace;
mod remove;
mod rendered;
pub(crate) mod run;
mod schema;
mod select;
mod size;
mod status;
pub(crate) mod steer;
pub(crate) mod stored;
mod submit;
mod view;
mod watch;
mod write;

pub use crate::{known::looks_back, objects::patch};
pub use apply::{Applied, ApplyOptions};
pub use artifact::{Artifact, Lent, Side};
pub use fault::{Cause, Fault};
pub use fields::{Unknown, idle, prune};
pub use history::{History, NameTest, Wanted};
pub use kept::KeptList;
pub use list::{ListOptions, Listing};
pub use logs::{
    LogBatch, LogBytes, LogChunk, LogLine, LogPiece, LogQuery, LogReader, RunFrame, RunFrames, RunLine, RunLines,
};
pub use octoflow_engine::{
    argo::resource::document,
    dialect::Summary,
    kinds::{self, Keeping, Kind},
};
pub use octoflow_store::{Filter, MAX_PAGE, RunRow};
pub use run::Named;
pub use schema::{schema_name, schemas};
pub use select::{FieldSelector, FieldTest, LabelSelector, Selection};
pub use submit::Submitted;
pub use watch::{Change, Event, Watch};
pub use write::{DeleteOptions, Deleted, Propagation, WriteOptions};

use collect::Collector;
use feed::Feed;
use judge::Rulings;
use logs::Snapshots;
use rendered::RenderedCache;

/// A handle to everything that is kept and runs here. Clones share it.
#[derive(Clone)]
pub struct Registry(Arc<Inner>);

struct Inner {
    controller: Controller,
    handle: Handle,
    feed: Arc<Feed>,
    rendered: RenderedCache,
    snapshots: Snapshots,
    rulings: Arc<Rulings>,
    /// Who does what falls due, once somebody asked for it.
    maintenance: Mutex<Option<MaintenanceThread>>,
    /// Who brings deletions to their end.
    collector: Collector,
}

impl Registry {
    pub fn new(controller: Controller) -> Result<Self, Error> {
        let store = controller.store().clone();
        let feed = Arc::new(Feed::starting_at(store.reader()?.revision()?));
        let rulings = Arc::new(Rulings::default());
        let (ears, known) = (feed.clone(), rulings.clone());
        store.observe(Arc::new(move |told| match told {
            Told::Commits(notes) => {
                if notes.iter().any(|note| matches!(note.what, What::Put { .. } | What::Deleted(_))) {
                    known.forget();
                }
                ears.publish(notes);
            }
            // What is on disk may be more than was told.
            Told::Reopened(revision) => {
                known.forget();
                ears.reset(revision);
            }
        }));
        feed.forget_until(store.reader()?.revision()?);
        let handle = controller.handle().clone();
        let (rendered, snapshots) = (RenderedCache::default(), Snapshots::default());
        let (maintenance, collector) = (Mutex::new(None), Collector::new());
        let registry =
            Self(Arc::new(Inner { controller, handle, feed, rendered, snapshots, rulings, maintenance, collector }));
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

    fn rulings(&self) -> &Rulings {
        &self.0.rulings
    }

    pub(crate) fn feed(&self) -> &Feed {
        &self.0.feed
    }

    /// The object as people see it.
    pub fn get(&self, kind: &'static Kind, namespace: &str, name: &str) -> Result<Value, Fault> {
        let found = match kind.keeping {
            Keeping::Run(_) => match self.row(kind, namespace, name)? {
                Some(row) => Some(self.shown_run(&row)?),
                None => None,
            },
            Keeping::Stored if kind.name == "Namespace" => self.namespace(kind, name)?,
            Keeping::Stored => self.stored_object(kind, namespace, name)?.map(|kept| kept.object),
            Keeping::View => self.view(kind, namespace, name)?,
        };
        found.ok_or_else(|| Fault::NotFound { kind, name: name.to_owned() })
    }

    /// The last commit that anything here shows.
    pub fn revision(&self) -> Result<Revision, Fault> {
        self.read(|reader| Ok(reader.revision()?))
    }

    /// Everything unfinished goes on where it was. What cannot be read is left alone and told.
    pub fn take_up_all(&self) -> Result<Vec<String>, Error> {
        let notices = self.0.controller.take_up_all()?;
        self.collect();
        Ok(notices)
    }

    /// Everything decided is on disk when this returns; running tasks can be taken up again.
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
