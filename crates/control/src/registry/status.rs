//! What the controller itself writes into an object: its status, and labels that follow from it. Specifications are left
//! alone, and so is what somebody else changed meanwhile.

use serde_json::Value;

use super::{Fault, Kind, Registry};

/// How often a change is tried again on what somebody else left.
const TRIES: usize = 8;

impl Registry {
    /// Changes the object if it is still there and still has this uid. The answer is what it is now.
    pub(crate) fn note_status(
        &self,
        kind: &'static Kind,
        namespace: &str,
        name: &str,
        uid: &str,
        mut change: impl FnMut(&mut Value),
    ) -> Result<Option<Value>, Fault> {
        for last in (0..TRIES).rev() {
            let Some(kept) = self.stored_object(kind, namespace, name)?.filter(|kept| kept.uid == uid) else {
                return Ok(None);
            };
            let mut after = kept.object.clone();
            change(&mut after);
            if after == kept.object {
                return Ok(Some(after));
            }
            match self.shelve(kind, &after, uid, Some(kept.revision)) {
                Err(Fault::Conflict { .. }) if last > 0 => {}
                stored => return stored.map(Some),
            }
        }
        unreachable!("the last try answers")
    }
}
