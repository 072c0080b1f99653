//! Reads a small artifact as text: the file itself, or the one file in its archive.

use std::io::{Read, Seek};

use flate2::read::GzDecoder;
use octoflow_model::{
    location::Location,
    task::{Archive, StoredArtifact},
};

use super::{
    client::{ArtifactClient, Error as ArtifactError},
    items::{self, ArchiveFormat},
    store::Store,
};

/// Size limit of a text, which is that of a manifest.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Reads a stored artifact as text. The error says why there is no such text.
pub fn text(store: &Store, artifact: &StoredArtifact, sub_path: Option<&str>) -> Result<String, String> {
    let told = |error: &dyn std::fmt::Display| format!("artifact '{}' cannot be read: {error}", artifact.key);
    let mut file = store.open(artifact).map_err(|error| told(&error))?;
    let packed = match artifact.archive {
        Archive::None => ArchiveFormat::Plain,
        Archive::Zip => ArchiveFormat::Zip,
        Archive::Tar { .. } => ArchiveFormat::Tar,
    };
    read(&mut file, packed, sub_path).map_err(|error| told(&error))
}

impl ArtifactClient {
    /// Reads a remote artifact as text. Its format is not declared, so it is detected from the content.
    pub fn text(&self, location: &Location, sub_path: Option<&str>) -> Result<String, ArtifactError> {
        let (mut artifact_file, _) = self.fetch(location, &|| true)?;
        let failed = ArtifactError::Failed;
        let packed = items::detect_format(&mut artifact_file.file).map_err(|error| failed(items::said(error)))?;
        artifact_file.file.rewind().map_err(|error| failed(error.to_string()))?;
        read(&mut artifact_file.file, packed, sub_path).map_err(failed)
    }
}

fn read(file: &mut dyn Read, packed: ArchiveFormat, sub_path: Option<&str>) -> Result<String, String> {
    let stored = bounded(file)?;
    let plain =
        if stored.starts_with(&[0x1f, 0x8b]) { bounded(&mut GzDecoder::new(stored.as_slice()))? } else { stored };
    let bytes = match packed {
        ArchiveFormat::Plain => plain,
        ArchiveFormat::Zip => return Err("it is a zip archive, and a single file is needed".to_owned()),
        ArchiveFormat::Tar | ArchiveFormat::TarGz => {
            let mut archive = tar::Archive::new(plain.as_slice());
            let mut found = None;
            for entry in archive.entries().map_err(|error| error.to_string())? {
                let mut entry = entry.map_err(|error| error.to_string())?;
                let path = entry.path().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
                let wanted = sub_path.is_none_or(|wanted| path.ends_with(wanted.trim_matches('/')));
                if !entry.header().entry_type().is_file() || !wanted {
                    continue;
                }
                if found.is_some() {
                    return Err("it holds several files, and a single one is needed".to_owned());
                }
                found = Some(bounded(&mut entry)?);
            }
            found.ok_or("there is no file in it")?
        }
    };
    String::from_utf8(bytes).map_err(|_| "it is not text".to_owned())
}

fn bounded(read: &mut dyn Read) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    read.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MAX_BYTES { Err(format!("it is larger than {MAX_BYTES} bytes")) } else { Ok(bytes) }
}
