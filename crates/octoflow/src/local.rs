//! The data directory of this machine as the commands see it: runs by name, their objects, their logs.
//! Reading only; whoever runs or changes something goes through `house`.

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::Result;
use octoflow_control::read;
use octoflow_model::AttemptId;
use octoflow_runtime::logs::Logs;
use octoflow_store::{Error, Filter, Page, Reader, RunRow};
use serde_json::Value;

use crate::{
    exit::{Exit, Failure},
    names,
};

/// How many names are looked at for a suggestion.
const SUGGEST_FROM: usize = 1000;

#[derive(Debug)]
pub(crate) struct Local {
    data_dir: PathBuf,
    reader: Reader,
}

impl Local {
    /// `None` when nothing was ever run with this directory.
    pub(crate) fn open(data_dir: &Path) -> Result<Option<Self>> {
        match Reader::open(data_dir) {
            Ok(reader) => Ok(Some(Self { data_dir: data_dir.to_owned(), reader })),
            Err(Error::Missing { .. }) => Ok(None),
            Err(error) => Err(explained(error)),
        }
    }

    /// The run of that name in the data directory; without a directory there is none.
    pub(crate) fn find_in(data_dir: &Path, namespace: &str, name: &str) -> Result<(Self, RunRow)> {
        let Some(local) = Self::open(data_dir)? else {
            let text = format!("there is no run `{name}`: nothing has been run with `{}` yet", data_dir.display());
            return Err(Failure::not_found(text).help("start with: octoflow run FILE").into());
        };
        let row = local.find(namespace, name)?;
        Ok((local, row))
    }

    /// By name, or the newest for `@latest`.
    pub(crate) fn find(&self, namespace: &str, name: &str) -> Result<RunRow> {
        let found = match name {
            "@latest" => self.reader.latest(namespace).map_err(explained)?,
            name => self.reader.run_by_name(namespace, None, name).map_err(explained)?,
        };
        match found {
            Some(row) => Ok(row),
            None => Err(self.missing(namespace, name)?.into()),
        }
    }

    /// What to say about a name nobody has: the nearest one, or the namespace it is in.
    fn missing(&self, namespace: &str, name: &str) -> Result<Failure> {
        if name == "@latest" {
            return Ok(Failure::not_found(format!("there are no runs in namespace `{namespace}` yet")));
        }
        let (rows, _) = self.list(&Filter::default(), SUGGEST_FROM)?;
        let failure = Failure::not_found(format!("there is no run `{name}` in namespace `{namespace}`"));
        if let Some(row) = rows.iter().find(|row| row.name == name) {
            return Ok(failure.help(format!("there is one in namespace `{0}`: use -n {0}", row.namespace)));
        }
        let here = rows.iter().filter(|row| row.namespace == namespace).map(|row| row.name.as_str());
        Ok(failure.help(names::suggestion(name, here).unwrap_or_else(|| "see all with: octoflow list -A".to_owned())))
    }

    /// Newest first, at most `limit`; whether there are more.
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

    /// The workflow with its status, as users see it.
    pub(crate) fn object(&self, row: &RunRow) -> Result<Value> {
        Ok(read::object(&self.reader, row.run)?)
    }

    /// Why nodes that are not over are not: the display name, the phase if it has one, and the reason.
    pub(crate) fn waiting(&self, row: &RunRow) -> Result<Vec<(String, String, String)>> {
        let found = read::explain(&self.reader, row.run)?;
        Ok(found.into_iter().map(|one| (one.node, one.phase, one.reason)).collect())
    }

    /// The attempt whose log belongs to each node, by node id.
    pub(crate) fn attempts(&self, row: &RunRow) -> Result<HashMap<String, AttemptId>> {
        Ok(read::attempts(&self.reader, row.run)?.into_iter().collect())
    }

    pub(crate) fn logs(&self) -> Logs {
        Logs::new(&self.data_dir)
    }

    pub(crate) fn reader(&self) -> &Reader {
        &self.reader
    }
}

/// The process that holds the data directory, by the number it left in the lock. Only for messages: the lock itself is
/// not touched, since even looking at it could turn away a writer that comes at the same moment.
pub(crate) fn holder(data_dir: &Path) -> Option<u32> {
    let number: u32 = fs::read_to_string(data_dir.join("lock")).ok()?.trim().parse().ok()?;
    Path::new("/proc").join(number.to_string()).exists().then_some(number)
}

/// A store's error with the exit code it deserves.
pub(crate) fn explained(error: Error) -> anyhow::Error {
    let exit = match &error {
        Error::Locked { .. } | Error::NameTaken { .. } => Exit::Conflict,
        Error::Missing { .. } | Error::UnknownRun { .. } => Exit::NotFound,
        Error::File { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
            return Failure::new(Exit::Denied, format!("{error}: {source}"))
                .help("choose another directory with --data-dir")
                .into();
        }
        _ => return error.into(),
    };
    Failure::new(exit, error.to_string()).into()
}
