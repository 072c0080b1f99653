//! Field tables of containers and volumes, shared by all dialects.

pub(crate) mod container;
pub(crate) mod placement;
pub(crate) mod pod;
pub(crate) mod volume;

/// Why fields that only concern Kubernetes pods have no effect.
pub(crate) const NO_PODS: &str = "tasks run as processes here, not as pods";
