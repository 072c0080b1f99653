//! The face of the submission pipeline: features, plugins, jobs and tokens under `/v1`, in the words of its first
//! implementations. Whatever the business of a request comes to is told as `{code, msg, payload}` with status 200; what
//! the gate refuses, and what cannot be read, has its status.

mod feature;
mod job;
mod outcome;
mod plugin;
mod schema;
mod selector;
mod token;

use std::{future::Future, pin::Pin};

use axum::http::Method;

use self::outcome::{Outcome, answer};
use crate::{
    call::Call,
    route::{Face, Need, Route, Table},
};

/// Under which every path of this face begins.
pub(crate) const ROOT: &str = "/v1";

pub(crate) use outcome::code_of;
pub(crate) use schema::all as schemas;

pub(crate) fn routes() -> Table {
    let mut table = Table::new(Face::Submission);
    feature::routes(&mut table);
    job::routes(&mut table);
    plugin::routes(&mut table);
    selector::routes(&mut table);
    token::routes(&mut table);
    table
}

/// A handler under way.
type Handled = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// Adds a route whose handler gives what is told in the envelope.
fn add<'t, F>(
    table: &'t mut Table,
    method: Method,
    path: &str,
    need: Need,
    handler: impl Fn(Call) -> F + Send + Sync + 'static,
) -> &'t mut Route
where
    F: Future<Output = Outcome> + Send + 'static,
{
    table.add(method, format!("{ROOT}{path}"), need, move |call| {
        let done = handler(call);
        async move { answer(done.await) }
    })
}
