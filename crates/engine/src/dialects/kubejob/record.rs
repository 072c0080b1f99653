//! The final record of a job.

use std::io::{self, Write};

use super::{Run, status};
use crate::run::record::{write_log_sizes, write_runs};

/// Writes the record. Every try is listed with its own attempt, under the name of its log.
pub(super) fn write(run: &Run, to: &mut dyn Write) -> io::Result<()> {
    to.write_all(b"{\"object\":")?;
    serde_json::to_writer(&mut *to, &status::object(run))?;
    to.write_all(b",\"elsewhere\":{")?;
    for (count, (log, attempt)) in run.logs().into_iter().enumerate() {
        let comma = if count == 0 { "" } else { "," };
        write!(to, "{comma}{}:\"{attempt}\"", serde_json::to_string(&log)?)?;
    }
    to.write_all(b"}")?;
    write_log_sizes(run.state.logs.iter().copied(), to)?;
    write_runs(run.replaced_runs(), to)?;
    to.write_all(b"}")
}
