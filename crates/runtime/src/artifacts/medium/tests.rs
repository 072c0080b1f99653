//! The artifact store on a medium that drops what was not synced when the power goes, and that fails any call once.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    io::Read,
};

use octoflow_model::{location::LocalKey, task::StoredArtifact};

use super::*;
use crate::artifacts::store::{Error, Store};

/// A disk that knows what a power cut would take, and fails one call, or all from one call on.
#[derive(Debug, Default)]
struct Faulty {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    calls: usize,
    fault: Option<Fault>,
    /// Names that are not durable, with the content the name had before.
    names: HashMap<PathBuf, Option<Vec<u8>>>,
    /// Files whose content is not durable.
    contents: HashSet<PathBuf>,
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    Once(usize, i32),
    /// The process is dead from this call on.
    Dead(usize),
}

impl Faulty {
    fn new(fault: Option<Fault>) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(State { fault, ..State::default() }) })
    }

    fn call(&self) -> io::Result<std::sync::MutexGuard<'_, State>> {
        let mut state = self.state.lock().unwrap();
        state.calls += 1;
        match state.fault {
            Some(Fault::Once(nth, code)) if nth == state.calls => Err(io::Error::from_raw_os_error(code)),
            Some(Fault::Dead(nth)) if nth <= state.calls => Err(io::Error::other("the machine is off")),
            _ => Ok(state),
        }
    }

    /// Takes away everything that was not synced. Removals are kept: the disk may be as unkind as it likes.
    fn cut_power(&self) {
        let mut state = self.state.lock().unwrap();
        let mut names: Vec<_> = state.names.drain().collect();
        // What is inside a directory first.
        names.sort_by(|a, b| b.0.cmp(&a.0));
        for (path, before) in names {
            match before {
                Some(bytes) => fs::write(&path, bytes).unwrap(),
                None if path.is_dir() => fs::remove_dir_all(&path).unwrap(),
                None => drop(fs::remove_file(&path)),
            }
        }
        for path in state.contents.drain().filter(|path| path.exists()) {
            fs::write(&path, "").unwrap();
        }
    }
}

impl FileOps for Faulty {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.call()?;
        OnDisk.create_dir(dir)?;
        state.names.insert(dir.to_owned(), None);
        Ok(())
    }

    fn create(&self, path: &Path) -> io::Result<File> {
        let mut state = self.call()?;
        if !path.exists() {
            state.names.insert(path.to_owned(), None);
        }
        OnDisk.create(path)
    }

    fn open_lock(&self, path: &Path) -> io::Result<File> {
        drop(self.call()?);
        OnDisk.open_lock(path)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        drop(self.call()?);
        OnDisk.read(path)
    }

    fn write(&self, file: &File, path: &Path, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.call()?;
        state.contents.insert(path.to_owned());
        // Half of it, as a disk may.
        OnDisk.write(file, path, &bytes[..bytes.len().div_ceil(2)])
    }

    fn sync(&self, _: &File, path: &Path) -> io::Result<()> {
        self.call()?.contents.remove(path);
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.call()?;
        state.names.retain(|path, _| path.parent() != Some(dir));
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.call()?;
        let before = match state.names.remove(to) {
            Some(before) => before,
            None => fs::read(to).ok(),
        };
        OnDisk.rename(from, to)?;
        state.names.remove(from);
        state.names.insert(to.to_owned(), before);
        if state.contents.remove(from) {
            state.contents.insert(to.to_owned());
        }
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut state = self.call()?;
        OnDisk.remove_file(path)?;
        state.names.remove(path);
        state.contents.remove(path);
        Ok(())
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.call()?;
        OnDisk.remove_dir(dir)?;
        state.names.remove(dir);
        Ok(())
    }
}

fn at(key: &str) -> LocalKey {
    LocalKey { namespace: "ns".to_owned(), key: key.to_owned() }
}

fn save(store: &Store, key: &str, text: &str) -> Result<StoredArtifact, Error> {
    let mut entry = store.begin()?;
    entry.write_all(text.as_bytes()).map_err(|source| Error::Disk { verb: "write", source })?;
    entry.finish_as(&at(key), StoredArtifact { key: key.to_owned(), ..StoredArtifact::default() })
}

/// Contents that a key may have: one after an acknowledged call; two after a call that failed.
type Expected = BTreeMap<&'static str, Vec<Option<&'static str>>>;

/// New keys, a key saved again, one content under two keys, and deletions of one of them. Every call is tried `tries`
/// times.
fn play(store: &Store, tries: usize) -> Expected {
    let mut expected = Expected::new();
    let mut digests = HashMap::new();
    let steps = [
        ("a/b", Some("1")),
        ("a/b", Some("2")),
        ("c", Some("same")),
        ("d/e/f", Some("same")),
        ("c", None),
        ("a/b", Some("1")),
        ("g", Some("")),
    ];
    for (key, text) in steps {
        let act = || match text {
            Some(text) => save(store, key, text).map(Some),
            None => store.discard(&at(key), digests.get(key).map_or("", String::as_str)).map(|()| None),
        };
        let done = (0..tries).find_map(|_| act().ok());
        let known = expected.entry(key).or_insert_with(|| vec![None]);
        match done {
            Some(saved) => {
                *known = vec![text];
                if let Some(saved) = saved {
                    digests.insert(key, saved.digest);
                }
            }
            None => known.push(text),
        }
    }
    expected
}

fn content(store: &Store, key: &str) -> Result<Option<String>, Error> {
    let Some(artifact) = store.get(&at(key))? else { return Ok(None) };
    let mut text = String::new();
    store.open(&artifact)?.read_to_string(&mut text).unwrap();
    Ok(Some(text))
}

fn check(store: &Store, expected: &Expected, when: &str) {
    for (key, possible) in expected {
        let found = content(store, key).unwrap_or_else(|error| panic!("{when}: `{key}`: {error}"));
        assert!(possible.contains(&found.as_deref()), "{when}: `{key}` is {found:?}, and may be {possible:?}");
    }
}

fn store_over(medium: &Arc<Faulty>, dir: &Path) -> Store {
    Store::over(dir, DiskFiles::over(medium.clone(), dir))
}

/// Returns a directory in memory where there is one: every sync is made up here, and the real disk may be slow.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

fn calls() -> usize {
    let (medium, dir) = (Faulty::new(None), scratch());
    let expected = play(&store_over(&medium, dir.path()), 1);
    assert!(expected.values().all(|possible| possible.len() == 1));
    let state = medium.state.lock().unwrap();
    state.calls
}

#[test]
fn what_was_saved_survives_a_power_cut_at_any_call_and_no_key_is_lost() {
    for nth in 1..=calls() + 1 {
        let (medium, dir) = (Faulty::new(Some(Fault::Dead(nth))), scratch());
        let expected = play(&store_over(&medium, dir.path()), 1);
        medium.cut_power();
        check(&Store::new(dir.path()), &expected, &format!("the power went at call {nth}"));
    }
}

#[test]
fn a_call_that_fails_once_costs_one_try_and_an_interrupted_one_none() {
    for code in [libc::EIO, libc::ENOSPC, libc::EINTR] {
        let tries = if code == libc::EINTR { 1 } else { 2 };
        for nth in 1..=calls() {
            let when = format!("call {nth} failed with {code}");
            let (medium, dir) = (Faulty::new(Some(Fault::Once(nth, code))), scratch());
            let expected = play(&store_over(&medium, dir.path()), tries);
            assert!(expected.values().all(|possible| possible.len() == 1), "{when}: {expected:?}");
            medium.cut_power();
            let store = store_over(&Faulty::new(None), dir.path());
            check(&store, &expected, &when);
            // Whatever failed, the store goes on.
            assert!(save(&store, "a/b", "3").is_ok(), "{when}");
        }
    }
}
