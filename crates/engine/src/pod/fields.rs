//! The fields of pods that several dialects share: the one table for containers and volumes.

pub(crate) mod container;
pub(crate) mod volume;

/// Why fields that only place or shape pods do nothing.
pub(crate) const NO_PODS: &str = "tasks run as processes here, not as pods";
