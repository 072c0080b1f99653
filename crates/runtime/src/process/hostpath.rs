//! Which host paths tasks may mount (`hostPath`). Never the data directory: it holds every run's logs, Secrets and
//! tokens. On a server only the paths that its operator allowed, and nothing that contains the data directory; on a
//! user's own machine all paths, also `/` and the home directory, with the data directory in it hidden.
//!
//! A path is checked twice: on admission and planning, for a clear error, and again when the mount is made, on the file
//! that was really opened. Only the second check is safe against links that change meanwhile.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt,
    path::{Component, Path, PathBuf},
};

/// Host paths that may be mounted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HostPaths {
    /// All but the data directory.
    #[default]
    Any,
    /// Only these and what is below them.
    Below(Vec<PathBuf>),
}

/// Error for a prefix that is no absolute path, or that contains `..`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no absolute path")]
pub struct NotAbsolute(pub String);

/// A refused host path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostPathRefused {
    #[error("hostPath `{}` is the data directory or lies in it, which no task may see", path.display())]
    Data { path: PathBuf },
    #[error(
        "hostPath `{}` is not allowed on this server: allow it with `--allow-host-path {}` or \
         OCTOFLOW_ALLOW_HOST_PATH, or use a persistentVolumeClaim",
        path.display(),
        path.display()
    )]
    NotAllowed { path: PathBuf },
    #[error(
        "hostPath `{}` lies around the server's data directory, which no task may see: name the folders in it that are \
         needed, or keep the data directory elsewhere (--data-dir)",
        path.display()
    )]
    AroundData { path: PathBuf },
}

impl HostPaths {
    /// Parses prefixes separated by commas or colons.
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, NotAbsolute> {
        let words = texts.into_iter().flat_map(|text| text.split([',', ':'])).map(str::trim);
        let mut below = Vec::new();
        for word in words.filter(|word| !word.is_empty()) {
            let path = Path::new(word);
            if !path.is_absolute() || path.components().any(|part| part == Component::ParentDir) {
                return Err(NotAbsolute(word.to_owned()));
            }
            below.push(path.to_owned());
        }
        Ok(Self::Below(below))
    }

    /// Checks a path as a manifest names it, with links resolved as they are now.
    pub fn check(&self, path: &Path, data: &Path) -> Result<(), HostPathRefused> {
        let (real, data) = (resolved(path), resolved(data));
        if real.starts_with(&data) {
            return Err(HostPathRefused::Data { path: path.to_owned() });
        }
        match self {
            Self::Any => Ok(()),
            // Hiding it is not enough here: manifests come from others, and a task of root can undo a mount.
            Self::Below(_) if data.starts_with(&real) => Err(HostPathRefused::AroundData { path: path.to_owned() }),
            Self::Below(prefixes) if prefixes.iter().any(|prefix| real.starts_with(resolved(prefix))) => Ok(()),
            Self::Below(_) => Err(HostPathRefused::NotAllowed { path: path.to_owned() }),
        }
    }

    /// Checks an opened file: whatever its name was, this is what will be mounted. Returns where in it the data
    /// directory is, which must then be hidden.
    pub(crate) fn check_opened(&self, file: &File, data: &Path) -> Result<Option<PathBuf>, String> {
        let failed = |error: io::Error| format!("it cannot be found out where it lies: {error}");
        let real = fs::read_link(super::view::by_handle(file)).map_err(failed)?;
        self.check(&real, data).map_err(|refused| refused.to_string())?;
        // The data directory may have a second name by another mount.
        let (opened, own) = (file.metadata().map_err(failed)?, fs::metadata(data).map_err(failed)?);
        if (opened.dev(), opened.ino()) == (own.dev(), own.ino()) {
            return Err(HostPathRefused::Data { path: real }.to_string());
        }
        Ok(resolved(data).strip_prefix(&real).ok().map(Path::to_owned))
    }
}

/// Resolves links in a path as far as it exists.
fn resolved(path: &Path) -> PathBuf {
    for above in path.ancestors() {
        if let Ok(real) = fs::canonicalize(above) {
            let rest = path.strip_prefix(above).unwrap_or(Path::new(""));
            return if rest.as_os_str().is_empty() { real } else { real.join(rest) };
        }
    }
    path.to_owned()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_data_directory_is_never_mounted_by_any_name() {
        let dir = tempfile::tempdir().unwrap();
        let (data, beside) = (dir.path().join("data"), dir.path().join("beside"));
        fs::create_dir(&data).unwrap();
        fs::create_dir(&beside).unwrap();
        symlink(&data, beside.join("link")).unwrap();
        let inside = data.join("claims/ns");
        for path in [&data, &inside, &beside.join("link"), &beside.join("link/logs")] {
            assert!(
                matches!(HostPaths::Any.check(path, &data), Err(HostPathRefused::Data { .. })),
                "{}",
                path.display()
            );
        }
        for path in [&beside, &dir.path().join("data2"), Path::new("/nowhere"), dir.path()] {
            assert_eq!(HostPaths::Any.check(path, &data), Ok(()), "{}", path.display());
        }
        let opened = |path: &Path| HostPaths::Any.check_opened(&File::open(path).unwrap(), &data);
        assert!(opened(&beside.join("link")).is_err());
        assert_eq!(opened(&beside), Ok(None));
        assert_eq!(opened(dir.path()), Ok(Some("data".into())), "it is hidden there");
        let server = HostPaths::Below(vec![dir.path().to_owned()]);
        symlink(dir.path(), beside.join("up")).unwrap();
        for path in [dir.path(), Path::new("/"), &beside.join("up")] {
            assert!(matches!(server.check(path, &data), Err(HostPathRefused::AroundData { .. })), "{}", path.display());
        }
        assert_eq!(server.check(&beside, &data), Ok(()));
        assert!(server.check_opened(&File::open(dir.path()).unwrap(), &data).is_err());
    }

    #[test]
    fn a_server_allows_prefixes_and_no_link_leads_out_of_them() {
        let dir = tempfile::tempdir().unwrap();
        let (open, shut) = (dir.path().join("open"), dir.path().join("shut"));
        fs::create_dir(&open).unwrap();
        fs::create_dir(&shut).unwrap();
        symlink(&shut, open.join("out")).unwrap();
        let data = Path::new("/nowhere/data");
        let rule = HostPaths::parse([format!("{}, /srv/a:/srv/b", open.display()).as_str()]).unwrap();
        for path in [&open, &open.join("new"), Path::new("/srv/a/x"), Path::new("/srv/b")] {
            assert_eq!(rule.check(path, data), Ok(()), "{}", path.display());
        }
        for path in [&shut, &open.join("out"), &open.join("out/x"), Path::new("/srv"), Path::new("/srv/ab")] {
            let refused = rule.check(path, data).unwrap_err();
            assert!(refused.to_string().contains("--allow-host-path"), "{refused}");
        }
        assert!(rule.check_opened(&File::open(open.join("out")).unwrap(), data).is_err());
        assert_eq!(HostPaths::parse([]), Ok(HostPaths::Below(Vec::new())), "nothing is allowed unless it is said");
        assert_eq!(HostPaths::parse(["/a,b"]), Err(NotAbsolute("b".to_owned())));
        assert!(HostPaths::parse(["/a/../b"]).is_err());
    }
}
