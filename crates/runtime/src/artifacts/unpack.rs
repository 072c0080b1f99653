//! Places artifacts from the store or a remote location into a task's files. Archives are untrusted: names with `..`,
//! links that lead out and devices are refused, set-id bits are dropped, and nothing is written outside the target.

use std::{
    collections::BTreeSet,
    fs::{File, Permissions},
    io::{self, Read, Seek},
    os::unix::fs::PermissionsExt,
    path::{Component, Path, PathBuf},
    time::{Duration, UNIX_EPOCH},
};

use octoflow_model::task::{Archive, ArtifactInput, StoredArtifact};

use super::{
    budget::Budget,
    items::{self, ArchiveEntry, ArchiveFormat, EntryKind, said},
    pack::{TREE, describe},
    store::Store,
};
use crate::process::view::{Inside, View, by_handle};

/// The content of an artifact as a file, and what is known about it.
#[derive(Debug)]
pub(crate) struct ArtifactFile {
    pub(crate) file: File,
    pub(crate) size: u64,
    /// True if this program packed it from existing files. Everything else is untrusted.
    pub(crate) own: bool,
    /// True if it may be a directory in this program's own format.
    pub(crate) maybe_tree: bool,
}

impl ArtifactFile {
    pub(crate) fn stored(store: &Store, artifact: &StoredArtifact) -> Result<Self, String> {
        if artifact.deleted {
            return Err("it was deleted".to_owned());
        }
        Ok(Self {
            file: store.open(artifact).map_err(describe)?,
            size: artifact.size,
            own: artifact.archive != Archive::None,
            maybe_tree: artifact.archive == Archive::Tar { level: Some(0) },
        })
    }
}

/// Places an artifact at the input's path. `Err` is a sentence for the user.
pub(crate) fn place(
    view: &View,
    input: &ArtifactInput,
    artifact_file: ArtifactFile,
    sub_path: Option<&str>,
    dir: &str,
) -> Result<(), String> {
    let ArtifactFile { mut file, size, own, maybe_tree } = artifact_file;
    let target = Inside::new(&input.path, dir)?;
    let looks = items::detect_format(&mut file).map_err(said)?;
    let is_tree = maybe_tree && looks == ArchiveFormat::Tar && starts_as_tree(&mut file)?;
    let packed = match input.archive {
        _ if is_tree => ArchiveFormat::Tar,
        Some(Archive::None) => ArchiveFormat::Plain,
        Some(Archive::Tar { .. }) if looks == ArchiveFormat::Plain => {
            return Err("it is said to be a tarball and is none".to_owned());
        }
        Some(Archive::Zip) => ArchiveFormat::Zip,
        Some(Archive::Tar { .. }) | None => looks,
    };
    if packed == ArchiveFormat::Plain {
        if sub_path.is_some() {
            return Err("a part of it is wanted, but it is a single file".to_owned());
        }
        let mut out = view.create(target.path(), input.mode.unwrap_or(0o644)).map_err(said)?;
        file.rewind().map_err(said)?;
        io::copy(&mut file, &mut out).map_err(said)?;
    } else {
        let budget = if own { Budget::trusted() } else { Budget::untrusted(size) };
        if !own {
            items::check_headers(&mut file, packed, budget)?;
        }
        let unwrapped = if is_tree { PathBuf::new() } else { only_name(&mut file, packed, budget)? };
        let sub_path = sub_path.map(|part| Inside::new(part, "/")).transpose()?;
        let part = sub_path.as_ref().map(|part| part.path().strip_prefix("/").expect("absolute").to_owned());
        let mode = input.mode.filter(|_| input.recurse_mode);
        let plan = Unpacking { view, target: &target, unwrapped, part, mode, links: BTreeSet::new() };
        unpack_all(&mut file, packed, budget, plan)?;
    }
    if let Some(mode) = input.mode {
        let found = view.find(target.path()).map_err(said)?;
        let placed = found.ok_or("nothing was placed")?.open().map_err(said)?;
        placed.set_permissions(Permissions::from_mode(mode & 0o7777)).map_err(said)?;
    }
    Ok(())
}

pub(super) fn starts_as_tree(file: &mut File) -> Result<bool, String> {
    file.rewind().map_err(said)?;
    let mut head = [0; 3];
    let count = file.read(&mut head).map_err(said)?;
    Ok(count == 3 && head.starts_with(TREE.as_bytes()) && head[2] == 0)
}

/// Returns the name of the only top-level entry, which takes the target's place; empty if there are several.
fn only_name(file: &mut File, packed: ArchiveFormat, mut budget: Budget) -> Result<PathBuf, String> {
    let mut names = BTreeSet::new();
    items::each(file, packed, &mut budget, &mut |item, _| {
        let path = clean(&item.name)?;
        names.extend(path.components().next().map(|first| PathBuf::from(first.as_os_str())));
        Ok(names.len() < 2)
    })?;
    Ok(if names.len() == 1 { names.pop_first().unwrap_or_default() } else { PathBuf::new() })
}

struct Unpacking<'a> {
    view: &'a View,
    target: &'a Inside,
    /// Prefix removed from every name.
    unwrapped: PathBuf,
    /// Only entries below this name are unpacked.
    part: Option<PathBuf>,
    mode: Option<u32>,
    /// Links placed so far. Nothing may be written through one.
    links: BTreeSet<PathBuf>,
}

fn unpack_all(
    file: &mut File,
    packed: ArchiveFormat,
    mut budget: Budget,
    mut plan: Unpacking<'_>,
) -> Result<(), String> {
    let mut placed = false;
    items::each(file, packed, &mut budget, &mut |item, bytes| {
        let name = clean(&item.name)?;
        let Some(path) = plan.path_of(&name) else { return Ok(true) };
        placed = true;
        plan.unpack_one(&item, &name, &path, bytes)
            .map_err(|why| format!("`{}` in the archive: {why}", name.display()))?;
        Ok(true)
    })?;
    match (placed, &plan.part) {
        (false, Some(part)) => Err(format!("there is no `{}` in it", part.display())),
        // An empty archive is an empty directory.
        (false, None) => plan.view.make_dir(plan.target.path()).map(drop).map_err(said),
        (true, _) => Ok(()),
    }
}

impl Unpacking<'_> {
    /// Returns the name relative to the target, if it belongs there.
    fn below<'n>(&self, name: &'n Path) -> Option<&'n Path> {
        let below = name.strip_prefix(&self.unwrapped).ok()?;
        match &self.part {
            Some(part) => below.strip_prefix(part).ok(),
            None => Some(below),
        }
    }

    fn path_of(&self, name: &Path) -> Option<Inside> {
        let below = self.below(name)?;
        Some(if below.as_os_str().is_empty() { self.target.clone() } else { self.target.join(below) })
    }

    fn unpack_one(
        &mut self,
        item: &ArchiveEntry,
        name: &Path,
        path: &Inside,
        bytes: &mut dyn Read,
    ) -> Result<(), String> {
        if let Some(link) = name.ancestors().find(|above| self.links.contains(*above)) {
            return Err(format!("it would be written through the link `{}`", link.display()));
        }
        let view = self.view;
        // The set-user-id and set-group-id bits are never taken from an archive.
        let mode = |otherwise: u32| self.mode.unwrap_or_else(|| item.mode.unwrap_or(otherwise) & 0o777) & 0o7777;
        match &item.kind {
            EntryKind::Dir => {
                let dir = view.make_dir(path.path()).map_err(said)?;
                // The owner must be able to create files in it.
                std::fs::set_permissions(by_handle(&dir), Permissions::from_mode(mode(0o755) | 0o700)).map_err(said)
            }
            EntryKind::File => {
                let mut out = view.create(path.path(), mode(0o644)).map_err(said)?;
                io::copy(bytes, &mut out).map_err(said)?;
                match item.modified {
                    Some(seconds) => {
                        // An absurd time is not worth failing for.
                        let time = UNIX_EPOCH.checked_add(Duration::from_secs(seconds)).unwrap_or(UNIX_EPOCH);
                        out.set_modified(time).map_err(said)
                    }
                    None => Ok(()),
                }
            }
            EntryKind::Symlink(target) => {
                if leads_out(self.below(name).unwrap_or(name), target) {
                    return Err(format!("the link leads out of the archive, to `{}`", target.display()));
                }
                view.link(path.path(), target).map_err(said)?;
                self.links.insert(name.to_owned());
                Ok(())
            }
            EntryKind::HardLink(target) => {
                let original = clean(target)?;
                if original.ancestors().any(|above| self.links.contains(above)) {
                    return Err("a hard link to what lies behind a link".to_owned());
                }
                let original = self.path_of(&original).ok_or("a link to what is not unpacked")?;
                let found = view.find(original.path()).map_err(said)?.ok_or("a link to what is not there")?;
                if !found.about.is_file() {
                    return Err("a hard link to what is no file".to_owned());
                }
                let mut out = view.create(path.path(), found.about.permissions().mode() & 0o777).map_err(said)?;
                io::copy(&mut found.open().map_err(said)?, &mut out).map(drop).map_err(said)
            }
            EntryKind::Other => Err("it is neither file, directory nor link".to_owned()),
        }
    }
}

/// Normalises a name. Refuses one that leads out of the archive.
fn clean(name: &Path) -> Result<PathBuf, String> {
    let mut clean = PathBuf::new();
    for part in name.components() {
        match part {
            Component::Normal(part) => clean.push(part),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(format!("the archive contains the name `{}`, which leads out of it", name.display()));
            }
        }
    }
    Ok(clean)
}

/// Returns whether a link at `name` with this target points outside the archive's own tree. A step down and up again
/// counts as outside: what it goes down into may be a link itself.
fn leads_out(name: &Path, target: &Path) -> bool {
    let mut above = name.components().count().saturating_sub(1);
    let mut down = false;
    for part in target.components() {
        match part {
            Component::Normal(_) => down = true,
            Component::CurDir => {}
            Component::ParentDir if above > 0 && !down => above -= 1,
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return true,
        }
    }
    false
}

#[cfg(test)]
mod tests;
