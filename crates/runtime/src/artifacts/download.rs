//! Downloads of artifacts: a file as it is, a directory as a tarball, or one file of an archive. Nothing is unpacked to
//! a named file, and names in archives are only compared.

use std::{
    fs::File,
    io::{self, Read, Seek, Write},
    path::{Component, Path, PathBuf},
};

use flate2::{Compression, write::GzEncoder};
use octoflow_model::{location::Location, task::StoredArtifact};

use super::{
    budget::Budget,
    client::{ArtifactClient, Error},
    items::{self, ArchiveFormat, EntryKind, said},
    pack::describe,
    store::{Error as StoreError, Store},
    unpack::{ArtifactFile, starts_as_tree},
};

/// A download, from the beginning of the file.
#[derive(Debug)]
pub struct Download {
    pub file: File,
    pub size: u64,
    /// True if the artifact is a directory, downloaded as a compressed tarball.
    pub tarball: bool,
}

impl ArtifactClient {
    /// Returns a saved artifact, or one file of it.
    pub fn download(&self, artifact: &StoredArtifact, inner: Option<&str>) -> Result<Download, Error> {
        if artifact.deleted {
            return Err(Error::Absent("it was deleted".to_owned()));
        }
        match self.store().open(artifact) {
            Err(error @ (StoreError::Missing { .. } | StoreError::Incomplete { .. })) => {
                Err(Error::Absent(error.to_string()))
            }
            Err(error) => Err(Error::Failed(describe(error))),
            Ok(_) => self.to_download(ArtifactFile::stored(self.store(), artifact).map_err(Error::Failed)?, inner),
        }
    }

    /// Returns a text in the place of an artifact.
    pub fn download_text(&self, text: &str) -> Result<Download, Error> {
        hold(self.store(), false, |out| out.write_all(text.as_bytes()).map_err(said))
    }

    /// Returns an artifact from a remote location, or one file of it.
    pub fn download_from(&self, location: &Location, inner: Option<&str>) -> Result<Download, Error> {
        let (artifact_file, _) = self.fetch(location, &|| true)?;
        self.to_download(artifact_file, inner)
    }

    fn to_download(&self, artifact_file: ArtifactFile, inner: Option<&str>) -> Result<Download, Error> {
        let ArtifactFile { mut file, size, own, maybe_tree } = artifact_file;
        let failed = Error::Failed;
        if let Some(inner) = inner {
            let wanted = plain(Path::new(inner)).filter(|path| !path.as_os_str().is_empty());
            let wanted = wanted.ok_or_else(|| Error::Absent(format!("`{inner}` is no path inside of an artifact")))?;
            let mut packed = items::detect_format(&mut file).map_err(|error| failed(said(error)))?;
            if packed == ArchiveFormat::Plain && begins(&mut file, b"PK").map_err(|error| failed(said(error)))? {
                packed = ArchiveFormat::Zip;
            }
            if packed == ArchiveFormat::Plain {
                return Err(Error::Absent("it is a single file, so there is nothing inside of it".to_owned()));
            }
            let budget = if own { Budget::trusted() } else { Budget::untrusted(size) };
            if !own {
                items::check_headers(&mut file, packed, budget).map_err(failed)?;
            }
            return pick(self.store(), &mut file, packed, budget, &wanted);
        }
        let tree = maybe_tree && starts_as_tree(&mut file).map_err(failed)?;
        file.rewind().map_err(|error| failed(said(error)))?;
        if !tree {
            return Ok(Download { file, size, tarball: false });
        }
        hold(self.store(), true, |out| {
            let mut gzip = GzEncoder::new(out, Compression::fast());
            io::copy(&mut file, &mut gzip).and_then(|_| gzip.finish().map(drop)).map_err(said)
        })
    }
}

/// Returns one file of an archive; the name of a single top-level directory may be omitted.
fn pick(
    store: &Store,
    file: &mut File,
    packed: ArchiveFormat,
    budget: Budget,
    wanted: &Path,
) -> Result<Download, Error> {
    let mut found = None;
    let mut budget = budget;
    items::each(file, packed, &mut budget, &mut |item, bytes| {
        let Some(name) = plain(&item.name) else { return Ok(true) };
        let mut below = name.components();
        below.next();
        if item.kind != EntryKind::File || (name != wanted && below.as_path() != wanted) {
            return Ok(true);
        }
        found = Some(hold(store, false, |out| io::copy(bytes, out).map(drop).map_err(said)));
        Ok(false)
    })
    .map_err(Error::Failed)?;
    found.unwrap_or_else(|| Err(Error::Absent(format!("there is no file `{}` in it", wanted.display()))))
}

/// Writes to an unnamed file, which disappears when it is closed.
fn hold(
    store: &Store,
    tarball: bool,
    write: impl FnOnce(&mut dyn Write) -> Result<(), String>,
) -> Result<Download, Error> {
    let mut entry = store.begin().map_err(|error| Error::Failed(describe(error)))?;
    write(&mut entry).map_err(Error::Failed)?;
    let mut held = entry.into_temp().map_err(|error| Error::Failed(describe(error)))?;
    held.file.rewind().map_err(|error| Error::Failed(said(error)))?;
    Ok(Download { file: held.file, size: held.size, tarball })
}

fn begins(file: &mut File, mark: &[u8]) -> io::Result<bool> {
    file.rewind()?;
    let mut head = Vec::new();
    Read::by_ref(file).take(mark.len() as u64).read_to_end(&mut head)?;
    Ok(head == mark)
}

/// Returns the path without `.` components; `None` if it leads elsewhere.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => clean.push(name),
            Component::CurDir => {}
            Component::RootDir | Component::ParentDir | Component::Prefix(_) => return None,
        }
    }
    Some(clean)
}

#[cfg(test)]
mod tests {
    use flate2::read::GzDecoder;
    use octoflow_model::task::Archive;

    use super::*;
    use crate::egress::Policy;

    fn kept(artifact_client: &ArtifactClient, bytes: &[u8], archive: Archive) -> StoredArtifact {
        let (digest, size) = artifact_client.store().keep(&mut &bytes[..]).unwrap();
        StoredArtifact { digest, size, archive, key: "w/p/a.tgz".into(), ..StoredArtifact::default() }
    }

    fn tarball(files: &[(&str, &str)]) -> Vec<u8> {
        let mut tar = tar::Builder::new(Vec::new());
        let mut dir = tar::Header::new_gnu();
        dir.set_entry_type(tar::EntryType::Directory);
        dir.set_size(0);
        tar.append_data(&mut dir, super::super::pack::TREE, io::empty()).unwrap();
        for (name, text) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            tar.append_data(&mut header, name, text.as_bytes()).unwrap();
        }
        tar.into_inner().unwrap()
    }

    fn text(download: Download) -> String {
        let mut text = String::new();
        assert_eq!(download.file.metadata().unwrap().len(), download.size);
        { download.file }.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_file_comes_as_it_is_and_a_directory_as_a_tarball() {
        let dir = tempfile::tempdir().unwrap();
        let artifact_client = ArtifactClient::new(dir.path(), Policy::strict());
        let file = kept(&artifact_client, b"hello", Archive::None);
        let download = artifact_client.download(&file, None).unwrap();
        assert!(!download.tarball);
        assert_eq!(text(download), "hello");
        let tree = kept(&artifact_client, &tarball(&[("./a/b.txt", "one")]), Archive::Tar { level: Some(0) });
        let download = artifact_client.download(&tree, None).unwrap();
        assert!(download.tarball);
        let mut archive = tar::Archive::new(GzDecoder::new(download.file));
        let names: Vec<PathBuf> =
            archive.entries().unwrap().map(|entry| entry.unwrap().path().unwrap().into_owned()).collect();
        assert_eq!(names.last().unwrap(), Path::new("a/b.txt"));
    }

    #[test]
    fn one_file_of_an_archive_is_found_with_and_without_the_name_of_its_top() {
        let dir = tempfile::tempdir().unwrap();
        let artifact_client = ArtifactClient::new(dir.path(), Policy::strict());
        let tree = kept(
            &artifact_client,
            &tarball(&[("./out/a.txt", "one"), ("./b.txt", "two")]),
            Archive::Tar { level: Some(0) },
        );
        let inside = |path: &str| artifact_client.download(&tree, Some(path));
        assert_eq!(text(inside("out/a.txt").unwrap()), "one");
        assert_eq!(text(inside("a.txt").unwrap()), "one");
        assert_eq!(text(inside("./b.txt").unwrap()), "two");
        for bad in ["../b.txt", "/etc/passwd", "", "out", "c.txt"] {
            assert!(matches!(inside(bad), Err(Error::Absent(_))), "{bad}");
        }
        let plain = kept(&artifact_client, b"text", Archive::None);
        assert!(matches!(artifact_client.download(&plain, Some("a")), Err(Error::Absent(_))));
        let gone = StoredArtifact { digest: format!("sha256:{}", "0".repeat(64)), ..plain };
        assert!(matches!(artifact_client.download(&gone, None), Err(Error::Absent(_))));
    }
}
