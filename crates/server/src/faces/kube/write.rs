//! Creating and replacing objects.

use axum::http::StatusCode;
use octoflow_control::registry::{EXPECTED_START, Kind};

use super::{accept, body, form, options, strict, target::Target, warning::warn};
use crate::{
    answer::{Answer, fault::Fault},
    call::Call,
};

pub(super) async fn create(mut call: Call, kind: &'static Kind) -> Result<Answer, Fault> {
    let target = Target::of(&call, kind)?;
    let (form, mut options, validation) =
        (accept::form(&call)?, options::write(&call)?, options::validation(&call.query)?);
    let mut object = body::object(&mut call).await?;
    options.claim = call.claim()?;
    let mut warnings = strict::check_unknown_fields(kind, &mut object, validation)?;
    let dry_run = options.dry_run;
    let created = call.create(kind, target.space(), object, options).await?;
    let expected = created["metadata"]["annotations"][EXPECTED_START].as_str();
    warnings.extend(expected.filter(|_| dry_run && kind.runs()).map(|at| match at {
        "now" => "it would start now".to_owned(),
        "unknown" => "it would wait, and nobody knows how long".to_owned(),
        at => format!("it would start by {at}"),
    }));
    Ok(warn(form::answer(StatusCode::CREATED, form, kind, created, &call.query), &warnings))
}

pub(super) async fn replace(mut call: Call, kind: &'static Kind) -> Result<Answer, Fault> {
    let target = Target::of(&call, kind)?;
    let (form, options, validation) = (accept::form(&call)?, options::write(&call)?, options::validation(&call.query)?);
    let mut object = body::object(&mut call).await?;
    let warnings = strict::check_unknown_fields(kind, &mut object, validation)?;
    let (space, name) = (target.space(), target.name());
    let replaced = call.work(move |registry| registry.replace(kind, &space, &name, object, &options)).await?;
    Ok(warn(form::answer(StatusCode::OK, form, kind, replaced, &call.query), &warnings))
}
