//! Argo Server's face: the REST shapes under /api/v1 that its clients and Hera speak.
//! It maps requests to the registry and answers to those shapes; it decides nothing about runs itself.

use crate::route::{Face, Table};

pub(crate) fn routes() -> Table {
    Table::new(Face::Argo)
}
