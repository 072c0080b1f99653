//! Read access to the data directory of this machine: runs by name, their objects and logs. It never writes; running
//! and changing go through `controller`.

use std::{collections::HashMap, fs, io, path::Path};

use anyhow::Result;
use octoflow_control::read;
use octoflow_model::AttemptId;
use octoflow_store::{Error, Filter, Page, Reader, RunRow};
use serde_json::Value;

use crate::{
    exit::{Exit, Failure},
    source::LATEST,
};

/// Longer journals of open runs are not read for a list, to keep it quick. `get` and `doctor` read them.
const MAX_LISTED_JOURNAL_BYTES: u64 = 8 << 20;

#[derive(Debug)]
pub(crate) struct Local {
    reader: Reader,
}

impl Local {
    /// Opens a data directory; `None` if nothing was ever run with it.
    pub(crate) fn open(data_dir: &Path) -> Result<Option<Self>> {
        match Reader::open(data_dir) {
            Ok(reader) => Ok(Some(Self { reader })),
            Err(Error::Missing { .. }) => Ok(None),
            Err(error) => Err(explained(error)),
        }
    }

    /// Finds a run by name, or the newest by `@latest`.
    pub(crate) fn look_up(&self, namespace: &str, kind: Option<&str>, name: &str) -> Result<Option<RunRow>> {
        match (name, kind) {
            (LATEST, None) => self.reader.latest(namespace).map_err(explained),
            (LATEST, Some(kind)) => {
                let (namespace, kind) = (Some(namespace.to_owned()), Some(kind.to_owned()));
                Ok(self.list(&Filter { namespace, kind, ..Filter::default() }, 1)?.0.pop())
            }
            (name, kind) => self.reader.run_by_name(namespace, kind, name).map_err(explained),
        }
    }

    /// Lists runs, newest first, at most `limit`. Returns whether there are more.
    pub(crate) fn list(&self, filter: &Filter, limit: usize) -> Result<(Vec<RunRow>, bool)> {
        let mut rows = Vec::new();
        let mut after = None;
        loop {
            let page = Page { limit: (limit - rows.len()).min(octoflow_store::MAX_PAGE), after };
            let (found, next) = self.reader.list(filter, page).map_err(explained)?;
            rows.extend(found);
            match next {
                Some(_) if rows.len() >= limit => return Ok((rows, true)),
                Some(cursor) => after = Some(cursor),
                None => return Ok((rows, false)),
            }
        }
    }

    /// Marks open runs that cannot be read. The index only knows their last phase.
    pub(crate) fn mark_unreadable(&self, rows: &mut [RunRow]) -> Result<()> {
        for row in rows.iter_mut().filter(|row| !row.archived) {
            if self.reader.facts_bytes(row.run).map_err(explained)? > MAX_LISTED_JOURNAL_BYTES {
                continue;
            }
            if let Some(why) = read::damage(&self.reader, row.run)? {
                row.message = read::unreadable_message(&why);
            }
        }
        Ok(())
    }

    /// Returns the run with its status, as users see it.
    pub(crate) fn object(&self, row: &RunRow) -> Result<Value> {
        match read::object(&self.reader, row.run) {
            Err(octoflow_control::Error::Journal { why, .. }) => {
                let api_version = octoflow_engine::kinds::of_key(&row.kind).map(|kind| kind.api_version());
                Ok(read::unreadable(&api_version.unwrap_or_default(), row, &why))
            }
            object => Ok(object?),
        }
    }

    /// Returns open runs that cannot be read, with the errors.
    pub(crate) fn unreadable(&self) -> Result<Vec<(RunRow, String)>> {
        let mut found = Vec::new();
        for row in self.reader.unfinished().map_err(explained)? {
            if let Err(octoflow_control::Error::Journal { why, .. }) = read::object(&self.reader, row.run) {
                found.push((row, why));
            }
        }
        Ok(found)
    }

    /// Returns the attempts by node id, for finding logs.
    pub(crate) fn attempts(&self, row: &RunRow) -> Result<HashMap<String, AttemptId>> {
        Ok(read::attempts(&self.reader, row.run)?.into_iter().collect())
    }

    pub(crate) fn reader(&self) -> &Reader {
        &self.reader
    }
}

/// Returns the process that holds the data directory, by the id in the lock file. Only for messages: the lock itself is
/// not touched, since even testing it could fail a writer that comes at the same moment.
pub(crate) fn holder(data_dir: &Path) -> Option<u32> {
    let number: u32 = fs::read_to_string(data_dir.join("lock")).ok()?.trim().parse().ok()?;
    Path::new("/proc").join(number.to_string()).exists().then_some(number)
}

/// Maps a store error to its exit code.
pub(crate) fn explained(error: Error) -> anyhow::Error {
    let exit = match &error {
        Error::Locked { .. } | Error::NameTaken { .. } => Exit::Conflict,
        Error::Missing { .. } | Error::UnknownRun { .. } => Exit::NotFound,
        Error::SecretsKey { .. } | Error::NoSecretsKey | Error::Shared { .. } => Exit::Usage,
        Error::Owned { .. } => Exit::Denied,
        Error::File { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
            return Failure::new(Exit::Denied, format!("{error}: {source}"))
                .help("choose another directory with --data-dir")
                .into();
        }
        _ => return error.into(),
    };
    Failure::new(exit, error.to_string()).into()
}
