//! What a slot has besides its root: private layers over other mounts and over visible folders, and the directories
//! that lead to such folders. Records how they were created, so that a slot in which none of it changed can be reused.

use std::{
    collections::BTreeMap,
    ffi::CString,
    fs::{self, File},
    io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::fs::MetadataExt,
    },
    path::Path,
};

use crate::process::{
    sys::{self, dir},
    view::{self, by_handle, text},
};

/// Mode, owner and group of a directory.
type Attributes = (u32, u32, u32);

fn attributes(about: &fs::Metadata) -> Attributes {
    (about.mode(), about.uid(), about.gid())
}

/// The private layers besides the root's, each in a directory beside that one's.
#[derive(Debug, Default)]
pub(crate) struct Layers(Vec<(CString, Attributes)>);

impl Layers {
    /// Adds a layer that was just mounted, by its directory in the current one.
    pub(crate) fn add(&mut self, layer: &str) -> io::Result<()> {
        let upper = Path::new(layer).join("upper");
        let made = attributes(&fs::metadata(&upper)?);
        self.0.push((text(Path::new("..").join(upper).as_os_str())?, made));
        Ok(())
    }

    /// Returns whether no task wrote to any layer. `root` is the open upper directory of the root's layer.
    pub(crate) fn are_untouched(&self, root: &File) -> io::Result<bool> {
        for (upper, made) in &self.0 {
            let upper = File::from(sys::open_at(root.as_fd(), upper, DIRECTORY, 0)?);
            if !dir::is_empty(upper.as_fd())? || attributes(&upper.metadata()?) != *made {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// A directory of the private `/tmp`, starting with that itself, and the directories created in it because they lead to
/// visible folders.
#[derive(Debug, Default)]
pub(crate) struct LeadingDirs {
    /// True if a folder is mounted here.
    shown: bool,
    children: BTreeMap<CString, (Attributes, Self)>,
}

const DIRECTORY: i32 = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW;

impl LeadingDirs {
    /// Adds the path to a folder below the private `/tmp`, whose layer is `upper`.
    pub(crate) fn add(&mut self, upper: &Path, folder: &Path) -> io::Result<()> {
        let (mut leading_dirs, mut at) = (self, upper.to_owned());
        for name in folder {
            at.push(name);
            let made = attributes(&fs::symlink_metadata(&at)?);
            leading_dirs = &mut leading_dirs.children.entry(text(name)?).or_insert_with(|| (made, Self::default())).1;
        }
        leading_dirs.shown = true;
        Ok(())
    }

    /// Returns whether an open directory of the private layer contains exactly these directories, unchanged.
    pub(crate) fn are_all_in(&self, dir: &File) -> io::Result<bool> {
        let mut seen = 0;
        let known = dir::all(dir.as_fd(), |name| {
            seen += 1;
            self.children.contains_key(name)
        })?;
        if !known || seen != self.children.len() {
            return Ok(false);
        }
        for (name, (made, children)) in &self.children {
            let dir = File::from(sys::open_at(dir.as_fd(), name, DIRECTORY, 0)?);
            if attributes(&dir.metadata()?) != *made || !children.are_all_in(&dir)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Removes everything else below a directory as the task sees it. Visible folders stay as they are.
    pub(crate) fn clear_around(&self, dir: OwnedFd) -> io::Result<()> {
        if self.shown {
            return Ok(());
        }
        if self.children.is_empty() {
            return view::clear(dir);
        }
        for entry in fs::read_dir(by_handle(&dir))? {
            let name = text(&entry?.file_name())?;
            match self.children.get(&name) {
                Some((_, children)) => children.clear_around(sys::open_at(dir.as_fd(), &name, DIRECTORY, 0)?)?,
                None => remove(dir.as_fd(), &name)?,
            }
        }
        Ok(())
    }
}

/// Removes an entry of a directory, with everything in it.
pub(crate) fn remove(parent: BorrowedFd<'_>, name: &CString) -> io::Result<()> {
    match sys::open_at(parent, name, DIRECTORY, 0) {
        Ok(dir) => {
            view::clear(dir)?;
            sys::remove_at(parent, name, true)
        }
        Err(_) => sys::remove_at(parent, name, false),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::Permissions, os::unix::fs::PermissionsExt};

    use super::*;

    fn leading_dirs(folders: &[&str]) -> (tempfile::TempDir, LeadingDirs) {
        let (dir, mut leading_dirs) = (tempfile::tempdir().unwrap(), LeadingDirs::default());
        for folder in folders {
            fs::create_dir_all(dir.path().join(folder)).unwrap();
            leading_dirs.add(dir.path(), Path::new(folder)).unwrap();
        }
        (dir, leading_dirs)
    }

    fn untouched(dir: &Path, leading_dirs: &LeadingDirs) -> bool {
        leading_dirs.are_all_in(&File::open(dir).unwrap()).unwrap()
    }

    #[test]
    fn whatever_a_task_does_around_a_folder_shows() {
        for change in ["a/b/new", "a/new", "new", "z/new"] {
            let (dir, leading_dirs) = leading_dirs(&["a/b/c", "a/d", "z"]);
            assert!(untouched(dir.path(), &leading_dirs));
            fs::write(dir.path().join(change), "").unwrap();
            assert!(!untouched(dir.path(), &leading_dirs), "{change}");
        }
        for changed in ["a", "a/b", "a/d"] {
            let (dir, leading_dirs) = leading_dirs(&["a/b/c", "a/d"]);
            fs::set_permissions(dir.path().join(changed), Permissions::from_mode(0o711)).unwrap();
            assert!(!untouched(dir.path(), &leading_dirs), "{changed}");
        }
        let (dir, leading_dirs) = leading_dirs(&["a/b/c"]);
        fs::rename(dir.path().join("a/b"), dir.path().join("a/x")).unwrap();
        assert!(!untouched(dir.path(), &leading_dirs));
    }

    #[test]
    fn clearing_leaves_the_ways_and_what_is_in_the_folders() {
        let (dir, leading_dirs) = leading_dirs(&["a/b", "a/c"]);
        let at = |path: &str| dir.path().join(path);
        for made in ["x", "a/x", "a/b/of the folder"] {
            fs::write(at(made), "").unwrap();
        }
        fs::create_dir_all(at("a/y/deep")).unwrap();
        fs::write(at("a/y/deep/file"), "").unwrap();
        leading_dirs.clear_around(File::open(dir.path()).unwrap().into()).unwrap();
        assert!(at("a/b/of the folder").exists() && at("a/c").exists());
        fs::remove_file(at("a/b/of the folder")).unwrap();
        assert!(untouched(dir.path(), &leading_dirs));
    }

    #[test]
    fn a_layer_that_was_written_to_or_changed_shows() {
        let dir = tempfile::tempdir().unwrap();
        let (root, upper) = (dir.path().join("upper"), dir.path().join("layer0/upper"));
        fs::create_dir(&root).unwrap();
        fs::create_dir_all(&upper).unwrap();
        let layers = Layers(vec![(CString::from(c"../layer0/upper"), attributes(&fs::metadata(&upper).unwrap()))]);
        let root = File::open(root).unwrap();
        assert!(layers.are_untouched(&root).unwrap());
        fs::write(upper.join("f"), "").unwrap();
        assert!(!layers.are_untouched(&root).unwrap());
        fs::remove_file(upper.join("f")).unwrap();
        fs::set_permissions(&upper, Permissions::from_mode(0o711)).unwrap();
        assert!(!layers.are_untouched(&root).unwrap());
    }
}
