//! Git, against repositories of this machine and over HTTP as a plain web server serves them.

use super::*;

struct Origin {
    dir: tempfile::TempDir,
}

impl Origin {
    /// `main` with two commits and a tag on the first, `side` with another file.
    fn new() -> Self {
        let origin = Self { dir: tempfile::tempdir().unwrap() };
        origin.git(&["init", "--quiet", "--initial-branch=main", "."]);
        origin.commit("a.txt", "first");
        origin.git(&["tag", "v1"]);
        origin.commit("a.txt", "second");
        origin.git(&["checkout", "--quiet", "-b", "side", "v1"]);
        origin.commit("side.txt", "side");
        origin.git(&["checkout", "--quiet", "main"]);
        origin
    }

    fn git(&self, args: &[&str]) -> String {
        let output = Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "protocol.file.allow=always"])
            .args(args)
            .current_dir(self.dir.path())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn commit(&self, name: &str, text: &str) {
        fs::write(self.dir.path().join(name), text).unwrap();
        self.git(&["add", "."]);
        self.git(&["commit", "--quiet", "-m", text]);
    }

    fn url(&self) -> String {
        format!("file://{}", self.dir.path().display())
    }

    fn at(&self, change: impl FnOnce(&mut Repository)) -> Location {
        let mut repository = Repository { repo: self.url(), submodules: true, ..Repository::default() };
        change(&mut repository);
        Location::Git(Box::new(repository))
    }
}

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn a_repository_is_checked_out_at_any_revision() {
    let origin = Origin::new();
    let first = origin.git(&["rev-parse", "v1"]);
    let cases: [(&str, Location, &str); 6] = [
        ("the default branch", origin.at(|_| {}), "second"),
        ("a tag", origin.at(|git| git.revision = text("v1")), "first"),
        ("a commit", origin.at(|git| git.revision = Some(first.clone())), "first"),
        ("a branch", origin.at(|git| git.branch = text("main")), "second"),
        ("a shallow clone", origin.at(|git| (git.depth, git.single_branch) = (Some(1), true)), "second"),
        (
            "a tag a shallow clone lacks",
            origin.at(|git| (git.depth, git.revision, git.single_branch) = (Some(1), text("v1"), true)),
            "first",
        ),
    ];
    for (what, location, expected) in cases {
        let site = Site::new();
        let fetched = site.fetch(&location).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(site.read("in/a.txt"), expected, "{what}");
        assert!(fetched.digest.starts_with("git:") && fetched.digest.len() == 44, "{}", fetched.digest);
        assert_eq!(site.leftovers(), 0);
    }
    let site = Site::new();
    site.fetch(&origin.at(|git| git.revision = text("side"))).unwrap();
    assert_eq!(site.read("in/side.txt"), "side");
    assert!(site.dir.path().join("root/in/.git").is_dir());
}

#[test]
fn extra_references_are_fetched() {
    let origin = Origin::new();
    origin.git(&["update-ref", "refs/meta/config", "side"]);
    let site = Site::new();
    let location = origin.at(|git| {
        git.fetch = vec!["refs/meta/*:refs/remotes/origin/meta/*".to_owned()];
        git.revision = text("meta/config");
    });
    site.fetch(&location).unwrap();
    assert_eq!(site.read("in/side.txt"), "side");
}

#[test]
fn submodules_come_along_unless_they_are_switched_off() {
    let inner = Origin::new();
    let origin = Origin::new();
    origin.git(&["submodule", "--quiet", "add", &inner.url(), "deps/inner"]);
    origin.git(&["commit", "--quiet", "-m", "with a submodule"]);
    let site = Site::new();
    site.fetch(&origin.at(|_| {})).unwrap();
    assert_eq!(site.read("in/deps/inner/a.txt"), "second");
    let site = Site::new();
    site.fetch(&origin.at(|git| git.submodules = false)).unwrap();
    assert!(!site.dir.path().join("root/in/deps/inner/a.txt").exists());
}

#[test]
fn a_submodule_is_checked_like_the_repository_itself() {
    let origin = Origin::new();
    let head = origin.git(&["rev-parse", "v1"]);
    fs::write(
        origin.dir.path().join(".gitmodules"),
        "[submodule \"x\"]\n\tpath = x\n\turl = http://169.254.169.254/latest\n",
    )
    .unwrap();
    origin.git(&["add", ".gitmodules"]);
    origin.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{head},x")]);
    origin.git(&["commit", "--quiet", "-m", "a trap"]);
    let error = Site::new().fetch(&origin.at(|_| {})).unwrap_err();
    assert!(error.contains("metadata"), "{error}");
}

#[test]
fn hooks_and_links_of_a_repository_do_no_harm() {
    let origin = Origin::new();
    let witness = origin.dir.path().join("witness");
    let hook = origin.dir.path().join(".git/hooks/post-checkout");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, format!("#!/bin/sh\ntouch {}\n", witness.display())).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    Site::new().fetch(&origin.at(|_| {})).unwrap();
    assert!(!witness.exists());
    std::os::unix::fs::symlink("/etc", origin.dir.path().join("etc")).unwrap();
    origin.git(&["add", "."]);
    origin.git(&["commit", "--quiet", "-m", "a link out"]);
    let error = Site::new().fetch(&origin.at(|_| {})).unwrap_err();
    assert!(error.contains("leads out"), "{error}");
}

#[test]
fn what_git_says_reaches_the_user_without_secrets() {
    let site = Site::new();
    let wrong = Repository {
        repo: "http://me:s3cret@127.0.0.1:1/x.git".to_owned(),
        password: Some(EnvValue::Secret("t0ken".to_owned())),
        ..Repository::default()
    };
    // Nothing listens there, so it is retried until it is cancelled.
    let dead: IsWanted<'_> = &|| false;
    let error = site.artifact_client.fetch(&Location::Git(Box::new(wrong)), dead).unwrap_err().to_string();
    assert!(!error.contains("s3cret") && !error.contains("t0ken"), "{error}");
    let origin = Origin::new();
    let error = site.fetch(&origin.at(|git| git.revision = text("nowhere"))).unwrap_err();
    assert!(error.contains("git fetch failed") && error.contains("nowhere"), "{error}");
    for odd in ["--upload-pack=id", "", "a\nb"] {
        assert!(site.fetch(&origin.at(|git| git.revision = text(odd))).is_err(), "{odd:?}");
    }
    assert!(Site::under(Policy::strict()).fetch(&origin.at(|_| {})).unwrap_err().contains("own files"));
}

#[test]
fn a_repository_is_fetched_over_http_with_a_password() {
    let origin = Origin::new();
    let bare = tempfile::tempdir().unwrap();
    let to = bare.path().join("x.git");
    origin.git(&["clone", "--quiet", "--bare", ".", to.to_str().unwrap()]);
    Origin { dir: bare_copy(&to) }.git(&["update-server-info"]);
    let files = bare_copy(&to);
    Command::new("git").args(["update-server-info"]).current_dir(files.path()).status().unwrap();
    let root = files.path().to_owned();
    let port = serve_files(root, "Basic bWU6cHc=");
    let location = Location::Git(Box::new(Repository {
        repo: format!("http://localhost:{port}/x.git"),
        user: Some(EnvValue::Secret("me".to_owned())),
        password: Some(EnvValue::Secret("pw".to_owned())),
        ..Repository::default()
    }));
    let site = Site::new();
    site.fetch(&location).unwrap();
    assert_eq!(site.read("in/a.txt"), "second");
}

fn bare_copy(from: &Path) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let status = Command::new("cp").arg("-r").arg(format!("{}/.", from.display())).arg(dir.path()).status().unwrap();
    assert!(status.success());
    dir
}

/// Serves files to clients that know the password.
fn serve_files(root: PathBuf, authorization: &'static str) -> u16 {
    let listener = TcpListener::bind("localhost:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            let first = lines.next().unwrap_or_default();
            let known = lines
                .take_while(|line| !line.is_empty())
                .filter(|line| line.eq_ignore_ascii_case(&format!("authorization: {authorization}")))
                .count()
                > 0;
            let path = first.split(' ').nth(1).unwrap_or("/").trim_start_matches("/x.git/").to_owned();
            let path = path.split('?').next().unwrap_or_default();
            let body = if known { fs::read(root.join(path)).ok() } else { None };
            let head = match (&body, known) {
                (_, false) => "401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"",
                (Some(_), true) => "200 OK",
                (None, true) => "404 Not Found",
            };
            let body = body.unwrap_or_default();
            let head = format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
        }
    });
    port
}
