//! Writes large final records into the database in parts, each in a commit of its own, before the commit that needs them.
//! Nobody else waits longer for the writer than one part takes.

use std::{thread, time::Instant};

use octoflow_model::RunId;

use crate::{Archive, Change, Error, RecordId, Store, archive::Content};

/// The bytes of one part: a sync of this much costs hardly more than one of a few bytes.
pub(crate) const PART_BYTES: usize = 64 << 10;

impl Store {
    /// Writes the archive of a run in parts if it is large; a small one is answered as it is. What comes back is to be
    /// committed with `Finish` or `Rewrite`; the parts are deleted when that is refused, when the run is deleted, and when
    /// the database is opened again. It waits for the disk, so it is not for the writer's thread nor for anybody who must
    /// answer soon.
    pub fn stage(&self, run: RunId, archive: Archive) -> Result<Archive, Error> {
        let Archive { size, content } = archive;
        let packed = match content {
            Content::Here(packed) if packed.len() > PART_BYTES => packed,
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
