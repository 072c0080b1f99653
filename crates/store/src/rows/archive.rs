//! The final record of a run, compressed. Compression takes time in proportion to the record, so it happens on the
//! thread that makes the record and never on the writer's.

use std::{
    io::{BufWriter, Read, Write},
    sync::Arc,
};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use octoflow_model::RunId;

use crate::Error;

/// Bytes buffered before they are compressed.
const WRITE_BUFFER: usize = 64 * 1024;

/// JSON of a final object, compressed with gzip so that standard tools can unpack it.
#[derive(Debug)]
pub struct Archive {
    /// Size of the JSON in bytes.
    pub(crate) size: usize,
    pub(crate) content: Content,
}

/// Location of the compressed bytes.
#[derive(Debug)]
pub(crate) enum Content {
    Inline(Vec<u8>),
    /// Stored in the database already, in parts that are invisible until a commit names the record.
    Staged(RecordId),
}

/// Number of a final record that is stored in parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordId(pub(crate) u64);

impl Archive {
    pub fn pack(json: &[u8]) -> Self {
        let mut encoder = GzEncoder::new(Vec::with_capacity(json.len() / 8 + 64), Compression::fast());
        encoder.write_all(json).expect("writing to memory does not fail");
        let packed = encoder.finish().expect("writing to memory does not fail");
        Self { size: json.len(), content: Content::Inline(packed) }
    }

    /// Compresses what `write` writes piece by piece, so that a large record is never held in memory whole.
    pub fn pack_with(write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Self {
        struct Counting<W>(W, usize);
        impl<W: Write> Write for Counting<W> {
            fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
                let written = self.0.write(bytes)?;
                self.1 += written;
                Ok(written)
            }
            fn flush(&mut self) -> std::io::Result<()> {
                self.0.flush()
            }
        }
        let counting = Counting(GzEncoder::new(Vec::new(), Compression::fast()), 0);
        // The encoder clears its output buffer at every call, which dwarfs the work for small writes.
        let mut buffered = BufWriter::with_capacity(WRITE_BUFFER, counting);
        write(&mut buffered).expect("writing to memory does not fail");
        let counting =
            buffered.into_inner().map_err(|error| error.into_error()).expect("writing to memory does not fail");
        let Counting(encoder, size) = counting;
        Self { size, content: Content::Inline(encoder.finish().expect("writing to memory does not fail")) }
    }

    /// Returns the id of the staged record, if the content is staged.
    pub(crate) fn staged(&self) -> Option<RecordId> {
        match self.content {
            Content::Inline(_) => None,
            Content::Staged(record) => Some(record),
        }
    }

    /// Returns the memory that the compressed bytes take.
    pub(crate) fn weight(&self) -> usize {
        match &self.content {
            Content::Inline(packed) => packed.len(),
            Content::Staged(_) => 0,
        }
    }
}

pub(crate) fn unpack(run: RunId, size: usize, packed: &[u8]) -> Result<Vec<u8>, Error> {
    let mut json = Vec::with_capacity(size);
    // The recorded size bounds the output, so that a damaged record cannot expand without end.
    let outcome = GzDecoder::new(packed).take(size as u64 + 1).read_to_end(&mut json);
    let problem = match outcome {
        Ok(found) if found == size => return Ok(json),
        Ok(found) => std::io::Error::other(format!("expected {size} bytes, found {found}")),
        Err(error) => error,
    };
    Err(Error::Damaged { what: format!("the archive record of run {run}"), source: Arc::new(problem) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(archive: &Archive) -> Vec<u8> {
        match &archive.content {
            Content::Inline(packed) => packed.clone(),
            Content::Staged(record) => panic!("{record:?} is elsewhere"),
        }
    }

    #[test]
    fn an_archive_gives_back_every_byte() {
        let json = br#"{"status":{"phase":"Succeeded"}}"#.repeat(1000);
        let archive = Archive::pack(&json);
        assert!(archive.weight() < json.len() / 10);
        assert_eq!(unpack(RunId(1), archive.size, &packed(&archive)).unwrap(), json);
        assert_eq!(unpack(RunId(1), 0, &packed(&Archive::pack(b""))).unwrap(), b"");
    }

    #[test]
    fn a_damaged_archive_is_an_error_that_names_the_run() {
        let whole = packed(&Archive::pack(&b"abc".repeat(1000)));
        let mut damaged = whole.clone();
        damaged[whole.len() / 2] ^= 0xff;
        let error = unpack(RunId(7), 3000, &damaged).unwrap_err();
        assert!(error.to_string().contains("run 7"), "{error}");

        assert!(matches!(unpack(RunId(7), 10, &whole), Err(Error::Damaged { .. })));
        assert!(matches!(unpack(RunId(7), 3000, &whole[..whole.len() - 9]), Err(Error::Damaged { .. })));
    }
}
