//! From the store into a task's files. Archives are untrusted: names with `..`, links that lead out and devices are
//! refused, and nothing is written outside the target.

use std::{
    collections::BTreeSet,
    fs::{File, Permissions},
    io::{self, BufReader, Read, Seek},
    os::unix::fs::PermissionsExt,
    path::{Component, Path, PathBuf},
    time::{Duration, UNIX_EPOCH},
};

use flate2::read::MultiGzDecoder;
use octoflow_model::task::{Archive, ArtifactInput, StoredArtifact};

use super::{pack::TREE, store::Store};
use crate::process::view::{Inside, View, by_handle};

/// Places a stored artifact at the input's path. `Err` is a sentence for the user.
pub(crate) fn place(
    store: &Store,
    view: &View,
    input: &ArtifactInput,
    artifact: &StoredArtifact,
    sub_path: Option<&str>,
    dir: &str,
) -> Result<(), String> {
    try_place(store, view, input, artifact, sub_path, dir)
        .map_err(|why| format!("the input artifact `{}` could not be placed at `{}`: {why}", input.name, input.path))
}

fn try_place(
    store: &Store,
    view: &View,
    input: &ArtifactInput,
    artifact: &StoredArtifact,
    sub_path: Option<&str>,
    dir: &str,
) -> Result<(), String> {
    let target = Inside::new(&input.path, dir)?;
    let mut file = store.open(artifact).map_err(|error| error.to_string())?;
    let packed = look_inside(&mut file).map_err(|error| error.to_string())?;
    let is_tree = artifact.archive == (Archive::Tar { level: Some(0) }) && starts_as_tree(&mut file)?;
    let unpack = match input.archive {
        _ if is_tree => true,
        Some(Archive::None) => false,
        Some(Archive::Tar { .. }) if packed == Packed::No => {
            return Err("it is said to be a tarball and is none".to_owned());
        }
        Some(Archive::Zip) => return Err("zip archives are not supported yet; use `tar` or `none`".to_owned()),
        Some(Archive::Tar { .. }) | None => packed != Packed::No,
    };
    if artifact.archive == Archive::Zip {
        return Err("zip archives are not supported yet; use `tar` or `none`".to_owned());
    }
    let mode = input.mode.filter(|_| input.recurse_mode);
    if unpack {
        let unwrapped = if is_tree { PathBuf::new() } else { only_name(&mut file, packed)? };
        let sub_path = sub_path.map(|part| Inside::new(part, "/")).transpose()?;
        let part = sub_path.as_ref().map(|part| part.path().strip_prefix("/").expect("absolute").to_owned());
        unpack_all(&mut file, packed, &Unpacking { view, target: &target, unwrapped, part, mode })?;
    } else {
        if sub_path.is_some() {
            return Err("a part of it is wanted, but it is a single file".to_owned());
        }
        let mut out = view.create(target.path(), input.mode.unwrap_or(0o644)).map_err(|error| error.to_string())?;
        rewind(&mut file)?;
        io::copy(&mut file, &mut out).map_err(|error| error.to_string())?;
    }
    if let Some(mode) = input.mode {
        let found = view.find(target.path()).map_err(|error| error.to_string())?;
        let placed = found.ok_or("nothing was placed")?.open().map_err(|error| error.to_string())?;
        placed.set_permissions(Permissions::from_mode(mode & 0o7777)).map_err(|error| error.to_string())?;
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packed {
    No,
    Plain,
    Gzip,
}

fn rewind(file: &mut File) -> Result<(), String> {
    file.rewind().map_err(|error| error.to_string())
}

/// A tarball says so at a fixed place in its first block, perhaps behind gzip.
fn look_inside(file: &mut File) -> io::Result<Packed> {
    let is_tar = |head: &[u8]| head.len() >= 262 && &head[257..262] == b"ustar";
    let mut head = Vec::new();
    file.rewind()?;
    Read::by_ref(file).take(512).read_to_end(&mut head)?;
    if is_tar(&head) {
        return Ok(Packed::Plain);
    }
    if head.starts_with(&[0x1f, 0x8b]) {
        file.rewind()?;
        let mut inner = Vec::new();
        // Bytes that only look like gzip are an ordinary file.
        if MultiGzDecoder::new(BufReader::new(file)).take(512).read_to_end(&mut inner).is_ok() && is_tar(&inner) {
            return Ok(Packed::Gzip);
        }
    }
    Ok(Packed::No)
}

fn starts_as_tree(file: &mut File) -> Result<bool, String> {
    rewind(file)?;
    let mut head = [0; 3];
    let count = file.read(&mut head).map_err(|error| error.to_string())?;
    Ok(count == 3 && head.starts_with(TREE.as_bytes()) && head[2] == 0)
}

fn archive(file: &mut File, packed: Packed) -> Result<tar::Archive<Box<dyn Read + '_>>, String> {
    rewind(file)?;
    let bytes: Box<dyn Read + '_> = match packed {
        Packed::Gzip => Box::new(MultiGzDecoder::new(BufReader::new(file))),
        Packed::Plain | Packed::No => Box::new(BufReader::new(file)),
    };
    Ok(tar::Archive::new(bytes))
}

/// An archive of exactly one thing is unwrapped: the thing itself takes the target's place. Empty otherwise.
fn only_name(file: &mut File, packed: Packed) -> Result<PathBuf, String> {
    let mut names = BTreeSet::new();
    let mut archive = archive(file, packed)?;
    for entry in archive.entries().map_err(|error| error.to_string())? {
        let entry = entry.map_err(|error| error.to_string())?;
        let path = clean(&entry.path().map_err(|error| error.to_string())?)?;
        names.extend(path.components().next().map(|first| PathBuf::from(first.as_os_str())));
        if names.len() > 1 {
            return Ok(PathBuf::new());
        }
    }
    Ok(names.pop_first().unwrap_or_default())
}

struct Unpacking<'a> {
    view: &'a View,
    target: &'a Inside,
    /// Taken off the front of every name.
    unwrapped: PathBuf,
    /// Only what is below this name is wanted.
    part: Option<PathBuf>,
    mode: Option<u32>,
}

fn unpack_all(file: &mut File, packed: Packed, plan: &Unpacking<'_>) -> Result<(), String> {
    let mut placed = false;
    let mut archive = archive(file, packed)?;
    for entry in archive.entries().map_err(|error| error.to_string())? {
        let mut entry = entry.map_err(|error| error.to_string())?;
        let name = clean(&entry.path().map_err(|error| error.to_string())?)?;
        let Some(path) = plan.path_of(&name) else { continue };
        placed = true;
        unpack_one(&mut entry, &name, &path, plan)
            .map_err(|why| format!("`{}` in the archive: {why}", name.display()))?;
    }
    match (placed, &plan.part) {
        (false, Some(part)) => Err(format!("there is no `{}` in it", part.display())),
        // An empty archive is an empty directory.
        (false, None) => plan.view.make_dir(plan.target.path()).map(drop).map_err(|error| error.to_string()),
        (true, _) => Ok(()),
    }
}

impl Unpacking<'_> {
    fn path_of(&self, name: &Path) -> Option<Inside> {
        let mut below = name.strip_prefix(&self.unwrapped).ok()?;
        if let Some(part) = &self.part {
            below = below.strip_prefix(part).ok()?;
        }
        Some(if below.as_os_str().is_empty() { self.target.clone() } else { self.target.join(below) })
    }
}

fn unpack_one(
    entry: &mut tar::Entry<'_, Box<dyn Read + '_>>,
    name: &Path,
    path: &Inside,
    plan: &Unpacking<'_>,
) -> Result<(), String> {
    let said = |error: io::Error| error.to_string();
    let header_mode = entry.header().mode().unwrap_or(0o644);
    let mode = plan.mode.unwrap_or(header_mode) & 0o7777;
    let kind = entry.header().entry_type();
    if kind.is_dir() {
        let dir = plan.view.make_dir(path.path()).map_err(said)?;
        std::fs::set_permissions(by_handle(&dir), Permissions::from_mode(mode)).map_err(said)
    } else if kind.is_file() {
        let mut out = plan.view.create(path.path(), mode).map_err(said)?;
        io::copy(entry, &mut out).map_err(said)?;
        let time = UNIX_EPOCH + Duration::from_secs(entry.header().mtime().unwrap_or(0));
        out.set_modified(time).map_err(said)
    } else if kind.is_symlink() {
        let target = entry.link_name().map_err(said)?.ok_or("a link without a target")?.into_owned();
        if leads_out(name.strip_prefix(&plan.unwrapped).unwrap_or(name), &target) {
            return Err(format!("the link leads out of the archive, to `{}`", target.display()));
        }
        plan.view.link(path.path(), &target).map_err(said)
    } else if kind.is_hard_link() {
        let original = clean(&entry.link_name().map_err(said)?.ok_or("a link without a target")?)?;
        let original = plan.path_of(&original).ok_or("a link to what is not unpacked")?;
        let found = plan.view.find(original.path()).map_err(said)?.ok_or("a link to what is not there")?;
        let mut out = plan.view.create(path.path(), found.about.permissions().mode() & 0o7777).map_err(said)?;
        io::copy(&mut found.open().map_err(said)?, &mut out).map(drop).map_err(said)
    } else {
        Err("it is neither file, directory nor link".to_owned())
    }
}

/// A name that stays below where it starts.
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

/// Whether a link at `name` with this target points outside the archive's own tree.
fn leads_out(name: &Path, target: &Path) -> bool {
    let mut depth = name.components().count().saturating_sub(1);
    for part in target.components() {
        match part {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir if depth > 0 => depth -= 1,
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return true,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_not_climb_and_a_link_may_not_leave() {
        assert_eq!(clean(Path::new("./a/./b")).unwrap(), Path::new("a/b"));
        assert!(clean(Path::new("a/../../b")).is_err() && clean(Path::new("/a")).is_err());
        assert!(!leads_out(Path::new("a/b/link"), Path::new("../../c")));
        assert!(leads_out(Path::new("a/link"), Path::new("../../c")));
        assert!(leads_out(Path::new("link"), Path::new("/etc")));
        assert!(leads_out(Path::new("link"), Path::new("x/../../y")));
    }
}
