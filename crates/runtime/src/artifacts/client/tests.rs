//! Transfers against real servers on loopback: a small HTTP server, `git` itself, and an S3 server that checks
//! signatures.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    process::Command,
    sync::{Arc, Mutex},
    thread,
};

use octoflow_model::{
    location::{Bucket, Keys, Repository, Web},
    task::{ArtifactInput, ArtifactSource, EnvValue},
};

use super::*;
use crate::{artifacts::unpack, process::view::View};

mod bucket;
mod checkout;
mod server;

const IS_WANTED: IsWanted<'static> = &|| true;

struct Site {
    dir: tempfile::TempDir,
    artifact_client: ArtifactClient,
}

impl Site {
    fn new() -> Self {
        Self::under(Policy::local())
    }

    fn under(policy: Policy) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("root")).unwrap();
        let artifact_client = ArtifactClient::new(dir.path(), policy);
        Self { dir, artifact_client }
    }

    /// Fetches and places at `/in`.
    fn fetch(&self, location: &Location) -> Result<Fetched, String> {
        self.fetch_with(location, None, None)
    }

    fn fetch_with(
        &self,
        location: &Location,
        archive: Option<Archive>,
        sub_path: Option<&str>,
    ) -> Result<Fetched, String> {
        let (artifact_file, fetched) =
            self.artifact_client.fetch(location, IS_WANTED).map_err(|error| error.to_string())?;
        let view = View::new(File::open(self.dir.path().join("root")).unwrap().into());
        let input = ArtifactInput {
            name: "in".to_owned(),
            path: "/in".to_owned(),
            source: ArtifactSource::Raw { data: String::new() },
            mode: None,
            recurse_mode: false,
            archive,
        };
        unpack::place(&view, &input, artifact_file, sub_path, "/")?;
        Ok(fetched)
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.dir.path().join("root").join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    fn save(&self, key: &str, bytes: &[u8]) -> StoredArtifact {
        let mut entry = self.artifact_client.store.begin().unwrap();
        entry.write_all(bytes).unwrap();
        let at = LocalKey { namespace: "ns".to_owned(), key: key.to_owned() };
        entry.finish_as(&at, StoredArtifact { key: key.to_owned(), ..StoredArtifact::default() }).unwrap()
    }

    /// Saves a directory as a task leaves one.
    fn save_tree(&self, key: &str, files: &[(&str, &str)]) -> StoredArtifact {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let mut entry = self.artifact_client.store.begin().unwrap();
        let view = View::new(File::open(dir.path()).unwrap().into());
        crate::artifacts::pack::pack(&view, Path::new("."), &mut entry).unwrap();
        let at = LocalKey { namespace: "ns".to_owned(), key: key.to_owned() };
        let about = StoredArtifact {
            key: key.to_owned(),
            archive: Archive::Tar { level: Some(0) },
            ..StoredArtifact::default()
        };
        entry.finish_as(&at, about).unwrap()
    }

    fn leftovers(&self) -> usize {
        fs::read_dir(self.dir.path().join("artifacts/incoming")).map_or(0, Iterator::count)
    }
}

fn local(key: &str) -> Location {
    Location::Local(LocalKey { namespace: "ns".to_owned(), key: key.to_owned() })
}

fn web(url: String) -> Location {
    Location::Http(Box::new(Web { url, ..Web::default() }))
}

#[test]
fn a_key_of_the_own_store_is_one_artifact_or_a_directory_of_them() {
    let site = Site::new();
    site.save("reports/a.txt", b"1");
    site.save("reports/more/b.txt", b"2");
    let fetched = site.fetch(&local("reports/a.txt")).unwrap();
    assert_eq!((site.read("in"), fetched.size), ("1".to_owned(), 1));
    fs::remove_file(site.dir.path().join("root/in")).unwrap();
    site.fetch(&local("reports")).unwrap();
    assert_eq!((site.read("in/a.txt"), site.read("in/more/b.txt")), ("1".to_owned(), "2".to_owned()));
    assert!(matches!(site.artifact_client.fetch(&local("nothing"), IS_WANTED), Err(Error::Absent(_))));
    assert_eq!(site.artifact_client.list(&local("reports/")).unwrap(), ["reports/a.txt", "reports/more/b.txt"]);
    assert_eq!(site.leftovers(), 0);
}
