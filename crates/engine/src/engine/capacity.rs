//! The capacity of one machine that nobody configured, as it is measured.

use crate::schedule::spec::NodeSpec;

/// The name of the node of a [`Capacity`].
pub(crate) const LOCAL: &str = "local";

/// Measured capacity of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Maximum number of running tasks.
    pub slots: usize,
    pub cpu_milli: u64,
    pub memory_bytes: u64,
}

impl From<Capacity> for NodeSpec {
    fn from(capacity: Capacity) -> Self {
        Self::measured(LOCAL, capacity.slots as u64, capacity.cpu_milli, capacity.memory_bytes)
    }
}
