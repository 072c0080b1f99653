//! An artifact that is to be deleted some day, as the record of a finished run keeps it.

use serde::{Deserialize, Serialize};

use super::GcStrategy;
use crate::task::StoredArtifact;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Garbage {
    /// The id of the node that made it.
    pub node: String,
    pub name: String,
    pub strategy: GcStrategy,
    pub artifact: StoredArtifact,
}
