//! The final record of a flow. It has no logs of its own: its jobs have.

use std::io::{self, Write};

use super::{Run, status};
use crate::run::record::write_runs;

pub(super) fn write(run: &Run, to: &mut dyn Write) -> io::Result<()> {
    to.write_all(b"{\"object\":")?;
    serde_json::to_writer(&mut *to, &status::object(run))?;
    write_runs(run.replaced_runs(), to)?;
    to.write_all(b"}")
}
