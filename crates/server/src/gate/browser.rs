//! Protection against cross-site requests. A page of another site can make a browser send requests here, with the
//! cookies and passwords the browser keeps for us; it cannot choose `Origin`, `Sec-Fetch-Site` or `Host`. So requests
//! that claim another site are refused, cookies need proof that they come from a page of ours, and bodies of the types
//! that a page may send without preflight are not read. No answer ever allows another site to read it.

use axum::{
    body::HttpBody,
    extract::Request,
    http::{HeaderMap, Method, header},
};

use crate::{
    answer::fault::Fault,
    gate::{
        access,
        hosts::{Authority, Hosts},
    },
    route::Need,
};

/// Site that a browser says a request comes from. Other clients say nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Site {
    Unsaid,
    /// The user typed the address or opened a bookmark.
    Person,
    Own,
    Foreign,
}

impl Site {
    fn of(headers: &HeaderMap) -> Self {
        let mut said = headers.get_all("sec-fetch-site").iter();
        match (said.next().map(|value| value.as_bytes()), said.next()) {
            (None, _) => Self::Unsaid,
            (Some(b"same-origin"), None) => Self::Own,
            (Some(b"none"), None) => Self::Person,
            _ => Self::Foreign,
        }
    }
}

/// Checks whether a request may proceed to its handler, as far as browsers are concerned.
pub(crate) fn check(hosts: &Hosts, asked: &Authority, need: Need, request: &Request) -> Result<(), Fault> {
    let headers = request.headers();
    let safe = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    let site = Site::of(headers);
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let origin = match (origins.next(), origins.next()) {
        (None, _) => None,
        (Some(value), None) => Some(value.to_str().is_ok_and(|origin| hosts.is_own_origin(origin, asked))),
        (Some(_), Some(_)) => Some(false),
    };
    // Public information needs no check; without CORS headers a foreign page cannot read it anyway.
    let open = need == Need::Nothing && safe;
    if !open && (origin == Some(false) || site == Site::Foreign) {
        return Err(Fault::forbidden(
            "the request was sent by a page of another site; if that page is this server's, behind a proxy, start the \
             server with --public-name and the name that the browser shows",
        ));
    }
    let proven = origin == Some(true) || site == Site::Own;
    if !safe && !proven && access::is_by_cookie(headers) {
        return Err(Fault::forbidden(
            "a cookie changes something only for pages of this server; send the token as `Authorization: Bearer TOKEN`",
        ));
    }
    if !safe && !request.body().is_end_stream() {
        readable(headers, origin.is_none() && site == Site::Unsaid)?;
    }
    Ok(())
}

/// Checks that a body is of a type that a page of another site could not send without preflight.
fn readable(headers: &HeaderMap, no_browser: bool) -> Result<(), Fault> {
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(kind), None) = (types.next(), types.next()) else {
        if headers.contains_key(header::CONTENT_TYPE) {
            return Err(Fault::bad_request("the request has more than one Content-Type header"));
        }
        // Old clients of the Kubernetes API leave it out. Browsers do as well, for untyped bytes.
        return if no_browser { Ok(()) } else { Err(unread("that is not named")) };
    };
    let kind = kind.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let (family, sort) = kind.split_once('/').unwrap_or((&kind, ""));
    match (family, sort) {
        ("application", "json" | "yaml" | "x-yaml" | "vnd.kubernetes.protobuf") | ("text", "yaml") => Ok(()),
        ("application", sort) if sort.ends_with("+json") || sort.ends_with("+yaml") => Ok(()),
        _ => Err(unread(&kind)),
    }
}

fn unread(kind: &str) -> Fault {
    Fault::unsupported(format!(
        "a body of type {kind} is not read, because a page of any site could have sent it; send the header \
         `Content-Type: application/json` or `application/yaml` (with curl: -H 'Content-Type: application/json')"
    ))
}
