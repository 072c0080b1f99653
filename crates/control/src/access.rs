//! What is kept about who may come in: tokens and the admin's password, as hashes. What they allow is the server's
//! business; here they are only stored, found and removed.

use octoflow_store::{Change, Error, Reader};
pub use octoflow_store::{Password, Token};

use crate::registry::{Fault, Registry};

/// Starts the words of a kept token that name a namespace it is for. A version that does not know it refuses the token.
pub const NAMESPACE_WORD: &str = "namespace:";

/// Whether there are tokens for this namespace and few others. Its runs then reach no other namespace either, or whoever
/// has such a token could send a run where the token does not lead.
pub(crate) fn is_confined(reader: &Reader, namespace: &str) -> Result<bool, Error> {
    let named = |word: &str| word.strip_prefix(NAMESPACE_WORD) == Some(namespace);
    Ok(reader.tokens()?.iter().any(|token| token.privileges.split(',').any(named)))
}

impl Registry {
    /// All tokens, oldest first.
    pub fn tokens(&self) -> Result<Vec<Token>, Fault> {
        self.read(|reader| Ok(reader.tokens()?))
    }

    /// When this returns the token is on disk.
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
