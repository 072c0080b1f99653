//! The Kubernetes-style face: every kind of the registry under /api and /apis, in the words kubectl expects.
//! It maps requests to the registry and answers to Kubernetes shapes; it decides nothing about objects itself.

use crate::route::{Face, Table};

pub(crate) fn routes() -> Table {
    Table::new(Face::Kube)
}
