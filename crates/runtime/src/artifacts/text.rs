//! A small artifact as text: the file itself, or the one file in its archive.

use std::io::Read;

use flate2::read::GzDecoder;
use octoflow_model::task::{Archive, StoredArtifact};

use super::store::Store;

/// The most a manifest may have.
const LARGEST: u64 = 4 * 1024 * 1024;

/// The reason when there is no such text.
pub fn text(store: &Store, artifact: &StoredArtifact, sub_path: Option<&str>) -> Result<String, String> {
    let told = |error: &dyn std::fmt::Display| format!("artifact '{}' cannot be read: {error}", artifact.key);
    let mut file = store.open(artifact).map_err(|error| told(&error))?;
    let stored = bounded(&mut file).map_err(|error| told(&error))?;
    let plain = if stored.starts_with(&[0x1f, 0x8b]) {
        bounded(&mut GzDecoder::new(stored.as_slice())).map_err(|error| told(&error))?
    } else {
        stored
    };
    let bytes = match artifact.archive {
        Archive::None => plain,
        Archive::Zip => return Err(told(&"it is a zip archive, and a single file is needed")),
        Archive::Tar { .. } => {
            let mut archive = tar::Archive::new(plain.as_slice());
            let mut found = None;
            for entry in archive.entries().map_err(|error| told(&error))? {
                let mut entry = entry.map_err(|error| told(&error))?;
                let path = entry.path().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
                let wanted = sub_path.is_none_or(|wanted| path.ends_with(wanted.trim_matches('/')));
                if !entry.header().entry_type().is_file() || !wanted {
                    continue;
                }
                if found.is_some() {
                    return Err(told(&"it holds several files, and a single one is needed"));
                }
                found = Some(bounded(&mut entry).map_err(|error| told(&error))?);
            }
            found.ok_or_else(|| told(&"there is no file in it"))?
        }
    };
    String::from_utf8(bytes).map_err(|_| told(&"it is not text"))
}

fn bounded(read: &mut dyn Read) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    read.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > LARGEST { Err(format!("it is larger than {LARGEST} bytes")) } else { Ok(bytes) }
}
