//! What is kept about who may come in: tokens and the admin's password, as hashes. What they allow is the server's
//! business; here they are only stored, found and removed.

use octoflow_store::Change;
pub use octoflow_store::{Password, Token};

use crate::registry::{Fault, Registry};

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
        self.house().store().commit_wait(change.into())?;
        Ok(())
    }
}
