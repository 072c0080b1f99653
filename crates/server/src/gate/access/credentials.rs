//! Tokens and the admin's password: stored as hashes, looked up in memory. A change is durable before it takes effect,
//! and takes effect for the next request.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
};

use octoflow_control::{
    access::{NAMESPACE_WORD, Password, Token},
    new_uid, now,
    registry::{self, Registry},
};
use octoflow_model::Time;

use super::{
    Caller, Client, Privileges, Scope, first, password,
    secret::{self, Hash, digest, same},
    verify::Verifier,
};
use crate::{Error, answer::fault::Fault};

pub(crate) const ADMIN: &str = "admin";

/// Password of an admin who has not chosen one. It is public knowledge.
pub(crate) const DEFAULT: &str = "admin";

/// Who may use the default password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DefaultPassword {
    /// Only the owner of the server over the unix socket, who would not need it.
    Owner,
    /// Everybody who reaches the server.
    Everybody,
}

/// Error for the default password over TCP.
const NOT_OVER_TCP: &str = "the default password `admin` is not accepted over TCP: any process of this machine could \
    use it. On the server's machine, as its user or root, `octoflow` with the server's data directory needs no token \
    and `octoflow kubeconfig` writes one for kubectl; the first token lies in `admin.token` of that directory; \
    `octoflow token set-admin -` chooses a password; `octoflow server --allow-default-password` accepts `admin` \
    from everybody who reaches the port";

/// Maximum number of tokens, more than any team needs; all of them are in memory.
const MAX_COUNT: usize = 10_000;
const MAX_NAME_BYTES: usize = 253;
const MAX_NOTE_BYTES: usize = 1024;

/// Source of the admin's credential for this start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AdminSource {
    /// The password stored in the data directory.
    Stored,
    /// The token from a file, and nothing else.
    File(Hash),
}

pub(crate) struct Credentials {
    registry: Registry,
    tokens: RwLock<HashMap<Hash, Arc<Entry>>>,
    admin: RwLock<Admin>,
    /// Held by whoever changes something, from reading it until memory and disk agree again. Requests never wait for it:
    /// what they read is locked only while it is exchanged.
    changes: Mutex<()>,
    default: DefaultPassword,
    verifier: Verifier,
}

/// Stored token, without its secret.
pub(crate) struct Entry {
    pub token: Token,
    pub privileges: Privileges,
    pub scope: Scope,
}

#[derive(Clone)]
enum Admin {
    /// No password was chosen. The first token is valid, once it exists.
    Default(Option<FirstToken>),
    File(Hash),
    /// Chosen password, with the hash of a text that matched it, so that the slow hash is computed once.
    Chosen(Arc<Password>, Option<Hash>),
}

/// Hash of the first token, and the directory of its file.
#[derive(Clone)]
struct FirstToken(Hash, PathBuf);

/// Request for a new token.
pub(crate) struct NewToken {
    pub who: String,
    pub note: String,
    pub privileges: Privileges,
    pub scope: Scope,
    pub expires: Option<Time>,
}

impl Credentials {
    pub(super) fn open(
        registry: Registry,
        opening: &AdminSource,
        default: DefaultPassword,
    ) -> Result<Self, registry::Fault> {
        let mut tokens = HashMap::new();
        for token in registry.tokens()? {
            let hash: Result<Hash, _> = token.hash.as_slice().try_into();
            // A token that cannot be parsed is not accepted.
            let (Ok(hash), Ok((privileges, scope))) = (hash, read(&token.privileges)) else {
                tracing::warn!(token = token.id, "a token cannot be understood and is not accepted");
                continue;
            };
            tokens.insert(hash, Arc::new(Entry { token, privileges, scope }));
        }
        let admin = match opening {
            AdminSource::File(hash) => Admin::File(*hash),
            AdminSource::Stored => match registry.password(ADMIN)? {
                Some(password) => Admin::Chosen(Arc::new(password), None),
                None => Admin::Default(None),
            },
        };
        let (tokens, admin) = (RwLock::new(tokens), RwLock::new(admin));
        Ok(Self { registry, tokens, admin, changes: Mutex::default(), default, verifier: Verifier::new() })
    }

    /// Generates or reads the first token while no password was chosen; otherwise removes its file.
    pub(crate) fn prepare_first_token(&self, data_dir: &Path) -> Result<(), Error> {
        let mut admin = self.admin.write().unwrap_or_else(PoisonError::into_inner);
        if let Admin::Default(first) = &mut *admin {
            *first = Some(FirstToken(first::ready(data_dir)?, data_dir.to_owned()));
        } else {
            first::remove(data_dir);
        }
        Ok(())
    }

    /// Returns whether the admin's password is still the default.
    pub(crate) fn has_default(&self) -> bool {
        matches!(*self.admin.read().unwrap_or_else(PoisonError::into_inner), Admin::Default(_))
    }

    /// Returns whether the default password admits everybody who reaches the server.
    pub(crate) fn default_admits_everybody(&self) -> bool {
        self.default == DefaultPassword::Everybody && self.has_default()
    }

    /// Identifies a caller without the slow hash, if possible; an expired token is known and refused. `by_owner`: the
    /// token came over the unix socket from the owner of the server.
    pub(super) fn identify(&self, text: &str, by_owner: bool) -> Option<Result<Caller, Fault>> {
        let hash = digest(text.as_bytes());
        let found = self.tokens.read().unwrap_or_else(PoisonError::into_inner).get(&hash).cloned();
        if let Some(entry) = found {
            if entry.token.expires.is_some_and(|at| at <= now()) {
                return Some(Err(Fault::unauthorized("the token has expired")));
            }
            let (id, name) = (entry.token.id.clone(), entry.token.who.clone());
            let (privileges, scope) = (entry.privileges, entry.scope.clone());
            return Some(Ok(Caller { id, name, privileges, scope }));
        }
        let fits = match &*self.admin.read().unwrap_or_else(PoisonError::into_inner) {
            Admin::Default(_) if text == DEFAULT => {
                if !by_owner && self.default == DefaultPassword::Owner {
                    return Some(Err(Fault::unauthorized(NOT_OVER_TCP)));
                }
                true
            }
            Admin::Default(first) => first.as_ref().is_some_and(|first| same(&hash, &first.0)),
            Admin::File(of_file) => same(&hash, of_file),
            Admin::Chosen(_, verified) => verified.is_some_and(|verified| same(&hash, &verified)),
        };
        fits.then(|| Ok(Caller::admin()))
    }

    /// Checks the text against the chosen password; `None` if none was chosen.
    pub(super) async fn check_password(&self, text: &str, client: Client) -> Result<Option<bool>, Fault> {
        let chosen = match &*self.admin.read().unwrap_or_else(PoisonError::into_inner) {
            Admin::Chosen(password, _) => password.clone(),
            Admin::Default(_) | Admin::File(_) => return Ok(None),
        };
        if !self.verifier.fits(&chosen, text, client).await? {
            return Ok(Some(false));
        }
        let mut admin = self.admin.write().unwrap_or_else(PoisonError::into_inner);
        match &mut *admin {
            // The password may have changed during the computation.
            Admin::Chosen(password, verified) if **password == *chosen => {
                *verified = Some(digest(text.as_bytes()));
                Ok(Some(true))
            }
            _ => Ok(Some(false)),
        }
    }

    /// Returns all tokens within the caller's scope, oldest first.
    pub(crate) fn all(&self, by: &Caller) -> Vec<Arc<Entry>> {
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = tokens.values().filter(|entry| by.scope.includes(&entry.scope)).cloned().collect();
        drop(tokens);
        all.sort_by(|one, other| (one.token.created, &one.token.id).cmp(&(other.token.created, &other.token.id)));
        all
    }

    /// Finds a token by id, or by name if it is unique. Tokens outside of the caller's scope are not found.
    pub(crate) fn get(&self, id: &str, by: &Caller) -> Result<Arc<Entry>, Fault> {
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
        let seen = || tokens.values().filter(|entry| by.scope.includes(&entry.scope));
        if let Some(entry) = seen().find(|entry| entry.token.id == id) {
            return Ok(entry.clone());
        }
        let mut named = seen().filter(|entry| entry.token.who == id);
        match (named.next(), named.count()) {
            (None, _) => Err(Fault::not_found(format!("there is no token `{id}`"))),
            (Some(entry), 0) => Ok(entry.clone()),
            (Some(_), more) => {
                let text = format!("`{id}` has {} tokens; name the one you mean by its id", more + 1);
                Err(Fault::conflict(text))
            }
        }
    }

    /// Returns the id of the token with this text, if there is one that the caller may know of. The admin's own can
    /// neither be changed nor deleted as a token.
    pub(crate) fn id_of(&self, text: &str, by: &Caller) -> Result<Option<String>, Fault> {
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
        let found = tokens.get(&digest(text.as_bytes())).filter(|entry| by.scope.includes(&entry.scope));
        let found = found.map(|entry| entry.token.id.clone());
        drop(tokens);
        if found.is_none() && self.identify(text, true).is_some_and(|caller| caller.is_ok_and(|one| one.id == ADMIN)) {
            return Err(Fault::conflict(
                "this is the admin's own token: it cannot be deleted, and it has all privileges",
            ));
        }
        Ok(found)
    }

    /// Creates a token; its text is returned once and never again. Blocks on the disk.
    pub(crate) fn create(&self, wanted: NewToken, by: &Caller) -> Result<(Arc<Entry>, String), Fault> {
        let NewToken { who, note, privileges, scope, expires } = wanted;
        if who.is_empty() || who.len() > MAX_NAME_BYTES || who.chars().any(char::is_control) {
            let text = format!("`forwho` names whom the token is for, in 1 to {MAX_NAME_BYTES} plain characters");
            return Err(Fault::bad_request(text));
        }
        if who == ADMIN {
            return Err(Fault::bad_request("there is one admin; give a token all privileges under another name"));
        }
        if who.starts_with("uid ") {
            return Err(Fault::bad_request("names such as `uid 1000` are for users of the unix socket"));
        }
        if note.len() > MAX_NOTE_BYTES {
            return Err(Fault::bad_request(format!("`note` may have {MAX_NOTE_BYTES} bytes at most")));
        }
        if expires.is_some_and(|at| at <= now()) {
            return Err(Fault::bad_request("`expires` is in the past"));
        }
        allowed(privileges, &scope, by)?;
        if self.tokens.read().unwrap_or_else(PoisonError::into_inner).len() >= MAX_COUNT {
            return Err(Fault::conflict(format!(
                "there are {MAX_COUNT} tokens already; delete some that are not in use"
            )));
        }
        let _turn = self.change_alone();
        let text = secret::generate()?;
        let hash = digest(text.as_bytes());
        let token = Token {
            id: new_uid()?,
            hash: hash.to_vec(),
            who,
            note,
            privileges: written(privileges, &scope),
            created: now(),
            expires,
        };
        Ok((self.keep(hash, Entry { token, privileges, scope })?, text))
    }

    /// Changes the privileges of a token, and its namespaces if given. Blocks on the disk.
    pub(crate) fn change(
        &self,
        id: &str,
        privileges: Privileges,
        scope: Option<Scope>,
        by: &Caller,
    ) -> Result<Arc<Entry>, Fault> {
        let _turn = self.change_alone();
        let entry = self.get(id, by)?;
        check_covers(&entry, by)?;
        let scope = scope.unwrap_or_else(|| entry.scope.clone());
        allowed(privileges, &scope, by)?;
        let hash: Hash = entry.token.hash.as_slice().try_into().expect("only hashes of this length are in the book");
        let token = Token { privileges: written(privileges, &scope), ..entry.token.clone() };
        self.keep(hash, Entry { token, privileges, scope })
    }

    fn change_alone(&self) -> MutexGuard<'_, ()> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores a token. The caller changes alone.
    fn keep(&self, hash: Hash, entry: Entry) -> Result<Arc<Entry>, Fault> {
        let entry = Arc::new(entry);
        self.registry.put_token(&entry.token)?;
        self.tokens.write().unwrap_or_else(PoisonError::into_inner).insert(hash, entry.clone());
        Ok(entry)
    }

    /// Deletes a token. The next request with it is refused. Blocks on the disk.
    pub(crate) fn delete(&self, id: &str, by: &Caller) -> Result<Arc<Entry>, Fault> {
        let _turn = self.change_alone();
        let entry = self.get(id, by)?;
        check_covers(&entry, by)?;
        self.registry.delete_token(&entry.token.id)?;
        let mut tokens = self.tokens.write().unwrap_or_else(PoisonError::into_inner);
        tokens.retain(|_, known| known.token.id != entry.token.id);
        Ok(entry)
    }

    /// Changes the admin's password; the old one is refused from the next request on. Blocks on the disk and on the
    /// slow hash. Returns what whoever chose it should know.
    pub(crate) fn set_admin(&self, text: &str) -> Result<Option<String>, Fault> {
        if text == DEFAULT {
            return Err(Fault::bad_request("everybody knows this password; choose another one"));
        }
        password::acceptable(text).map_err(|why| Fault::bad_request(format!("`token` is the new password: {why}")))?;
        if matches!(*self.admin.read().unwrap_or_else(PoisonError::into_inner), Admin::File(_)) {
            let why = "the server was started with --admin-token-file: change that file and start again";
            return Err(Fault::conflict(why));
        }
        let password = password::hashed(ADMIN, text)?;
        let _turn = self.change_alone();
        self.registry.put_password(&password)?;
        let chosen = Admin::Chosen(Arc::new(password), Some(digest(text.as_bytes())));
        let before = std::mem::replace(&mut *self.admin.write().unwrap_or_else(PoisonError::into_inner), chosen);
        if let Admin::Default(Some(FirstToken(_, data_dir))) = before {
            first::remove(&data_dir);
        }
        let advice = password::advice(text);
        if let Some(advice) = &advice {
            tracing::warn!("{advice}");
        }
        Ok(advice)
    }
}

/// Checks that a caller grants only what it has itself.
fn allowed(privileges: Privileges, scope: &Scope, by: &Caller) -> Result<(), Fault> {
    if privileges.is_empty() {
        return Err(Fault::bad_request("`privileges` names at least one privilege"));
    }
    if !by.privileges.include(privileges) {
        let text = format!("`{}` has only {}, so it cannot give {privileges}", by.name, by.privileges);
        return Err(Fault::forbidden(text));
    }
    if !by.scope.includes(scope) {
        let text = format!("`{}` is for {} only, so it cannot give a token for {scope}", by.name, by.scope);
        return Err(Fault::forbidden(text));
    }
    Ok(())
}

/// Encodes privileges and namespaces for storage.
fn written(privileges: Privileges, scope: &Scope) -> String {
    let names = scope.names();
    let words = privileges.words().into_iter().map(str::to_owned);
    words.chain(names.iter().map(|name| format!("{NAMESPACE_WORD}{name}"))).collect::<Vec<_>>().join(",")
}

fn read(kept: &str) -> Result<(Privileges, Scope), String> {
    let words = || kept.split(',').filter(|word| !word.is_empty());
    let scope = Scope::of(words().filter_map(|word| word.strip_prefix(NAMESPACE_WORD)))?;
    Ok((Privileges::read(words().filter(|word| !word.starts_with(NAMESPACE_WORD)))?, scope))
}

/// Checks that the caller's own rights cover those of the token to change.
fn check_covers(entry: &Entry, by: &Caller) -> Result<(), Fault> {
    if by.privileges.include(entry.privileges) && by.scope.includes(&entry.scope) {
        return Ok(());
    }
    let text = format!("the token of `{}` allows more than the token of `{}`", entry.token.who, by.name);
    Err(Fault::forbidden(text))
}
