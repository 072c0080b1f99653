//! Reads owner references, pending deletions, and the content of namespaces: names only, of objects and runs.

use crate::{Error, Filter, Page, Reader, error::Doing, reader::list};

/// Unique name of an object or run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name {
    pub kind: String,
    pub namespace: String,
    pub name: String,
}

impl Reader {
    /// Returns everything owned by the object with this uid.
    pub fn owned_by(&self, uid: &str) -> Result<Vec<Name>, Error> {
        let sql = "SELECT kind, namespace, name FROM owners WHERE owner = ?1 ORDER BY kind, namespace, name";
        self.names(sql, [uid], "find what belongs to an object")
    }

    /// Returns everything that is being deleted.
    pub fn being_deleted(&self) -> Result<Vec<Name>, Error> {
        let sql = "SELECT kind, namespace, name FROM leaving ORDER BY kind, namespace, name";
        self.names(sql, [], "find what is being deleted")
    }

    /// Returns everything that has an owner.
    pub fn all_owned(&self) -> Result<Vec<Name>, Error> {
        let sql = "SELECT DISTINCT kind, namespace, name FROM owners ORDER BY kind, namespace, name";
        self.names(sql, [], "find what has an owner")
    }

    pub fn has_owner(&self, name: &Name) -> Result<bool, Error> {
        let sql = "SELECT kind, namespace, name FROM owners WHERE kind = ?1 AND namespace = ?2 AND name = ?3 LIMIT 1";
        let found = self.names(sql, (&name.kind, &name.namespace, &name.name), "look for an owner")?;
        Ok(!found.is_empty())
    }

    /// Returns up to `limit` names in a namespace: objects of these kinds first, then runs.
    pub fn contents(&self, namespace: &str, kinds: &[&str], limit: usize) -> Result<Vec<Name>, Error> {
        let mut found = Vec::new();
        let sql = "SELECT kind, namespace, name FROM objects INDEXED BY objects_name
                   WHERE kind = ?1 AND namespace = ?2 ORDER BY name LIMIT ?3";
        for kind in kinds {
            let rest = i64::try_from(limit - found.len()).unwrap_or(i64::MAX);
            found.extend(self.names(sql, (kind, namespace, rest), "list a namespace")?);
        }
        if found.len() < limit {
            let filter = Filter { namespace: Some(namespace.to_owned()), ..Filter::default() };
            let (rows, _) = self.list(&filter, Page { limit: limit - found.len(), after: None })?;
            found.extend(rows.into_iter().map(|row| Name { kind: row.kind, namespace: row.namespace, name: row.name }));
        }
        Ok(found)
    }

    /// Returns the namespaces that have a run or an object of these kinds.
    pub fn namespaces(&self, kinds: &[&str]) -> Result<Vec<String>, Error> {
        // Each step skips to the next namespace in the index, so the cost depends on their number and not on their
        // content.
        let objects = "SELECT min(namespace) FROM objects INDEXED BY objects_name WHERE kind = ?1 AND namespace > ?2";
        let runs = "SELECT min(namespace) FROM runs INDEXED BY runs_namespace WHERE kind = ?1 AND namespace > ?2";
        let mut all = std::collections::BTreeSet::new();
        let of_runs = list::kinds(&self.conn).doing("list kinds")?;
        let ways = kinds.iter().map(|kind| (objects, *kind));
        for (sql, kind) in ways.chain(of_runs.iter().map(|kind| (runs, kind.as_str()))) {
            let mut last = String::new();
            loop {
                let next: Option<String> = self
                    .conn
                    .prepare_cached(sql)
                    .and_then(|mut find| find.query_row((kind, &last), |row| row.get(0)))
                    .doing("list namespaces")?;
                let Some(next) = next else { break };
                all.insert(next.clone());
                last = next;
            }
        }
        Ok(all.into_iter().collect())
    }

    fn names(&self, sql: &str, values: impl rusqlite::Params, doing: &'static str) -> Result<Vec<Name>, Error> {
        self.conn
            .prepare_cached(sql)
            .and_then(|mut find| {
                find.query_map(values, |row| Ok(Name { kind: row.get(0)?, namespace: row.get(1)?, name: row.get(2)? }))?
                    .collect()
            })
            .doing(doing)
    }
}
