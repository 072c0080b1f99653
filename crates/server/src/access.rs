//! Who may do what: a token stands for a caller, a caller has privileges, a route needs some of them.
//! Whatever cannot be told to be allowed is denied, and guessing is slowed down.

use std::net::IpAddr;

use axum::http::{HeaderMap, header};
use octoflow_control::registry::Registry;

mod book;
pub(crate) mod first;
mod owner;
mod password;
mod privilege;
mod rate_limit;
mod scope;
mod secret;
mod turns;
mod verify;

pub(crate) use book::{Book, DefaultPassword, Entry, Opening, Wish};
pub(crate) use owner::Ends;
pub(crate) use password::acceptable;
pub(crate) use privilege::Privileges;
use rate_limit::RateLimiter;
pub(crate) use scope::Scope;
pub(crate) use secret::digest;
use turns::Party;

use crate::{fault::Fault, local::LocalUser, route::Need};

/// Whoever made the request, once the token was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// The id of the token; `admin` for the admin.
    pub id: String,
    /// Whose token it is.
    pub name: String,
    pub privileges: Privileges,
    /// The namespaces the token is for.
    pub scope: Scope,
}

impl Caller {
    /// Comes without a token, to where none is needed.
    pub(crate) fn anonymous() -> Self {
        Self { id: String::new(), name: "anonymous".to_owned(), privileges: Privileges::NONE, scope: Scope::All }
    }

    fn admin() -> Self {
        let name = book::ADMIN.to_owned();
        Self { id: name.clone(), name, privileges: Privileges::ALL, scope: Scope::All }
    }

    /// A user of this machine whom the kernel vouches for.
    fn local(user: LocalUser) -> Self {
        let name = format!("uid {}", user.uid);
        Self { id: name.clone(), name, privileges: Privileges::ALL, scope: Scope::All }
    }
}

/// Where a request comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client {
    pub address: IpAddr,
    /// Of its connection, over TCP.
    pub ends: Option<Ends>,
    /// Over the unix socket.
    pub user: Option<LocalUser>,
}

impl Client {
    fn party(&self) -> Party {
        self.user.map_or_else(|| Party::of(self.address), |user| Party::User(user.uid))
    }
}

pub(crate) struct Access {
    pub book: Book,
    rate_limit: RateLimiter,
}

/// Why somebody does not get in, and who it was as far as that is known.
pub(crate) struct Denied {
    pub fault: Fault,
    pub caller: Option<Caller>,
}

impl Access {
    pub(crate) fn open(
        registry: Registry,
        opening: &Opening,
        default: DefaultPassword,
    ) -> Result<Self, octoflow_control::registry::Fault> {
        Ok(Self { book: Book::open(registry, opening, default)?, rate_limit: RateLimiter::default() })
    }

    /// Lets the caller in, or says why not. Over the unix socket the owner of the server needs no token; one that is
    /// sent all the same says who the caller wants to be.
    pub(crate) async fn admit(&self, headers: &HeaderMap, client: Client, need: Need) -> Result<Caller, Denied> {
        if need == Need::Nothing {
            return Ok(Caller::anonymous());
        }
        let unknown = |fault| Denied { fault, caller: None };
        let owner = client.user.filter(|user| user.is_owner);
        let caller = match (token(headers), owner) {
            (Some(token), _) => self.recognise(token, client, owner.is_some()).await.map_err(unknown)?,
            (None, Some(user)) => Caller::local(user),
            (None, None) => {
                let text = "no token: send it as `Authorization: Bearer TOKEN` or as header `token`";
                return Err(unknown(Fault::unauthorized(text)));
            }
        };
        match need.missing(caller.privileges) {
            None => Ok(caller),
            Some(missing) => {
                let fault = Fault::forbidden(format!("the token of `{}` lacks the privilege {missing}", caller.name));
                Err(Denied { fault, caller: Some(caller) })
            }
        }
    }

    /// A token that is known is never held up by those who guess, wherever they are, and a password that somebody chose
    /// is checked in turn however many were wrong before it.
    async fn recognise(&self, token: &str, client: Client, by_owner: bool) -> Result<Caller, Fault> {
        if let Some(known) = self.book.known(token, by_owner) {
            return known;
        }
        let party = client.party();
        match self.book.is_admins(token, client).await? {
            Some(true) => return Ok(Caller::admin()),
            Some(false) => {}
            None => {
                if let Some(seconds) = self.rate_limit.holds(party) {
                    let text = "too many wrong tokens came from your address; wait a little";
                    return Err(Fault::too_many(text, seconds));
                }
            }
        }
        self.rate_limit.failed(party);
        Err(Fault::unauthorized("the token is not valid"))
    }
}

impl Need {
    /// What a caller with these privileges still needs, in words.
    pub(crate) fn missing(self, has: Privileges) -> Option<&'static str> {
        let (needed, word) = match self {
            Self::Nothing | Self::Token => return None,
            Self::ReadJob => (Privileges::READ_JOB, "read_job"),
            Self::WriteJob => (Privileges::WRITE_JOB, "write_job"),
            Self::ReadFeature => (Privileges::READ_FEATURE, "read_feature"),
            Self::WriteFeature => (Privileges::WRITE_FEATURE, "write_feature"),
            Self::ReadToken => (Privileges::READ_TOKEN, "read_token"),
            Self::WriteToken => (Privileges::WRITE_TOKEN, "write_token"),
            Self::Admin => (Privileges::ALL, "admin"),
        };
        (!has.include(needed)).then_some(word)
    }
}

/// The token of a request: our own header, the usual one with and without its scheme, or the cookie of a browser.
fn token(headers: &HeaderMap) -> Option<&str> {
    let usual = || says(headers, header::AUTHORIZATION.as_str()).map(bare);
    let cookie = || {
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(name, _)| *name == "authorization").map(|(_, value)| bare(value.trim_matches('"')))
    };
    says(headers, "token").or_else(usual).or_else(cookie).filter(|token| !token.is_empty())
}

/// Whether the token of a request is one that a browser sends by itself.
pub(crate) fn is_by_cookie(headers: &HeaderMap) -> bool {
    headers.contains_key(header::COOKIE) && !["token", "authorization"].iter().any(|name| says(headers, name).is_some())
}

fn says<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok()).filter(|text| !text.is_empty())
}

fn bare(value: &str) -> &str {
    let value = value.trim();
    // The scheme is a word that may be written in any case, and a cookie may not hold a blank.
    let rest = value.get(..6).filter(|scheme| scheme.eq_ignore_ascii_case("bearer")).map(|_| &value[6..]);
    match rest {
        Some(rest) if rest.starts_with(' ') => rest.trim_start(),
        Some(rest) if rest.starts_with("%20") => rest[3..].trim_start(),
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderValue};

    use super::*;

    #[test]
    fn a_token_may_come_in_every_way_that_clients_send_it() {
        let ways = [
            ("token", "t1"),
            ("authorization", "Bearer t1"),
            ("authorization", "bearer   t1"),
            ("authorization", "t1"),
            ("cookie", "theme=dark; authorization=Bearer t1; x=y"),
            ("cookie", "authorization=Bearer%20t1"),
            ("cookie", "authorization=\"Bearer t1\""),
        ];
        for (name, value) in ways {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_static(value));
            assert_eq!(token(&headers), Some("t1"), "{name}: {value}");
        }
        let mut headers = HeaderMap::new();
        headers.insert("token", HeaderValue::from_static(""));
        headers.insert("cookie", HeaderValue::from_static("other=1"));
        assert_eq!(token(&headers), None);
        headers.insert("authorization", HeaderValue::from_static("Bearer "));
        assert_ne!(token(&headers), Some(""));
    }
}
