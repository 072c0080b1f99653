//! Redirects of requests made for a manifest. Headers were meant for the host that the user named; another host, which
//! any response can name, gets none of them. The client itself follows no redirect, so nothing bypasses this.

use ureq::{
    Agent, AsSendBody, Body, Error,
    http::{HeaderMap, Method, Request, Response, StatusCode, header, request::Parts},
};
use url::Url;

/// Limit of hops; more are a loop.
const MAX_REDIRECTS: usize = 10;

/// Headers about a body, which no redirected request has.
const BODY_HEADERS: [header::HeaderName; 5] =
    [header::CONTENT_LENGTH, header::CONTENT_TYPE, header::CONTENT_ENCODING, header::TRANSFER_ENCODING, header::EXPECT];

/// Target and headers of a request.
pub(crate) struct Hop {
    method: Method,
    url: Url,
    headers: HeaderMap,
}

impl Hop {
    pub(crate) fn new(parts: &Parts) -> Result<Self, Error> {
        let url = Url::parse(&parts.uri.to_string()).map_err(|error| Error::BadUri(error.to_string()))?;
        Ok(Self { method: parts.method.clone(), url, headers: parts.headers.clone() })
    }

    /// Returns the next hop if the response is a redirect.
    fn next(&self, answer: &Response<Body>) -> Result<Option<Self>, Error> {
        let Some(method) = redirected(&self.method, answer.status()) else { return Ok(None) };
        let Some(location) = answer.headers().get(header::LOCATION) else { return Ok(None) };
        let text = location.to_str().map_err(|error| Error::BadUri(error.to_string()))?;
        let url = self.url.join(text).map_err(|error| Error::BadUri(format!("{text}: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(Error::BadUri(format!("a redirect to {text} is neither http nor https")));
        }
        let mut headers = HeaderMap::new();
        if is_same_host(&self.url, &url) {
            headers = self.headers.clone();
            for name in BODY_HEADERS {
                headers.remove(name);
            }
        }
        Ok(Some(Self { method, url, headers }))
    }

    fn request(&self) -> Result<Request<()>, Error> {
        let mut request = Request::builder().method(&self.method).uri(self.url.as_str()).body(())?;
        request.headers_mut().clone_from(&self.headers);
        Ok(request)
    }
}

/// Sends a request and follows redirects.
pub(crate) fn send(agent: &Agent, request: Request<impl AsSendBody>) -> Result<Response<Body>, Error> {
    let (parts, body) = request.into_parts();
    let hop = Hop::new(&parts)?;
    let answer = agent.run(Request::from_parts(parts, body))?;
    follow(hop, answer, |next| agent.run(next))
}

/// Follows the response to a request to the end. `send` sends one request and follows nothing.
pub(crate) fn follow(
    mut hop: Hop,
    mut answer: Response<Body>,
    mut send: impl FnMut(Request<()>) -> Result<Response<Body>, Error>,
) -> Result<Response<Body>, Error> {
    for _ in 0..MAX_REDIRECTS {
        let Some(next) = hop.next(&answer)? else { return Ok(answer) };
        answer = send(next.request()?)?;
        hop = next;
    }
    match hop.next(&answer)? {
        None => Ok(answer),
        Some(_) => Err(Error::TooManyRedirects),
    }
}

/// Returns the method that a redirect is followed with. A body is never sent twice, and nothing is deleted elsewhere.
fn redirected(method: &Method, status: StatusCode) -> Option<Method> {
    let plain = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
    match status.as_u16() {
        301..=303 if *method == Method::HEAD => Some(Method::HEAD),
        301..=303 => Some(Method::GET),
        307 | 308 if plain => Some(method.clone()),
        _ => None,
    }
}

/// Returns whether host, port and scheme are the same; an upgrade from the default HTTP port to the default TLS port
/// counts as the same.
fn is_same_host(from: &Url, to: &Url) -> bool {
    let port = Url::port_or_known_default;
    let upgraded = (from.scheme(), port(from)) == ("http", Some(80)) && (to.scheme(), port(to)) == ("https", Some(443));
    from.host() == to.host() && ((from.scheme(), port(from)) == (to.scheme(), port(to)) || upgraded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_the_same_by_name_port_and_scheme() {
        let same = |from: &str, to: &str| is_same_host(&Url::parse(from).unwrap(), &Url::parse(to).unwrap());
        assert!(same("http://a/x", "http://a:80/y"));
        assert!(same("http://a/x", "https://a/x"), "the same host, better kept");
        for to in ["https://a/", "http://b/", "http://a:81/", "http://a.b/", "https://a:8443/"] {
            assert!(!same("http://a:8080/", to), "{to}");
        }
        assert!(!same("https://a/", "http://a/"), "what was sent in private is not sent in the open");
    }

    #[test]
    fn a_redirected_request_has_no_body() {
        let next = |method: Method, status: u16| redirected(&method, StatusCode::from_u16(status).unwrap());
        assert_eq!(next(Method::POST, 302), Some(Method::GET));
        assert_eq!(next(Method::HEAD, 301), Some(Method::HEAD));
        assert_eq!(next(Method::GET, 308), Some(Method::GET));
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            assert_eq!(next(method, 307), None);
        }
        assert_eq!((next(Method::GET, 304), next(Method::GET, 200)), (None, None));
    }
}
