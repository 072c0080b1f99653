//! The tokens there are and the admin's password: kept as hashes in the store, looked up in memory.
//! A change is on disk before it counts, and counts for the very next request.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
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
use crate::{Error, fault::Fault};

pub(crate) const ADMIN: &str = "admin";

/// The password of an admin who has not chosen one. Everybody knows it.
pub(crate) const DEFAULT: &str = "admin";

/// Who may come in with the default password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DefaultPassword {
    /// The owner of the server over the unix socket, who would not need it.
    Owner,
    /// Everybody who reaches the server.
    Everybody,
}

/// What somebody hears who comes with the default password over TCP.
const NOT_OVER_TCP: &str = "the default password `admin` is not accepted over TCP: any process of this machine could \
    use it. On the server's machine, as its user or root, `octoflow` with the server's data directory needs no token \
    and `octoflow kubeconfig` writes one for kubectl; the first token lies in `admin.token` of that directory; \
    `octoflow token set-admin -` chooses a password; `octoflow server --allow-default-password` accepts `admin` \
    from everybody who reaches the port";

/// More tokens than any team needs; all of them are in memory.
const MOST: usize = 10_000;
const LONGEST_NAME: usize = 253;
const LONGEST_NOTE: usize = 1024;

/// With what the admin comes in at this start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// With the password of the controller.
    Controller,
    /// With what a file says, and with nothing else.
    File(Hash),
}

pub(crate) struct Book {
    registry: Registry,
    tokens: RwLock<HashMap<Hash, Arc<Entry>>>,
    admin: RwLock<Admin>,
    default: DefaultPassword,
    verifier: Verifier,
}

/// A token without the token.
pub(crate) struct Entry {
    pub token: Token,
    pub privileges: Privileges,
    pub scope: Scope,
}

#[derive(Clone)]
enum Admin {
    /// Nobody has chosen a password. The first token is valid, once there is one.
    Default(Option<FirstToken>),
    File(Hash),
    /// With what was found to fit it, so that the slow hash is done once.
    Chosen(Arc<Password>, Option<Hash>),
}

/// The hash of the first token and the directory of its file.
#[derive(Clone)]
struct FirstToken(Hash, PathBuf);

/// What a new token is to be.
pub(crate) struct Wish {
    pub who: String,
    pub note: String,
    pub privileges: Privileges,
    pub scope: Scope,
    pub expires: Option<Time>,
}

impl Book {
    pub(super) fn open(
        registry: Registry,
        opening: &Opening,
        default: DefaultPassword,
    ) -> Result<Self, registry::Fault> {
        let mut tokens = HashMap::new();
        for token in registry.tokens()? {
            let hash: Result<Hash, _> = token.hash.as_slice().try_into();
            // What cannot be understood lets nobody in.
            let (Ok(hash), Ok((privileges, scope))) = (hash, read(&token.privileges)) else {
                tracing::warn!(token = token.id, "a token cannot be understood and is not accepted");
                continue;
            };
            tokens.insert(hash, Arc::new(Entry { token, privileges, scope }));
        }
        let admin = match opening {
            Opening::File(hash) => Admin::File(*hash),
            Opening::Controller => match registry.password(ADMIN)? {
                Some(password) => Admin::Chosen(Arc::new(password), None),
                None => Admin::Default(None),
            },
        };
        let (tokens, admin) = (RwLock::new(tokens), RwLock::new(admin));
        Ok(Self { registry, tokens, admin, default, verifier: Verifier::new() })
    }

    /// Draws or reads the first token while nobody has chosen a password, and removes its file otherwise.
    pub(crate) fn prepare_first_token(&self, data_dir: &Path) -> Result<(), Error> {
        let mut admin = self.admin.write().unwrap_or_else(PoisonError::into_inner);
        if let Admin::Default(first) = &mut *admin {
            *first = Some(FirstToken(first::ready(data_dir)?, data_dir.to_owned()));
        } else {
            first::remove(data_dir);
        }
        Ok(())
    }

    /// Whether nobody has chosen the admin's password.
    pub(crate) fn has_default(&self) -> bool {
        matches!(*self.admin.read().unwrap_or_else(PoisonError::into_inner), Admin::Default(_))
    }

    /// Whether everybody who reaches the server is let in as admin with the default password.
    pub(crate) fn default_lets_everybody_in(&self) -> bool {
        self.default == DefaultPassword::Everybody && self.has_default()
    }

    /// Who this is, if that can be told without a slow hash; an expired token is known and refused.
    /// `by_owner`: the token came over the unix socket from the owner of the server.
    pub(super) fn known(&self, text: &str, by_owner: bool) -> Option<Result<Caller, Fault>> {
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

    /// Whether this is the password that the admin chose; nothing when none was chosen.
    pub(super) async fn is_admins(&self, text: &str, client: Client) -> Result<Option<bool>, Fault> {
        let chosen = match &*self.admin.read().unwrap_or_else(PoisonError::into_inner) {
            Admin::Chosen(password, _) => password.clone(),
            Admin::Default(_) | Admin::File(_) => return Ok(None),
        };
        if !self.verifier.fits(&chosen, text, client).await? {
            return Ok(Some(false));
        }
        let mut admin = self.admin.write().unwrap_or_else(PoisonError::into_inner);
        match &mut *admin {
            // It may have been changed while we computed.
            Admin::Chosen(password, verified) if **password == *chosen => {
                *verified = Some(digest(text.as_bytes()));
                Ok(Some(true))
            }
            _ => Ok(Some(false)),
        }
    }

    /// All tokens that are for no more namespaces than the caller's, oldest first.
    pub(crate) fn all(&self, by: &Caller) -> Vec<Arc<Entry>> {
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = tokens.values().filter(|entry| by.scope.includes(&entry.scope)).cloned().collect();
        drop(tokens);
        all.sort_by(|one, other| (one.token.created, &one.token.id).cmp(&(other.token.created, &other.token.id)));
        all
    }

    /// A token by its id, or by the name it is for if there is only one of that name.
    /// Those for other namespaces are not there.
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

    /// Makes a token; its text is told once and never again. Waits for the disk.
    pub(crate) fn create(&self, wish: Wish, by: &Caller) -> Result<(Arc<Entry>, String), Fault> {
        let Wish { who, note, privileges, scope, expires } = wish;
        if who.is_empty() || who.len() > LONGEST_NAME || who.chars().any(char::is_control) {
            let text = format!("`forwho` names whom the token is for, in 1 to {LONGEST_NAME} plain characters");
            return Err(Fault::bad_request(text));
        }
        if who == ADMIN {
            return Err(Fault::bad_request("there is one admin; give a token all privileges under another name"));
        }
        if who.starts_with("uid ") {
            return Err(Fault::bad_request("names such as `uid 1000` are for users of the unix socket"));
        }
        if note.len() > LONGEST_NOTE {
            return Err(Fault::bad_request(format!("`note` may have {LONGEST_NOTE} bytes at most")));
        }
        if expires.is_some_and(|at| at <= now()) {
            return Err(Fault::bad_request("`expires` is in the past"));
        }
        allowed(privileges, &scope, by)?;
        if self.tokens.read().unwrap_or_else(PoisonError::into_inner).len() >= MOST {
            return Err(Fault::conflict(format!("there are {MOST} tokens already; delete some that are not in use")));
        }
        let text = secret::draw()?;
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

    /// Gives a token other privileges, and other namespaces if some are named. Waits for the disk.
    pub(crate) fn change(
        &self,
        id: &str,
        privileges: Privileges,
        scope: Option<Scope>,
        by: &Caller,
    ) -> Result<Arc<Entry>, Fault> {
        let entry = self.get(id, by)?;
        outranked(&entry, by)?;
        let scope = scope.unwrap_or_else(|| entry.scope.clone());
        allowed(privileges, &scope, by)?;
        let hash: Hash = entry.token.hash.as_slice().try_into().expect("only hashes of this length are in the book");
        let token = Token { privileges: written(privileges, &scope), ..entry.token.clone() };
        self.keep(hash, Entry { token, privileges, scope })
    }

    fn keep(&self, hash: Hash, entry: Entry) -> Result<Arc<Entry>, Fault> {
        let entry = Arc::new(entry);
        // The lock is held across the write, so that what is in memory is always what is on disk.
        let mut tokens = self.tokens.write().unwrap_or_else(PoisonError::into_inner);
        self.registry.put_token(&entry.token)?;
        tokens.insert(hash, entry.clone());
        Ok(entry)
    }

    /// Waits for the disk. The very next request with that token is refused.
    pub(crate) fn delete(&self, id: &str, by: &Caller) -> Result<Arc<Entry>, Fault> {
        let entry = self.get(id, by)?;
        outranked(&entry, by)?;
        let mut tokens = self.tokens.write().unwrap_or_else(PoisonError::into_inner);
        self.registry.delete_token(&entry.token.id)?;
        tokens.retain(|_, known| known.token.id != entry.token.id);
        Ok(entry)
    }

    /// Changes the admin's password; the old one is refused from the next request on. Waits for the disk, and computes.
    pub(crate) fn set_admin(&self, text: &str) -> Result<(), Fault> {
        if text == DEFAULT {
            return Err(Fault::bad_request("everybody knows this password; choose another one"));
        }
        password::acceptable(text).map_err(|why| Fault::bad_request(format!("`token` is the new password: {why}")))?;
        if matches!(*self.admin.read().unwrap_or_else(PoisonError::into_inner), Admin::File(_)) {
            let why = "the server was started with --admin-token-file: change that file and start again";
            return Err(Fault::conflict(why));
        }
        let password = password::hashed(ADMIN, text)?;
        let mut admin = self.admin.write().unwrap_or_else(PoisonError::into_inner);
        self.registry.put_password(&password)?;
        let before = std::mem::replace(&mut *admin, Admin::Chosen(Arc::new(password), Some(digest(text.as_bytes()))));
        if let Admin::Default(Some(FirstToken(_, data_dir))) = before {
            first::remove(&data_dir);
        }
        Ok(())
    }
}

/// Nobody gives what they do not have.
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

/// Privileges and namespaces as they are kept.
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

/// Nobody takes away from those who may more.
fn outranked(entry: &Entry, by: &Caller) -> Result<(), Fault> {
    if by.privileges.include(entry.privileges) && by.scope.includes(&entry.scope) {
        return Ok(());
    }
    let text = format!("the token of `{}` allows more than the token of `{}`", entry.token.who, by.name);
    Err(Fault::forbidden(text))
}
