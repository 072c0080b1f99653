//! Parses addresses of git repositories in all their spellings; resolves and checks them before git sees them.

use crate::egress::Policy;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    Http,
    Ssh,
    File,
}

#[derive(Debug)]
pub(super) struct Address {
    /// The address as git gets it.
    pub(super) text: String,
    pub(super) scheme: Scheme,
    pub(super) host: String,
    /// HTTP: `host:port:address,…` as curl takes it. SSH: the address.
    pub(super) pins: Vec<String>,
}

impl Address {
    pub(super) fn parse(text: &str, policy: &Policy) -> Result<Self, String> {
        let (scheme, host, port) = split(text)?;
        if scheme == Scheme::File {
            if !policy.is_local() {
                return Err("repositories of this machine's own files are not allowed here".to_owned());
            }
            return Ok(Self { text: text.to_owned(), scheme, host: String::new(), pins: Vec::new() });
        }
        let harmless = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
        if host.is_empty() || host.starts_with('-') || !host.bytes().all(harmless) {
            return Err(format!("`{}` names no host", without_user(text)));
        }
        let found = policy.resolve(&host, port).map_err(|error| error.to_string())?;
        let pins = match scheme {
            Scheme::Ssh => found.iter().map(|address| address.ip().to_string()).collect(),
            Scheme::Http | Scheme::File => {
                let bare = host.trim_start_matches('[').trim_end_matches(']');
                let all: Vec<String> = found
                    .iter()
                    .map(|address| match address.ip() {
                        std::net::IpAddr::V4(ip) => ip.to_string(),
                        std::net::IpAddr::V6(ip) => format!("[{ip}]"),
                    })
                    .collect();
                // A literal address is not resolved again anyway.
                if bare.parse::<std::net::IpAddr>().is_ok() {
                    Vec::new()
                } else {
                    vec![format!("{host}:{port}:{}", all.join(","))]
                }
            }
        };
        Ok(Self { text: text.to_owned(), scheme, host, pins })
    }
}

fn split(text: &str) -> Result<(Scheme, String, u16), String> {
    let Some((scheme, rest)) = text.split_once("://") else {
        // `user@host:path`, or a path of this machine.
        if text.starts_with('/') {
            return Ok((Scheme::File, String::new(), 0));
        }
        let (place, _) = text
            .split_once(':')
            .filter(|(place, _)| !place.contains('/'))
            .ok_or_else(|| format!("`{}` is no address of a repository", without_user(text)))?;
        let host = place.rsplit_once('@').map_or(place, |(_, host)| host);
        return Ok((Scheme::Ssh, host.to_owned(), 22));
    };
    let (scheme, port) = match scheme {
        "https" => (Scheme::Http, 443),
        "http" => (Scheme::Http, 80),
        "ssh" | "git+ssh" => (Scheme::Ssh, 22),
        "file" => return Ok((Scheme::File, String::new(), 0)),
        other => return Err(format!("repositories cannot be fetched with `{other}://` here; use https or ssh")),
    };
    let place = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let place = place.rsplit_once('@').map_or(place, |(_, host)| host);
    let (host, given) = match place.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        Some((inner, after)) => (format!("[{inner}]"), after.strip_prefix(':')),
        None => match place.split_once(':') {
            Some((host, port)) => (host.to_owned(), Some(port)),
            None => (place.to_owned(), None),
        },
    };
    let port = match given.filter(|port| !port.is_empty()) {
        Some(port) => port.parse().map_err(|_| format!("`{port}` is no port"))?,
        None => port,
    };
    Ok((scheme, host, port))
}

/// Removes `user:password@` from every address in the text.
pub(super) fn without_user(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        clean.push_str(before);
        clean.push_str("://");
        let end = after.find(|letter: char| letter.is_whitespace() || "/'\"".contains(letter)).unwrap_or(after.len());
        let (place, tail) = after.split_at(end);
        clean.push_str(place.rsplit_once('@').map_or(place, |(_, host)| host));
        rest = tail;
    }
    clean + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_in_every_spelling() {
        let read = |text: &str| split(text).unwrap();
        assert_eq!(read("https://github.com/a/b.git"), (Scheme::Http, "github.com".to_owned(), 443));
        assert_eq!(read("http://me:pw@h:8080/x"), (Scheme::Http, "h".to_owned(), 8080));
        assert_eq!(read("ssh://git@h:2222/x"), (Scheme::Ssh, "h".to_owned(), 2222));
        assert_eq!(read("git@github.com:a/b.git"), (Scheme::Ssh, "github.com".to_owned(), 22));
        assert_eq!(read("http://[::1]:3000/x"), (Scheme::Http, "[::1]".to_owned(), 3000));
        assert_eq!(read("file:///srv/x.git").0, Scheme::File);
        for odd in ["ext::sh -c id", "git://h/x", "ftp://h/x", "relative/path"] {
            assert!(Address::parse(odd, &Policy::local()).is_err(), "{odd}");
        }
    }

    #[test]
    fn addresses_are_checked_and_pinned() {
        let address = Address::parse("http://localhost:3000/x", &Policy::local()).unwrap();
        assert!(address.pins[0].starts_with("localhost:3000:"), "{:?}", address.pins);
        for hidden in ["http://169.254.169.254/x", "git@169.254.169.254:x", "ssh://-oProxyCommand=id/x"] {
            assert!(Address::parse(hidden, &Policy::local()).is_err(), "{hidden}");
        }
        assert!(Address::parse("http://localhost/x", &Policy::strict()).is_err());
        assert!(Address::parse("file:///etc", &Policy::strict()).is_err());
    }

    #[test]
    fn messages_lose_the_password_of_an_address() {
        assert_eq!(
            without_user("fatal: unable to access 'https://me:secret@h/x/': no https://u@g"),
            "fatal: unable to access 'https://h/x/': no https://g"
        );
    }
}
