//! The machine's file systems as an ordinary user can mount them. A user may not mount an overlay over a tree that has
//! mounts in it, so the root is a directory of ours, and every tree without mounts below it gets an overlay of its own.
//! This file only inspects the machine; the slot mounts.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::mounts::{ExtraMount, MAX_MOUNTS, MountForm, SPECIAL, points};

#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// Directories to create in our root, parents first. Most of them are mount points.
    pub(crate) dirs: Vec<PathBuf>,
    /// Links of the machine to create again, with their targets.
    pub(crate) links: Vec<(PathBuf, PathBuf)>,
    pub(crate) extra_mounts: Vec<ExtraMount>,
}

/// Inspects every directory that has a mount somewhere below it, starting with the root.
pub(crate) fn survey(table: &str) -> io::Result<Survey> {
    let points = points(table);
    let mut survey = Survey::default();
    let mut waiting = vec![PathBuf::from("/")];
    while let Some(dir) = waiting.pop() {
        for entry in fs::read_dir(&dir)? {
            let entry = entry?;
            let (path, kind) = (entry.path(), entry.file_type()?);
            if kind.is_symlink() {
                survey.links.push((path.clone(), fs::read_link(&path)?));
            } else if kind.is_dir() {
                survey.dirs.push(path.clone());
                if SPECIAL.iter().any(|special| path == Path::new(special)) {
                    continue;
                }
                let full = survey.extra_mounts.len() >= MAX_MOUNTS;
                let mounts_below = points.iter().any(|point| *point != path && point.starts_with(&path));
                if points.contains(&path) || full || fs::read_dir(&path).is_err() {
                    survey.extra_mounts.push(ExtraMount { point: path, form: MountForm::ReadOnly });
                } else if mounts_below {
                    waiting.push(path);
                } else {
                    survey.extra_mounts.push(ExtraMount { point: path, form: MountForm::Overlay });
                }
            }
            // Single files beside mounts (such as a swap file in the root) are not shown.
        }
    }
    Ok(survey)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_without_mounts_get_a_layer_and_a_mount_is_shown_as_it_is() {
        let mut below = fs::read_dir("/usr").unwrap().flatten().map(|entry| entry.path());
        let inner = below.find(|path| path.is_dir() && !path.is_symlink()).unwrap();
        let table = format!("1 1 0:1 / / rw - ext4 x rw\n2 1 0:2 / {} rw - tmpfs x rw\n", inner.display());
        let survey = survey(&table).unwrap();
        let form = |path: &Path| survey.extra_mounts.iter().find(|other| other.point == path).map(|other| other.form);
        assert_eq!(form(&inner), Some(MountForm::ReadOnly));
        assert_eq!(form(Path::new("/usr")), None, "it has a mount below, so its parts are shown one by one");
        assert_eq!(form(Path::new("/etc")), Some(MountForm::Overlay));
        assert_eq!(form(Path::new("/proc")), None);
        assert!(survey.dirs.contains(&PathBuf::from("/proc")) && survey.dirs.contains(&PathBuf::from("/usr")));
    }
}
