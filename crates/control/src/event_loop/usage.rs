//! What tenants used, on disk: one object for each queue and tenant, written in the same commit as the facts that changed it,
//! as metric totals are. A crash rolls back both.

use octoflow_engine::schedule::UsageRecord;
use octoflow_store::{Change, Reader};

use crate::Error;

/// Kind of these objects. Manifests cannot have it, because it cannot be loaded.
pub(crate) const KIND: &str = "Usage";

/// Makes the change that stores a usage.
pub(crate) fn put(record: &UsageRecord) -> Change {
    Change::PutObject {
        kind: KIND.to_owned(),
        namespace: record.queue.clone(),
        name: record.tenant.clone(),
        uid: String::new(),
        body: serde_json::to_vec(record).expect("a record has only finite numbers and texts"),
    }
}

/// Loads all stored usages. Also returns what could not be read.
pub(crate) fn load(reader: &Reader) -> Result<(Vec<UsageRecord>, Vec<String>), Error> {
    let (mut records, mut odd) = (Vec::new(), Vec::new());
    for object in reader.objects(KIND, None)? {
        match serde_json::from_slice(&object.body) {
            Ok(record) => records.push(record),
            Err(why) => odd.push(format!("what {} used of queue {} is left out: {why}", object.name, object.namespace)),
        }
    }
    Ok((records, odd))
}
