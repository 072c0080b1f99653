//! Storage of credentials: tokens and the admin's password, as hashes. What they allow is decided by the server.

use octoflow_store::{Change, Error, Reader};
pub use octoflow_store::{Password, Token};

use crate::registry::{Fault, Registry};

/// Prefix of the words of a token that name its namespaces. A version that does not know it refuses the token.
pub const NAMESPACE_WORD: &str = "namespace:";

/// Returns whether there are tokens confined to namespaces that include this one. Its runs then reach no other
/// namespace either; otherwise the holder of such a token could use a run to get beyond its token.
pub(crate) fn is_confined(reader: &Reader, namespace: &str) -> Result<bool, Error> {
    let named = |word: &str| word.strip_prefix(NAMESPACE_WORD) == Some(namespace);
    Ok(reader.tokens()?.iter().any(|token| token.privileges.split(',').any(named)))
}

impl Registry {
    /// Returns all tokens, oldest first.
    pub fn tokens(&self) -> Result<Vec<Token>, Fault> {
        self.read(|reader| Ok(reader.tokens()?))
    }

    /// Stores a token durably.
    pub fn put_token(&self, token: &Token) -> Result<(), Fault> {
        self.keep(Change::PutToken(Box::new(token.clone())))
    }

    pub fn delete_token(&self, id: &str) -> Result<(), Fault> {
        self.keep(Change::DeleteToken { id: id.to_owned() })
    }

    pub fn password(&self, who: &str) -> Result<Option<Password>, Fault> {
        self.read(|reader| Ok(reader.password(who)?))
    }

    pub fn put_password(&self, password: &Password) -> Result<(), Fault> {
        self.keep(Change::PutPassword(Box::new(password.clone())))
    }

    fn keep(&self, change: Change) -> Result<(), Fault> {
        self.controller().store().commit_wait(change.into())?;
        Ok(())
    }
}
