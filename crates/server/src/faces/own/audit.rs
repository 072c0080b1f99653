//! The audit log over HTTP, newest first, in pages.

use serde_json::json;

use super::ROOT;
use crate::{
    answer::{self, Answer, fault::Fault},
    call::Call,
    faces::openapi::operation::{Content, count, text},
    gate::audit::AuditQuery,
    route::{Need, Table},
};

/// Maximum page size.
const MAX_PAGE: usize = 1000;
const DEFAULT_PAGE: usize = 100;

pub(super) fn routes(table: &mut Table) {
    let page = json!({
        "type": "object", "required": ["items", "continue"],
        "properties": {"items": {"type": "array", "items": {"type": "object"}}, "continue": {"type": ["string", "null"]}},
    });
    table
        .get(format!("{ROOT}/audit"), Need::Admin, list)
        .about("The audit log, newest entries first")
        .query(&[
            count("limit", "At most so many entries"),
            count("continue", "Where the page before ended"),
            text("who", "Only what this caller did"),
            text("path", "Only requests whose path has this prefix"),
        ])
        .gives(Content::json(page));
}

async fn list(call: Call) -> Result<Answer, Fault> {
    let number = |name: &str| {
        let text = call.query.get(name);
        let number = text.map(|text| text.parse::<u64>()).transpose();
        number.map_err(|_| Fault::bad_request(format!("{name} is a number, not `{}`", text.unwrap_or_default())))
    };
    let limit = number("limit")?.map_or(DEFAULT_PAGE, |limit| usize::try_from(limit).unwrap_or(MAX_PAGE));
    let query = AuditQuery {
        limit: limit.clamp(1, MAX_PAGE),
        before: number("continue")?,
        who: call.query.get("who").map(str::to_owned),
        path: call.query.get("path").map(str::to_owned),
    };
    let app = call.app.clone();
    let found = call.work(move |_| {
        app.audit.find(&query).map_err(|error| Fault::internal(format!("the audit log cannot be read: {error}")))
    });
    let (items, next) = found.await?;
    Ok(answer::json(&json!({"items": items, "continue": next.map(|next| next.to_string())})))
}
