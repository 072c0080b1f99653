//! Status updates by the controller itself: the status of an object and labels derived from it. It never changes
//! specifications and never overwrites concurrent changes.

use serde_json::Value;

use super::{Fault, Kind, Registry};

/// Number of tries when concurrent changes interfere.
const TRIES: usize = 8;

impl Registry {
    /// Changes the object if it still exists with this uid. Returns its new state.
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
            match self.store_object(kind, &after, uid, Some(kept.revision)) {
                Err(Fault::Conflict { .. }) if last > 0 => {}
                stored => return stored.map(Some),
            }
        }
        unreachable!("the last try answers")
    }
}
