//! From a task's files into the store: a file as it is, or a tarball whose bytes depend only on what is in it.

use std::{
    fs,
    io::{self, Read, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use flate2::{Compression, write::GzEncoder};
use octoflow_model::{
    order::Found,
    task::{Archive, ArtifactOutput, StoredArtifact},
};

use super::store::Store;
use crate::process::view::{self, Inside, View, by_handle};

/// The first entry of a tarball that stands for a directory kept without an archive. It unpacks to a tree, always.
pub(super) const TREE: &str = "./";

/// Saves what the task left at `path`. What is wrong is data for the dialect, so this never fails.
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
    let keep = |entry: super::store::Entry<'_>, archive| {
        let (digest, size) = entry.finish().map_err(describe)?;
        Ok(Some(StoredArtifact { digest, size, archive, key: output.key.clone() }))
    };
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
        (Archive::Zip, _) => Err("zip archives are not supported yet; use `tar` or `none`".to_owned()),
    }
}

fn describe(error: super::store::Error) -> String {
    use std::error::Error as _;
    error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

fn header(about: &fs::Metadata, kind: tar::EntryType) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(about.mode() & 0o7777);
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

/// Exactly as many bytes as the header promised; a file that shrank meanwhile would corrupt the whole tarball.
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

/// A whole tree, names in order, without recursion. Links are kept as links; sockets mean nothing elsewhere and stay out.
fn pack(tree: &View, name: &Path, out: &mut dyn Write) -> Result<(), String> {
    let mut tarball = tar::Builder::new(out);
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
            // The stack gives the last one first.
            children.sort_by(|a, b| b.cmp(a));
            waiting.extend(children);
            let mut header = header(&found.about, tar::EntryType::Directory);
            let mut with_slash = shown.into_os_string();
            with_slash.push("/");
            tarball.append_data(&mut header, PathBuf::from(with_slash), io::empty()).map_err(said)?;
        } else if kind.is_symlink() {
            let mut header = header(&found.about, tar::EntryType::Symlink);
            let target = found.link_target().map_err(said)?;
            tarball.append_link(&mut header, &shown, &target).map_err(said)?;
        } else if kind.is_file() {
            append_file(&mut tarball, &mut found.open().map_err(said)?, &found.about, &shown)?;
        } else if !view::is_socket(&found.about) {
            return Err(format!("`{}` is a device or a pipe and cannot be kept", below.display()));
        }
    }
    tarball.finish().map_err(|error| error.to_string())
}
