//! The HTTP faces, a folder each: Kubernetes, Argo Server, the submission pipeline, our own, and the document that describes them all.
//! A face reads and writes in its own words and leaves every decision to the registry.

pub(crate) mod argo;
pub(crate) mod kube;
pub(crate) mod openapi;
pub(crate) mod own;
pub(crate) mod submission;
