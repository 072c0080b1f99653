//! Lists label keys and values. Skips from one key or value to the next in the index, so that a list over all
//! namespaces does not depend on the number of runs.

use rusqlite::{Connection, OptionalExtension};

/// Tells whether any run of the namespace has the label. Used only if a namespace is given.
const EXISTS_IN_NAMESPACE: &str =
    "SELECT 1 FROM run_labels l CROSS JOIN runs r ON r.run = l.run WHERE l.key = ?1 AND (?2 IS NULL OR l.value = ?2)
     AND r.namespace = ?3 LIMIT 1";

pub(crate) fn label_keys(conn: &Connection, namespace: Option<&str>) -> rusqlite::Result<Vec<String>> {
    let mut next = conn.prepare_cached("SELECT min(key) FROM run_labels WHERE key > ?1")?;
    let mut found = Vec::new();
    let mut last = String::new();
    while let Some(key) = next.query_row([&last], |row| row.get::<_, Option<String>>(0))? {
        if exists_in_namespace(conn, &key, None, namespace)? {
            found.push(key.clone());
        }
        last = key;
    }
    Ok(found)
}

pub(crate) fn label_values(conn: &Connection, key: &str, namespace: Option<&str>) -> rusqlite::Result<Vec<String>> {
    // An empty value is a value, so the first one cannot be looked for as one after the empty text.
    let mut first = conn.prepare_cached("SELECT min(value) FROM run_labels WHERE key = ?1")?;
    let mut next = conn.prepare_cached("SELECT min(value) FROM run_labels WHERE key = ?1 AND value > ?2")?;
    let mut found = Vec::new();
    let mut value = first.query_row([key], |row| row.get::<_, Option<String>>(0))?;
    while let Some(current) = value {
        value = next.query_row([key, &current], |row| row.get(0))?;
        if exists_in_namespace(conn, key, Some(&current), namespace)? {
            found.push(current);
        }
    }
    Ok(found)
}

fn exists_in_namespace(
    conn: &Connection,
    key: &str,
    value: Option<&str>,
    namespace: Option<&str>,
) -> rusqlite::Result<bool> {
    let Some(namespace) = namespace else { return Ok(true) };
    let mut find = conn.prepare_cached(EXISTS_IN_NAMESPACE)?;
    find.query_row((key, value, namespace), |_| Ok(())).optional().map(|found| found.is_some())
}
