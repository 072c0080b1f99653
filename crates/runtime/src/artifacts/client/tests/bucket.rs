//! S3 against a real server that checks every signature. `cargo xtask setup` installs it; in CI it must be there.

use std::{
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use super::*;

struct S3 {
    _dir: tempfile::TempDir,
    child: Child,
    port: u16,
}

impl Drop for S3 {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the server that `cargo xtask setup` has installed; the same lookup as there.
fn program() -> Option<PathBuf> {
    let var = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = var("OCTOFLOW_CI_CACHE")
        .or_else(|| var("XDG_CACHE_HOME").map(|dir| dir.join("octoflow-ci")))
        .or_else(|| var("HOME").map(|dir| dir.join(".cache/octoflow-ci")));
    let path = cache?.join("tools/bin/s3s-fs");
    path.is_file().then_some(path)
}

impl S3 {
    fn start() -> Option<Self> {
        let Some(program) = program() else {
            assert!(std::env::var_os("CI").is_none(), "CI has no S3 server: run `cargo xtask setup`");
            eprintln!("SKIPPED: there is no S3 server to test with; `cargo xtask setup` installs one");
            return None;
        };
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("bucket")).unwrap();
        // A free port may be taken by another test in between; then the server ends and another one is tried.
        for _ in 0..5 {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let mut child = Command::new(&program)
                .args(["--host", "127.0.0.1", "--access-key", "AK", "--secret-key", "SK", "--port"])
                .arg(port.to_string())
                .arg(dir.path())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let deadline = Instant::now() + Duration::from_secs(20);
            while child.try_wait().unwrap().is_none() && Instant::now() < deadline {
                if std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
                    return Some(Self { _dir: dir, child, port });
                }
                thread::yield_now();
            }
            let _ = child.kill();
            let _ = child.wait();
        }
        panic!("the S3 server does not start");
    }

    fn at(&self, key: &str) -> Bucket {
        Bucket {
            endpoint: format!("127.0.0.1:{}", self.port),
            bucket: "bucket".to_owned(),
            key: key.to_owned(),
            insecure: true,
            keys: Some(Keys {
                access: EnvValue::Secret("AK".to_owned()),
                secret: EnvValue::Secret("SK".to_owned()),
                session: None,
            }),
            ..Bucket::default()
        }
    }
}

fn to(bucket: Bucket) -> Location {
    Location::S3(Box::new(bucket))
}

#[test]
fn an_object_is_sent_fetched_listed_and_deleted() {
    let Some(server) = S3::start() else { return };
    let site = Site::new();
    let artifact = site.save("k", b"in a bucket");
    // Keys may hold what addresses must not.
    for key in ["plain", "dir/with space+plus&ä?.txt"] {
        let location = to(server.at(key));
        site.artifact_client.send(&location, &artifact, IS_WANTED).unwrap();
        let other = Site::new();
        let fetched = other.fetch(&location).unwrap();
        assert_eq!((other.read("in"), &fetched.digest), ("in a bucket".to_owned(), &artifact.digest), "{key}");
    }
    assert_eq!(site.artifact_client.list(&to(server.at("dir/"))).unwrap(), ["dir/with space+plus&ä?.txt"]);
    site.artifact_client.delete(Some(&to(server.at("plain"))), "ns", &artifact).unwrap();
    assert!(matches!(site.artifact_client.fetch(&to(server.at("plain")), IS_WANTED), Err(Error::Absent(_))));
    assert!(site.artifact_client.store.open(&artifact).is_err());
    site.artifact_client.delete(Some(&to(server.at("plain"))), "ns", &artifact).unwrap();
}

#[test]
fn a_directory_is_many_objects_and_comes_back_as_one() {
    let Some(server) = S3::start() else { return };
    let site = Site::new();
    let tree = site.save_tree("t", &[("a.txt", "1"), ("sub/b.txt", "2")]);
    site.artifact_client.send(&to(server.at("tree")), &tree, IS_WANTED).unwrap();
    assert_eq!(site.artifact_client.list(&to(server.at("tree"))).unwrap(), ["tree/a.txt", "tree/sub/b.txt"]);
    // This server keeps objects as files, so only the name with a slash means a directory to it.
    let other = Site::new();
    other.fetch(&to(server.at("tree/"))).unwrap();
    assert_eq!((other.read("in/a.txt"), other.read("in/sub/b.txt")), ("1".to_owned(), "2".to_owned()));
    site.artifact_client.delete(Some(&to(server.at("tree"))), "ns", &tree).unwrap();
    assert_eq!(site.artifact_client.list(&to(server.at("tree"))).unwrap(), [""; 0]);
}

#[test]
fn a_large_object_is_sent_in_pieces() {
    let Some(server) = S3::start() else { return };
    let site = Site::new();
    let location = server.at("large");
    let bytes: Vec<u8> = (0..6u32 << 20).map(|number| (number % 251) as u8).collect();
    let artifact = site.save("k", &bytes);
    let client = s3::Client::new(&site.artifact_client, &location).unwrap();
    let file = site.artifact_client.store.open(&artifact).unwrap();
    client.send_in_pieces_of(5 << 20, "large", &file, 0..artifact.size, IS_WANTED).unwrap();
    let fetched = Site::new().fetch(&to(server.at("large"))).unwrap();
    assert_eq!(fetched.digest, artifact.digest);
}

#[test]
fn more_objects_than_a_page_holds_are_listed() {
    let Some(server) = S3::start() else { return };
    for number in 0..1005 {
        fs::write(server._dir.path().join(format!("bucket/many-{number:04}")), "").unwrap();
    }
    let site = Site::new();
    let keys = site.artifact_client.list(&to(server.at("many-"))).unwrap();
    assert_eq!((keys.len(), keys[1004].as_str()), (1005, "many-1004"));
}

#[test]
fn wrong_keys_and_buckets_are_told_plainly_and_secrets_never() {
    let Some(server) = S3::start() else { return };
    let site = Site::new();
    let artifact = site.save("k", b"x");
    let mut wrong = server.at("k");
    wrong.keys.as_mut().unwrap().secret = EnvValue::Secret("WRONG-SECRET".to_owned());
    for error in [
        site.fetch(&to(wrong.clone())).unwrap_err(),
        site.artifact_client.send(&to(wrong), &artifact, IS_WANTED).unwrap_err().to_string(),
    ] {
        assert!(error.contains("SignatureDoesNotMatch") && error.contains("bucket `bucket`"), "{error}");
        assert!(!error.contains("WRONG-SECRET"), "{error}");
    }
    let nowhere = Bucket { bucket: "nowhere".to_owned(), ..server.at("k") };
    let error = site.fetch(&to(nowhere)).unwrap_err();
    assert!(error.contains("nowhere"), "{error}");
    let error = Site::under(Policy::strict()).fetch(&to(server.at("k"))).unwrap_err();
    assert!(error.contains("not allowed"), "{error}");
}
