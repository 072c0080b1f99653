//! Authentication and authorization: a token identifies a caller, a caller has privileges, a route needs some of them.
//! The default is to deny, and guessing is rate limited.

use std::net::IpAddr;

use axum::http::{HeaderMap, header};
use octoflow_control::registry::Registry;

mod credentials;
mod fair_queue;
pub(crate) mod first;
mod owner;
mod password;
mod privilege;
mod rate_limit;
mod scope;
mod secret;
mod verify;

pub(crate) use credentials::{AdminSource, Credentials, DefaultPassword, Entry, NewToken};
use fair_queue::Party;
pub(crate) use owner::Ends;
pub(crate) use password::{acceptable, advice};
pub(crate) use privilege::Privileges;
use rate_limit::RateLimiter;
pub(crate) use scope::Scope;
pub(crate) use secret::digest;

use crate::{answer::fault::Fault, listen::local::LocalUser, route::Need};

/// Authenticated caller of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// Id of the token; `admin` for the admin.
    pub id: String,
    /// Name that the token was issued for.
    pub name: String,
    pub privileges: Privileges,
    /// Namespaces the token is confined to.
    pub scope: Scope,
}

impl Caller {
    /// Returns whom runs of this caller are charged to. The admin submits for others: their namespace is charged.
    pub(crate) fn submitter(&self) -> Option<String> {
        (!self.privileges.include(Privileges::ALL) && !self.id.is_empty()).then(|| self.name.clone())
    }

    /// Caller without a token, for open routes.
    pub(crate) fn anonymous() -> Self {
        Self { id: String::new(), name: "anonymous".to_owned(), privileges: Privileges::NONE, scope: Scope::All }
    }

    fn admin() -> Self {
        let name = credentials::ADMIN.to_owned();
        Self { id: name.clone(), name, privileges: Privileges::ALL, scope: Scope::All }
    }

    /// User of this machine, authenticated by the kernel.
    fn local(user: LocalUser) -> Self {
        let name = format!("uid {}", user.uid);
        Self { id: name.clone(), name, privileges: Privileges::ALL, scope: Scope::All }
    }
}

/// Origin of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client {
    pub address: IpAddr,
    /// Ends of its TCP connection.
    pub ends: Option<Ends>,
    /// User at the other end of the unix socket.
    pub user: Option<LocalUser>,
}

impl Client {
    fn party(&self) -> Party {
        self.user.map_or_else(|| Party::of(self.address), |user| Party::User(user.uid))
    }
}

pub(crate) struct Access {
    pub credentials: Credentials,
    rate_limit: RateLimiter,
}

/// Refusal, with the caller as far as it is known.
pub(crate) struct Denied {
    pub fault: Fault,
    pub caller: Option<Caller>,
}

impl Access {
    pub(crate) fn open(
        registry: Registry,
        opening: &AdminSource,
        default: DefaultPassword,
    ) -> Result<Self, octoflow_control::registry::Fault> {
        Ok(Self { credentials: Credentials::open(registry, opening, default)?, rate_limit: RateLimiter::default() })
    }

    /// Authenticates and authorizes a caller. Over the unix socket the owner of the server needs no token; if one is
    /// sent all the same, it decides.
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

    /// Identifies the caller by its token. A known token is never delayed by guesses from anywhere, and a chosen
    /// password is checked in turn however many guesses were wrong before it.
    async fn recognise(&self, token: &str, client: Client, by_owner: bool) -> Result<Caller, Fault> {
        if let Some(known) = self.credentials.identify(token, by_owner) {
            return known;
        }
        let party = client.party();
        match self.credentials.check_password(token, client).await? {
            Some(true) => return Ok(Caller::admin()),
            Some(false) => {}
            None => {
                if let Some(seconds) = self.rate_limit.retry_after(party) {
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
    /// Returns the name of a privilege that the caller lacks.
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

/// Returns the token of a request: from our own header, `Authorization` with or without its scheme, or a browser's
/// cookie.
fn token(headers: &HeaderMap) -> Option<&str> {
    let usual = || says(headers, header::AUTHORIZATION.as_str()).map(bare);
    let cookie = || {
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(name, _)| *name == "authorization").map(|(_, value)| bare(value.trim_matches('"')))
    };
    says(headers, "token").or_else(usual).or_else(cookie).filter(|token| !token.is_empty())
}

/// Returns whether the token of a request is a cookie, which a browser sends by itself.
pub(crate) fn is_by_cookie(headers: &HeaderMap) -> bool {
    headers.contains_key(header::COOKIE) && !["token", "authorization"].iter().any(|name| says(headers, name).is_some())
}

fn says<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok()).filter(|text| !text.is_empty())
}

fn bare(value: &str) -> &str {
    let value = value.trim();
    // The scheme is case-insensitive, and a cookie cannot hold a blank.
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
