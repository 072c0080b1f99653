//! Writes the index of runs: their rows, labels and archive. Row and labels always change together, so that no list
//! sees one without the other.

use std::{collections::BTreeMap, fmt::Write};

use octoflow_model::{Revision, RunId, Time};
use rusqlite::{Connection, ErrorCode, OptionalExtension, params_from_iter, types::Value};

use super::records::{self, Garbage};
use crate::{
    Archive, Error, RecordId, RunRow, RunUpdate,
    error::Doing,
    rows::{
        archive::Content,
        row::{RUN_COLUMNS, decode_labels, encode_labels, signed, unsigned},
    },
};

pub(super) struct Runs<'c> {
    pub(super) conn: &'c Connection,
    pub(super) revision: Revision,
}

/// Whether an update finishes the run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Transition {
    Unchanged,
    Finished,
}

type Labels = BTreeMap<String, String>;

impl Runs<'_> {
    pub(super) fn insert(&self, row: &RunRow) -> Result<(), Error> {
        let sql =
            format!("INSERT INTO runs ({RUN_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
        let values = [
            Value::from(signed(row.run.0)),
            row.namespace.clone().into(),
            row.kind.clone().into(),
            row.name.clone().into(),
            row.uid.clone().into(),
            row.phase.clone().into(),
            row.message.clone().into(),
            row.created.0.into(),
            row.started.map(|time| time.0).into(),
            row.finished.map(|time| time.0).into(),
            encode_labels(&row.labels).into(),
            row.progress.clone().into(),
            row.priority.into(),
            row.parameters.clone().into(),
            row.parent.map(|parent| signed(parent.0)).into(),
            1.into(),
            signed(self.revision.0).into(),
        ];
        let inserted = self.conn.prepare_cached(&sql).and_then(|mut insert| insert.execute(params_from_iter(values)));
        match inserted {
            Ok(_) => self.label(row.run, row.created, &row.labels),
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => Err(self.conflict(row)?),
            Err(error) => Err(error).doing("store a run"),
        }
    }

    pub(super) fn update(&self, run: RunId, update: &RunUpdate, transition: Transition) -> Result<(), Error> {
        if let Some(labels) = &update.labels {
            self.relabel(run, labels)?;
        }
        let mut sql = "UPDATE runs SET revision = ?".to_owned();
        let mut values = vec![Value::from(signed(self.revision.0))];
        let mut set = |column: &str, value: Option<Value>| {
            if let Some(value) = value {
                write!(sql, ", {column} = ?").expect("writing to memory does not fail");
                values.push(value);
            }
        };
        // Only what changes is named, because naming an indexed column rewrites its indexes.
        set("phase", update.phase.clone().map(Value::from));
        set("message", update.message.clone().map(Value::from));
        set("started", update.started.map(|time| time.0.into()));
        set("finished", update.finished.map(|time| time.0.into()));
        set("labels", update.labels.as_ref().map(|labels| encode_labels(labels).into()));
        set("progress", update.progress.clone().map(Value::from));
        set("priority", update.priority.map(Value::from));
        set("open", (transition == Transition::Finished).then(|| 0.into()));
        sql.push_str(" WHERE run = ?");
        values.push(signed(run.0).into());
        let changed = self
            .conn
            .prepare_cached(&sql)
            .and_then(|mut update| update.execute(params_from_iter(values)))
            .doing("update a run")?;
        if changed == 0 { Err(Error::UnknownRun { run }) } else { Ok(()) }
    }

    pub(super) fn archive(&self, run: RunId, archive: &Archive) -> Result<(), Error> {
        self.conn
            .prepare_cached("INSERT INTO archive (run, size, body, record) VALUES (?1, ?2, ?3, ?4)")
            .and_then(|mut insert| insert.execute(columns(run, archive)))
            .doing("archive a run")?;
        archive.staged().map_or(Ok(()), |record| records::publish(self.conn, record, run))
    }

    pub(super) fn rewrite(&self, run: RunId, archive: &Archive) -> Result<(), Error> {
        self.drop_record(run)?;
        let rewritten = self
            .conn
            .prepare_cached("UPDATE archive SET size = ?2, body = ?3, record = ?4 WHERE run = ?1")
            .and_then(|mut update| update.execute(columns(run, archive)))
            .doing("rewrite the record of a run")?;
        match archive.staged() {
            Some(record) if rewritten == 0 => records::discard(self.conn, record)?,
            Some(record) => records::publish(self.conn, record, run)?,
            None => {}
        }
        // Readers see another record now, so the run gets a new revision.
        self.conn
            .prepare_cached("UPDATE runs SET revision = ?2 WHERE run = ?1")
            .and_then(|mut update| update.execute((signed(run.0), signed(self.revision.0))))
            .map(drop)
            .doing("rewrite the record of a run")
    }

    pub(super) fn delete(&self, run: RunId) -> Result<(), Error> {
        let (created, labels) = self.labels(run)?;
        self.unlabel(run, created, &labels)?;
        records::discard_of(self.conn, run)?;
        self.drop_record(run)?;
        for sql in ["DELETE FROM runs WHERE run = ?1", "DELETE FROM archive WHERE run = ?1"] {
            self.conn
                .prepare_cached(sql)
                .and_then(|mut delete| delete.execute([signed(run.0)]))
                .doing("delete a run")?;
        }
        Ok(())
    }

    /// Lists the parts of the run's record as garbage, if it has parts.
    fn drop_record(&self, run: RunId) -> Result<(), Error> {
        let record: Option<Option<i64>> = self
            .conn
            .prepare_cached("SELECT record FROM archive WHERE run = ?1")
            .and_then(|mut find| find.query_row([signed(run.0)], |row| row.get(0)).optional())
            .doing("find the record of a run")?;
        match record.flatten() {
            Some(record) => records::list(self.conn, Garbage::Record(RecordId(unsigned(record)))),
            None => Ok(()),
        }
    }

    /// Makes the child runs of one run children of another.
    pub(super) fn reparent(&self, old: RunId, new: RunId) -> Result<(), Error> {
        self.conn
            .prepare_cached("UPDATE runs SET parent = ?2, revision = ?3 WHERE parent = ?1")
            .and_then(|mut update| update.execute((signed(old.0), signed(new.0), signed(self.revision.0))))
            .map(drop)
            .doing("reparent child runs")
    }

    /// Returns whether the run is unfinished; `None` if there is no such run.
    pub(super) fn is_open(&self, run: RunId) -> Result<Option<bool>, Error> {
        self.conn
            .prepare_cached("SELECT open FROM runs WHERE run = ?1")
            .and_then(|mut find| find.query_row([signed(run.0)], |row| row.get(0)).optional())
            .doing("find a run")
    }

    fn relabel(&self, run: RunId, labels: &Labels) -> Result<(), Error> {
        let (created, before) = self.labels(run)?;
        let missing_from = |other: &Labels, these: &Labels| -> Labels {
            these
                .iter()
                .filter(|(key, value)| other.get(*key) != Some(value))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect()
        };
        self.unlabel(run, created, &missing_from(labels, &before))?;
        self.label(run, created, &missing_from(&before, labels))
    }

    fn label(&self, run: RunId, created: Time, labels: &Labels) -> Result<(), Error> {
        let sql = "INSERT INTO run_labels (key, value, created, run) VALUES (?1, ?2, ?3, ?4)";
        self.each_label(sql, run, created, labels)
    }

    fn unlabel(&self, run: RunId, created: Time, labels: &Labels) -> Result<(), Error> {
        let sql = "DELETE FROM run_labels WHERE key = ?1 AND value = ?2 AND created = ?3 AND run = ?4";
        self.each_label(sql, run, created, labels)
    }

    fn each_label(&self, sql: &str, run: RunId, created: Time, labels: &Labels) -> Result<(), Error> {
        for (key, value) in labels {
            self.conn
                .prepare_cached(sql)
                .and_then(|mut change| change.execute((key, value, created.0, signed(run.0))))
                .doing("store the labels of a run")?;
        }
        Ok(())
    }

    fn labels(&self, run: RunId) -> Result<(Time, Labels), Error> {
        let found: Option<(i64, String)> = self
            .conn
            .prepare_cached("SELECT created, labels FROM runs WHERE run = ?1")
            .and_then(|mut find| find.query_row([signed(run.0)], |row| Ok((row.get(0)?, row.get(1)?))).optional())
            .doing("read the labels of a run")?;
        let (created, labels) = found.ok_or(Error::UnknownRun { run })?;
        Ok((Time(created), decode_labels(run, &labels)?))
    }

    /// Returns the error for the uniqueness rule that a new run violated.
    fn conflict(&self, row: &RunRow) -> Result<Error, Error> {
        let holder: Option<i64> = self
            .conn
            .prepare_cached("SELECT run FROM runs WHERE name = ?1 AND namespace = ?2 AND kind = ?3")
            .and_then(|mut find| find.query_row((&row.name, &row.namespace, &row.kind), |row| row.get(0)).optional())
            .doing("find a run by name")?;
        Ok(match holder.map(|run| RunId(unsigned(run))) {
            Some(holder) if holder != row.run => Error::NameTaken {
                namespace: row.namespace.clone(),
                kind: row.kind.clone(),
                name: row.name.clone(),
                holder,
            },
            _ => Error::RunExists { run: row.run },
        })
    }
}

/// Returns the columns of an archive row without copying the record.
fn columns(run: RunId, archive: &Archive) -> (i64, i64, &[u8], Option<i64>) {
    let (body, record) = match &archive.content {
        Content::Inline(packed) => (packed.as_slice(), None),
        Content::Staged(record) => (&[][..], Some(signed(record.0))),
    };
    (signed(run.0), signed(archive.size as u64), body, record)
}
