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

use std::{
    future::{Future, ready},
    pin::Pin,
    sync::Arc,
};

use axum::http::Method;

use self::outcome::{Outcome, Refused, answer};
use crate::{
    answer::query::Query,
    call::Call,
    faces::openapi::operation::{Parameter, ParameterForm},
    route::{Face, Need, Route, Table},
};

/// Under which every path of this face begins.
pub(crate) const ROOT: &str = "/v1";

/// Values that a flag may have; without one it is set.
const FLAGS: [&str; 7] = ["", "true", "True", "1", "false", "False", "0"];

pub(crate) use outcome::code_of;
pub(crate) use schema::all as schemas;

pub(crate) fn routes() -> Table {
    let mut table = Table::new(Face::Submission);
    feature::routes(&mut table);
    job::routes(&mut table);
    plugin::routes(&mut table);
    selector::routes(&mut table);
    token::routes(&mut table);
    table.routes.iter_mut().for_each(refuse_unknown_parameters);
    table
}

/// Has a route refuse query parameters that its description lacks, and flags that are neither true nor false.
fn refuse_unknown_parameters(route: &mut Route) {
    let (handler, known) = (route.handler.clone(), route.operation.query.clone());
    route.handler = Arc::new(move |call| match wrong_parameter(&call.query, &known) {
        Some(why) => Box::pin(ready(answer(Err(Refused::wrong(why))))),
        None => handler(call),
    });
}

fn wrong_parameter(query: &Query, known: &[Parameter]) -> Option<String> {
    query.pairs().find_map(|(name, value)| match known.iter().find(|parameter| parameter.name == name) {
        None if known.is_empty() => Some(format!("there is no query parameter `{name}`: this path has none")),
        None => {
            let names: Vec<&str> = known.iter().map(|parameter| parameter.name).collect();
            Some(format!("there is no query parameter `{name}`; this path has {}", names.join(", ")))
        }
        Some(Parameter { form: ParameterForm::Flag, .. }) if !FLAGS.contains(&value) => {
            Some(format!("{name} is `true` or `false`, not `{value}`"))
        }
        Some(_) => None,
    })
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
