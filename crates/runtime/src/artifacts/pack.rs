//! Saves a task's files to the store: a file as it is, or an archive whose bytes depend only on its content. Devices
//! and pipes are refused; a link is saved as a link and never followed.

use std::{
    fs,
    io::{self, Read, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use flate2::{Compression, write::GzEncoder};
use octoflow_model::{
    ids::AttemptId,
    location::LocalKey,
    order::Found,
    task::{Archive, ArtifactOutput, StoredArtifact},
};

use super::store::{ArtifactWriter, Store};
use crate::logs::{Logs, Stream};
use crate::process::view::{self, Inside, View, by_handle};

/// First entry of a tarball that represents a directory saved without an archive. It always unpacks to a tree.
pub(super) const TREE: &str = "./";

/// Saves the file or directory that the task left at `path`. Failures are data for the dialect, so this never returns
/// an error.
pub(crate) fn save(store: &Store, view: &View, path: &Inside, output: &ArtifactOutput) -> Found<StoredArtifact> {
    match try_save(store, view, path, output) {
        Ok(Some(artifact)) => Found::Here(artifact),
        Ok(None) => Found::Missing,
        Err(why) => Found::Failed(format!("the artifact `{}` at `{}`: {why}", output.name, output.path)),
    }
}

fn try_save(
    store: &Store,
    view: &View,
    path: &Inside,
    output: &ArtifactOutput,
) -> Result<Option<StoredArtifact>, String> {
    let Some(found) = view.find(path.path()).map_err(|error| error.to_string())? else { return Ok(None) };
    let mut file = found.open().map_err(|error| error.to_string())?;
    let entry = || store.begin().map_err(describe);
    let keep = |entry: ArtifactWriter<'_>, archive| keep(entry, archive, output).map(Some);
    match (output.archive, found.about.is_dir()) {
        (Archive::None, false) => {
            let mut entry = entry()?;
            io::copy(&mut file, &mut entry).map_err(|error| error.to_string())?;
            keep(entry, Archive::None)
        }
        (Archive::None, true) => {
            let mut entry = entry()?;
            pack(&View::new(file.into()), Path::new("."), &mut entry)?;
            keep(entry, Archive::Tar { level: Some(0) })
        }
        (Archive::Tar { level }, is_dir) => {
            let name = path.path().file_name().map_or_else(|| PathBuf::from("root"), PathBuf::from);
            let mut pack_into = |out: &mut dyn Write| {
                if is_dir {
                    pack(&View::new(file.try_clone().map_err(|error| error.to_string())?.into()), &name, out)
                } else {
                    pack_file(&mut file, &found.about, &name, out)
                }
            };
            let mut entry = entry()?;
            if level == Some(0) {
                pack_into(&mut entry)?;
            } else {
                let mut gzip = GzEncoder::new(
                    &mut entry,
                    level.map_or(Compression::default(), |level| Compression::new(level.min(9))),
                );
                pack_into(&mut gzip)?;
                gzip.finish().map_err(|error| error.to_string())?;
            }
            keep(entry, Archive::Tar { level })
        }
        (Archive::Zip, is_dir) => {
            let mut entry = entry()?;
            let mut zip = Zip::new(&mut entry);
            let name = path.path().file_name().map_or_else(|| PathBuf::from("root"), PathBuf::from);
            if is_dir {
                walk(&View::new(file.into()), &name, &mut zip)?;
            } else {
                zip.file(&mut file, &found.about, &name)?;
            }
            zip.finish()?;
            keep(entry, Archive::Zip)
        }
    }
}

pub(super) fn describe(error: super::store::Error) -> String {
    use std::error::Error as _;
    error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

fn header(about: &fs::Metadata, kind: tar::EntryType) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(about.mode() & 0o777);
    header.set_mtime(u64::try_from(about.mtime()).unwrap_or(0));
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(0);
    header
}

fn pack_file(file: &mut fs::File, about: &fs::Metadata, name: &Path, out: &mut dyn Write) -> Result<(), String> {
    let mut tarball = tar::Builder::new(out);
    append_file(&mut tarball, file, about, name)?;
    tarball.finish().map_err(|error| error.to_string())
}

fn append_file(
    tarball: &mut tar::Builder<&mut dyn Write>,
    file: &mut fs::File,
    about: &fs::Metadata,
    name: &Path,
) -> Result<(), String> {
    let mut header = header(about, tar::EntryType::Regular);
    header.set_size(about.len());
    let mut exact = Exact { file, left: about.len() };
    tarball.append_data(&mut header, name, &mut exact).map_err(|error| format!("`{}`: {error}", name.display()))
}

/// Reads exactly as many bytes as the header announced; a file that shrank meanwhile would corrupt the whole tarball.
struct Exact<'a> {
    file: &'a mut fs::File,
    left: u64,
}

impl Read for Exact<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Ok(0);
        }
        let count = self.file.take(self.left).read(into)?;
        if count == 0 && !into.is_empty() {
            return Err(io::Error::other("the file changed while it was saved"));
        }
        self.left -= count as u64;
        Ok(count)
    }
}

/// Saves the log of a task, both streams in order.
pub(crate) fn keep_log(
    store: &Store,
    logs: &Logs,
    attempt: AttemptId,
    output: &ArtifactOutput,
) -> Found<StoredArtifact> {
    let kept = || -> Result<StoredArtifact, String> {
        let mut entry = store.begin().map_err(describe)?;
        let mut frames = logs.read(attempt);
        while let Some(frame) = frames.next_frame().map_err(|error| error.to_string())? {
            if frame.stream != Stream::Note {
                entry.write_all(&frame.bytes).map_err(|error| error.to_string())?;
            }
        }
        keep(entry, Archive::None, output)
    };
    kept().map_or_else(|why| Found::Failed(format!("the log could not be kept: {why}")), Found::Here)
}

fn keep(entry: ArtifactWriter<'_>, archive: Archive, output: &ArtifactOutput) -> Result<StoredArtifact, String> {
    let at = LocalKey { namespace: output.namespace.clone(), key: output.key.clone() };
    let about =
        StoredArtifact { archive, key: output.key.clone(), noted: output.noted.clone(), ..StoredArtifact::default() };
    entry.finish_as(&at, about).map_err(describe)
}

/// Packs a whole tree as a tarball.
pub(super) fn pack(tree: &View, name: &Path, out: &mut dyn Write) -> Result<(), String> {
    let mut tarball = Tarball(tar::Builder::new(out));
    walk(tree, name, &mut tarball)?;
    tarball.0.finish().map_err(|error| error.to_string())
}

/// Common interface of the archive formats that files are packed into.
pub(super) trait ArchiveWriter {
    fn dir(&mut self, about: &fs::Metadata, name: &Path) -> Result<(), String>;
    fn link(&mut self, about: &fs::Metadata, name: &Path, target: &Path) -> Result<(), String>;
    fn file(&mut self, file: &mut fs::File, about: &fs::Metadata, name: &Path) -> Result<(), String>;
}

/// Walks a tree in sorted order, without recursion. Links are kept as links; sockets are meaningless elsewhere and are
/// skipped.
fn walk(tree: &View, name: &Path, archive: &mut dyn ArchiveWriter) -> Result<(), String> {
    let mut waiting = vec![PathBuf::from("/")];
    while let Some(path) = waiting.pop() {
        let below = path.strip_prefix("/").expect("every path here is absolute");
        let said = |error: io::Error| format!("`{}`: {error}", below.display());
        let found = tree.look(&path).map_err(said)?;
        let shown = if below.as_os_str().is_empty() { name.to_owned() } else { name.join(below) };
        let kind = found.about.file_type();
        if kind.is_dir() {
            let dir = found.open().map_err(said)?;
            let mut children = Vec::new();
            for child in fs::read_dir(by_handle(&dir)).map_err(said)? {
                children.push(path.join(child.map_err(said)?.file_name()));
            }
            // The stack pops the last one first.
            children.sort_by(|a, b| b.cmp(a));
            waiting.extend(children);
            archive.dir(&found.about, &shown)?;
        } else if kind.is_symlink() {
            archive.link(&found.about, &shown, &found.link_target().map_err(said)?)?;
        } else if kind.is_file() {
            archive.file(&mut found.open().map_err(said)?, &found.about, &shown)?;
        } else if !view::is_socket(&found.about) {
            return Err(format!("`{}` is a device or a pipe and cannot be kept", below.display()));
        }
    }
    Ok(())
}

struct Tarball<'a>(tar::Builder<&'a mut dyn Write>);

impl ArchiveWriter for Tarball<'_> {
    fn dir(&mut self, about: &fs::Metadata, name: &Path) -> Result<(), String> {
        let mut header = header(about, tar::EntryType::Directory);
        let mut with_slash = name.as_os_str().to_owned();
        with_slash.push("/");
        self.0.append_data(&mut header, PathBuf::from(with_slash), io::empty()).map_err(|error| error.to_string())
    }

    fn link(&mut self, about: &fs::Metadata, name: &Path, target: &Path) -> Result<(), String> {
        let mut header = header(about, tar::EntryType::Symlink);
        self.0.append_link(&mut header, name, target).map_err(|error| format!("`{}`: {error}", name.display()))
    }

    fn file(&mut self, file: &mut fs::File, about: &fs::Metadata, name: &Path) -> Result<(), String> {
        append_file(&mut self.0, file, about, name)
    }
}

struct Zip<'a>(zip::ZipWriter<zip::write::StreamWriter<&'a mut dyn Write>>);

impl<'a> Zip<'a> {
    fn new(out: &'a mut dyn Write) -> Self {
        Self(zip::ZipWriter::new_stream(out))
    }

    fn finish(self) -> Result<(), String> {
        self.0.finish().map(drop).map_err(|error| error.to_string())
    }
}

/// Returns the options of a zip entry. The modification time is fixed, so that every archive of the same files has the
/// same bytes.
fn zip_options(about: &fs::Metadata) -> zip::write::SimpleFileOptions {
    zip::write::SimpleFileOptions::default()
        .compression_method(zip::CompressionMethod::Deflated)
        .last_modified_time(zip::DateTime::default())
        .unix_permissions(about.mode() & 0o777)
        .large_file(true)
}

fn zip_name(name: &Path) -> Result<&str, String> {
    name.to_str()
        .ok_or_else(|| format!("`{}` is not text, and names in zip archives must be; use `tar`", name.display()))
}

impl ArchiveWriter for Zip<'_> {
    fn dir(&mut self, about: &fs::Metadata, name: &Path) -> Result<(), String> {
        let options = zip_options(about).large_file(false);
        self.0.add_directory(zip_name(name)?, options).map_err(|error| format!("`{}`: {error}", name.display()))
    }

    fn link(&mut self, about: &fs::Metadata, name: &Path, target: &Path) -> Result<(), String> {
        let options = zip_options(about).large_file(false);
        self.0
            .add_symlink(zip_name(name)?, zip_name(target)?, options)
            .map_err(|error| format!("`{}`: {error}", name.display()))
    }

    fn file(&mut self, file: &mut fs::File, about: &fs::Metadata, name: &Path) -> Result<(), String> {
        let said = |error: &dyn std::fmt::Display| format!("`{}`: {error}", name.display());
        self.0.start_file(zip_name(name)?, zip_options(about)).map_err(|error| said(&error))?;
        io::copy(file, &mut self.0).map(drop).map_err(|error| said(&error))
    }
}
