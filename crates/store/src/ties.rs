//! Reads who belongs to whom, what is being deleted, and what a namespace holds: names only, of objects and of runs.

use crate::{Reader, error::Doing};

use crate::Error;

/// What one object or run is called among all of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name {
    pub kind: String,
    pub namespace: String,
    pub name: String,
}

impl Reader {
    /// Everything that belongs to whoever has this uid.
    pub fn owned_by(&self, uid: &str) -> Result<Vec<Name>, Error> {
        let sql = "SELECT kind, namespace, name FROM owners WHERE owner = ?1 ORDER BY kind, namespace, name";
        self.names(sql, [uid], "find what belongs to an object")
    }

    /// Everything that is being deleted.
    pub fn leaving(&self) -> Result<Vec<Name>, Error> {
        let sql = "SELECT kind, namespace, name FROM leaving ORDER BY kind, namespace, name";
        self.names(sql, [], "find what is being deleted")
    }

    /// Everything that belongs to somebody.
    pub fn all_owned(&self) -> Result<Vec<Name>, Error> {
        let sql = "SELECT DISTINCT kind, namespace, name FROM owners ORDER BY kind, namespace, name";
        self.names(sql, [], "find what belongs to somebody")
    }

    pub fn has_owner(&self, name: &Name) -> Result<bool, Error> {
        let sql = "SELECT kind, namespace, name FROM owners WHERE kind = ?1 AND namespace = ?2 AND name = ?3 LIMIT 1";
        let found = self.names(sql, (&name.kind, &name.namespace, &name.name), "look for an owner")?;
        Ok(!found.is_empty())
    }

    /// Some of what is in a namespace: objects first, then runs.
    pub fn contents(&self, namespace: &str, limit: usize) -> Result<Vec<Name>, Error> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let sql =
            "SELECT kind, namespace, name FROM objects INDEXED BY objects_namespace WHERE namespace = ?1 LIMIT ?2";
        let mut found = self.names(sql, (namespace, limit), "list a namespace")?;
        let rest = limit - i64::try_from(found.len()).unwrap_or(i64::MAX);
        if rest > 0 {
            let filter = crate::Filter { namespace: Some(namespace.to_owned()), ..crate::Filter::default() };
            let limit = usize::try_from(rest).unwrap_or(usize::MAX);
            let (rows, _) = self.list(&filter, crate::Page { limit, after: None })?;
            found.extend(rows.into_iter().map(|row| Name { kind: row.kind, namespace: row.namespace, name: row.name }));
        }
        Ok(found)
    }

    /// The namespaces that have anything in them.
    pub fn namespaces(&self) -> Result<Vec<String>, Error> {
        // Each jump lands on the next namespace, so the cost follows their number and not that of what is in them.
        let objects = "WITH RECURSIVE found (namespace) AS (
                SELECT min(namespace) FROM objects WHERE namespace > ''
                UNION ALL
                SELECT (SELECT min(namespace) FROM objects WHERE namespace > found.namespace) FROM found
                WHERE found.namespace IS NOT NULL
            ) SELECT namespace FROM found WHERE namespace IS NOT NULL";
        let runs = "WITH RECURSIVE found (kind, namespace) AS (
                SELECT kind, namespace FROM (SELECT kind, namespace FROM runs INDEXED BY runs_namespace
                    WHERE kind > '' ORDER BY kind, namespace LIMIT 1)
                UNION ALL
                SELECT next.kind, next.namespace FROM found, runs AS next WHERE next.run = (
                    SELECT run FROM runs INDEXED BY runs_namespace
                    WHERE (kind, namespace) > (found.kind, found.namespace) ORDER BY kind, namespace LIMIT 1)
            ) SELECT DISTINCT namespace FROM found";
        let mut all = std::collections::BTreeSet::new();
        for sql in [objects, runs] {
            let found: Vec<String> = self
                .conn
                .prepare_cached(sql)
                .and_then(|mut find| find.query_map([], |row| row.get(0))?.collect())
                .doing("list namespaces")?;
            all.extend(found);
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
