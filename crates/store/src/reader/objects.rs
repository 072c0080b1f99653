//! Kept objects in pages, ordered by namespace and name. A page is bounded in rows and in bytes, and the next one begins
//! after the last object of it: nobody needs all objects of a kind in memory, and no reader is open between two pages.

use rusqlite::ToSql;

use super::Reader;
use crate::{Error, Object, database::seal, error::Doing, rows::row::read_object};

/// The most of one page: it ends with the object that reaches either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectPage {
    pub rows: usize,
    pub bytes: usize,
}

impl Reader {
    /// The objects of a kind that come after this namespace and name; of one namespace, or of all. An empty page is the
    /// end.
    pub fn objects_after(
        &self,
        kind: &str,
        namespace: Option<&str>,
        after: Option<(&str, &str)>,
        page: ObjectPage,
    ) -> Result<Vec<Object>, Error> {
        if seal::is_sealed(kind) && self.conn.is_autocommit() {
            return self.snapshot(|reader| reader.objects_after(kind, namespace, after, page));
        }
        let mut found: Vec<Object> = Vec::new();
        let mut bytes = 0;
        self.each_after("kind, namespace, name, uid, revision, body", kind, namespace, after, |row| {
            let object = read_object(row)?;
            bytes += object.body.len();
            found.push(object);
            Ok(found.len() < page.rows && bytes < page.bytes)
        })?;
        found.into_iter().map(|object| seal::open(&self.conn, self.master.as_ref(), object)).collect()
    }

    /// The same without the objects: their namespaces and names, so many of them.
    pub fn object_names_after(
        &self,
        kind: &str,
        namespace: Option<&str>,
        after: Option<(&str, &str)>,
        rows: usize,
    ) -> Result<Vec<(String, String)>, Error> {
        let mut found = Vec::new();
        self.each_after("namespace, name", kind, namespace, after, |row| {
            found.push((row.get(0)?, row.get(1)?));
            Ok(found.len() < rows)
        })?;
        Ok(found)
    }

    /// Hands over row after row while it is told to go on.
    fn each_after(
        &self,
        columns: &str,
        kind: &str,
        namespace: Option<&str>,
        after: Option<(&str, &str)>,
        mut take: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<bool>,
    ) -> Result<(), Error> {
        // Every object has a name, so nothing comes before the empty one.
        let (space, name) = after.unwrap_or_default();
        let (place, values): (&str, [&dyn ToSql; 3]) = match &namespace {
            Some(namespace) => ("namespace = ?2 AND name > ?3", [&kind, namespace, &name]),
            None => ("(namespace, name) > (?2, ?3)", [&kind, &space, &name]),
        };
        let sql = format!("SELECT {columns} FROM objects WHERE kind = ?1 AND {place} ORDER BY namespace, name");
        let mut each = || -> rusqlite::Result<()> {
            let mut find = self.conn.prepare_cached(&sql)?;
            let mut rows = find.query(values)?;
            while let Some(row) = rows.next()? {
                if !take(row)? {
                    break;
                }
            }
            Ok(())
        };
        each().doing("list objects")
    }
}
