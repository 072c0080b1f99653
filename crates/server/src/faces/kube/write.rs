//! Creating and replacing objects.

use axum::http::StatusCode;
use octoflow_control::registry::{Created, EXPECTED_START, Kind, expected_start_text};

use super::{accept, body, form, options, strict, target::Target};
use crate::{
    answer::{Answer, fault::Fault, warning::warn},
    call::Call,
};

pub(super) async fn create(mut call: Call, kind: &'static Kind) -> Result<Answer, Fault> {
    let target = Target::of(&call, kind)?;
    let (form, mut options, validation) =
        (accept::form(&call)?, options::write(&call)?, options::validation(&call.query)?);
    let mut object = body::object(&mut call).await?;
    options.claim = call.claim()?;
    let unknown = strict::check_unknown_fields(kind, &mut object, validation)?;
    let known = strict::known_warnings(kind, &object, &unknown, validation);
    let dry_run = options.dry_run;
    let Created { object: created, warnings } = call.create(kind, target.space(), object, options).await?;
    let mut warnings = strict::merge(unknown, warnings, &known);
    let expected = created["metadata"]["annotations"][EXPECTED_START].as_str();
    warnings.extend(expected.filter(|_| dry_run && kind.runs()).map(expected_start_text));
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
