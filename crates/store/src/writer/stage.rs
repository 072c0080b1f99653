//! Stages large final records: they are written in parts, each in a commit of its own, before the commit that needs
//! them, so that other committers never wait for more than one part.

use std::{thread, time::Instant};

use octoflow_model::RunId;

use crate::{Archive, Change, Error, RecordId, Store, rows::archive::Content};

/// Bytes of one part: a sync of this much costs hardly more than one of a few bytes.
pub(crate) const PART_BYTES: usize = 64 << 10;

impl Store {
    /// Writes a large archive of a run in parts; returns a small one unchanged. The result is to be committed with
    /// `Finish` or `Rewrite`; the parts are deleted if that is refused, if the run is deleted, and if the database is
    /// reopened. Waits for the disk, so it must not be called on the writer's thread nor by a caller that must answer
    /// soon.
    pub fn stage(&self, run: RunId, archive: Archive) -> Result<Archive, Error> {
        let Archive { size, content } = archive;
        let packed = match content {
            Content::Inline(packed) if packed.len() > PART_BYTES => packed,
            content => return Ok(Archive { size, content }),
        };
        let record = self.next_record()?;
        for (part, body) in (0..).zip(packed.chunks(PART_BYTES)) {
            let began = Instant::now();
            self.commit_background(Change::StageRecord { record, run, part, body: body.to_vec() }.into())?;
            // Others get the writer and the disk at least half of the time.
            thread::sleep(began.elapsed());
        }
        Ok(Archive { size, content: Content::Staged(record) })
    }

    fn next_record(&self) -> Result<RecordId, Error> {
        let mut next = self.records();
        let record = match *next {
            Some(record) => record,
            None => self.reader()?.next_record()?,
        };
        *next = Some(RecordId(record.0 + 1));
        Ok(record)
    }
}
