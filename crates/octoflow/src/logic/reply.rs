//! What comes back to a task that asks for something instead of running a process.

use octoflow_model::request::{Answer, HttpResponse, Request};
use serde_json::Value;

use super::test_document::Located;

/// What a stub says, with its texts still to be filled.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Http {
        status: u16,
        headers: Vec<(String, String)>,
        body: String,
    },
    Object(Value),
    Listing(Vec<String>),
    /// It was done, and a condition of the manifest finds it bad.
    Failed(String),
    /// It could not be done.
    Refused(String),
}

/// The words of a stub that say what is answered.
pub(crate) const WORDS: [&str; 5] = ["http", "object", "keys", "failed", "refused"];

/// What a stub says, its texts put in by `fill`.
pub(crate) fn of<'a, E>(
    stub: &Located<'a>,
    fill: &dyn Fn(Located<'a>) -> Result<String, E>,
) -> Result<Option<Reply>, E> {
    if let Some(http) = stub.get("http") {
        let status = http.get("status").and_then(|located| u16::try_from(located.value.as_u64()?).ok()).unwrap_or(200);
        let headers = http.entries_of("headers").map(|(name, located)| Ok((name.to_owned(), fill(located)?)));
        let headers = headers.collect::<Result<_, E>>()?;
        let body = http.get("body").map(fill).transpose()?.unwrap_or_default();
        return Ok(Some(Reply::Http { status, headers, body }));
    }
    if let Some(object) = stub.get("object") {
        return Ok(Some(Reply::Object(object.value.clone())));
    }
    if let Some(keys) = stub.get("keys") {
        return Ok(Some(Reply::Listing(keys.items().map(fill).collect::<Result<_, E>>()?)));
    }
    if let Some(why) = stub.get("failed") {
        return Ok(Some(Reply::Failed(fill(why)?)));
    }
    Ok(stub.get("refused").map(fill).transpose()?.map(Reply::Refused))
}

impl Reply {
    pub(crate) fn answer(&self) -> Answer {
        match self {
            Self::Http { status, headers, body } => {
                Answer::Http(HttpResponse { status: *status, headers: headers.clone(), body: body.clone() })
            }
            Self::Object(object) => Answer::Object(object.clone()),
            Self::Listing(keys) => Answer::Listing(keys.clone()),
            Self::Failed(why) => Answer::Failed(why.clone()),
            Self::Refused(why) => Answer::Refused(why.clone()),
        }
    }
}

/// What is answered when a stub only says that all is well: a page with its result, no keys. An object has outputs that
/// only a stub can know, so it is left to that.
pub(crate) fn plain(request: &Request, result: &str) -> Option<Answer> {
    match request {
        Request::Http(_) => {
            Some(Answer::Http(HttpResponse { status: 200, headers: Vec::new(), body: result.to_owned() }))
        }
        Request::Listing(_) if result.is_empty() => Some(Answer::Listing(Vec::new())),
        Request::Probe(_) => Some(Answer::Probed),
        Request::Remove(_) => Some(Answer::Object(Value::Null)),
        Request::Listing(_) | Request::Object(_) | Request::Make(_) | Request::Submit(_) | Request::Builtin(_) => None,
    }
}
