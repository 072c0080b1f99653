//! The final record of a run, compressed. Packing costs time in proportion to the record, so it happens on the
//! thread that makes the record and never on the writer's.

use std::{
    io::{BufWriter, Read, Write},
    sync::Arc,
};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use octoflow_model::RunId;

use crate::Error;

/// How much is gathered before it is compressed.
const WRITE_BUFFER: usize = 64 * 1024;

/// A final object's JSON, packed with gzip so that anybody with the file can unpack it.
#[derive(Clone, Debug)]
pub struct Archive {
    pub(crate) size: usize,
    pub(crate) packed: Vec<u8>,
}

impl Archive {
    pub fn pack(json: &[u8]) -> Self {
        let mut encoder = GzEncoder::new(Vec::with_capacity(json.len() / 8 + 64), Compression::fast());
        encoder.write_all(json).expect("writing to memory does not fail");
        let packed = encoder.finish().expect("writing to memory does not fail");
        Self { size: json.len(), packed }
    }

    /// Packs what is written bit by bit, so that a large record is never held whole.
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
        Self { size, packed: encoder.finish().expect("writing to memory does not fail") }
    }

    pub(crate) fn unpack(&self, run: RunId) -> Result<Vec<u8>, Error> {
        let mut json = Vec::with_capacity(self.size);
        // The recorded size bounds the output, so that a damaged record cannot expand without end.
        let outcome = GzDecoder::new(self.packed.as_slice()).take(self.size as u64 + 1).read_to_end(&mut json);
        let problem = match outcome {
            Ok(size) if size == self.size => return Ok(json),
            Ok(size) => std::io::Error::other(format!("expected {} bytes, found {size}", self.size)),
            Err(error) => error,
        };
        Err(Error::Damaged { what: format!("the archive record of run {run}"), source: Arc::new(problem) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_gives_back_every_byte() {
        let json = br#"{"status":{"phase":"Succeeded"}}"#.repeat(1000);
        let archive = Archive::pack(&json);
        assert!(archive.packed.len() < json.len() / 10);
        assert_eq!(archive.unpack(RunId(1)).unwrap(), json);
        assert_eq!(Archive::pack(b"").unpack(RunId(1)).unwrap(), b"");
    }

    #[test]
    fn a_damaged_archive_is_an_error_that_names_the_run() {
        let mut archive = Archive::pack(&b"abc".repeat(1000));
        let middle = archive.packed.len() / 2;
        archive.packed[middle] ^= 0xff;
        let error = archive.unpack(RunId(7)).unwrap_err();
        assert!(error.to_string().contains("run 7"), "{error}");

        let mut longer = Archive::pack(&b"abc".repeat(1000));
        longer.size = 10;
        assert!(matches!(longer.unpack(RunId(7)), Err(Error::Damaged { .. })));
    }
}
