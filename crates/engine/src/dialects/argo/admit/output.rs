//! Checks the outputs of a template: each has a source, and one that fits the template's type.

use octoflow_model::argo::template::Parameter;

use super::{
    code,
    findings::{At, Findings},
    index::{TemplateEntry, TemplateType},
    name, request, template,
};

pub(super) fn check(report: &mut Findings, at: &At<'_>, entry: &TemplateEntry<'_>) {
    let outputs = &entry.template.outputs;
    let label = &entry.label;
    let at = at.key("outputs");
    let parameters = at.key("parameters");
    let of = || format!("templates.{label}.outputs.parameters");
    name::list(
        report,
        &parameters,
        &of,
        name::NameRule::Data,
        outputs.parameters.iter().map(|output| output.name.as_str()),
    );
    for (index, output) in outputs.parameters.iter().enumerate() {
        let place = parameters.index(index);
        parameter(report, &place, entry.kind, &|| format!("{}.{}", of(), output.name), output);
        global(report, &place, &|| format!("{}.{}", of(), output.name), output.global_name.as_deref());
    }
    let artifacts = at.key("artifacts");
    let of = || format!("templates.{label}.outputs.artifacts");
    name::list(
        report,
        &artifacts,
        &of,
        name::NameRule::Data,
        outputs.artifacts.iter().map(|output| output.name.as_str()),
    );
    for (index, output) in outputs.artifacts.iter().enumerate() {
        let place = artifacts.index(index);
        let of = || format!("{}.{}", of(), output.name);
        template::artifact_path(report, &place, entry, &of, output.path.as_deref());
        if output.from.is_some() && output.from_expression.is_some() {
            report.error(&place, code::ARTIFACT, || format!("{} should have either `from` or `fromExpression`", of()));
        }
        global(report, &place, &of, output.global_name.as_deref());
    }
}

fn parameter(report: &mut Findings, at: &At<'_>, kind: TemplateType, of: &dyn Fn() -> String, output: &Parameter) {
    let Some(from) = &output.value_from else {
        if output.value.is_none() {
            report.error(at, code::OUTPUT_SOURCE, || format!("{} does not have valueFrom or value specified", of()));
        }
        return;
    };
    if output.value.is_some() {
        report
            .error(at, code::OUTPUT_SOURCE, || format!("{} has both valueFrom and value specified. Choose one.", of()));
        return;
    }
    let place = at.key("valueFrom");
    let given = |text: &Option<String>| text.as_deref().is_some_and(|text| !text.is_empty());
    let object = given(&from.json_path) || given(&from.jq_filter);
    let sources = [given(&from.path), given(&from.parameter), given(&from.expression), from.supplied.is_some(), object];
    match sources.iter().filter(|given| **given).count() {
        0 => report.error(&place, code::OUTPUT_SOURCE, || {
            format!("{} valueFrom type unspecified. choose one of: path, parameter, expression, supplied, jsonPath, jqFilter", of())
        }),
        1 => fits(report, &place, kind, of, sources),
        _ => report.error(&place, code::OUTPUT_SOURCE, || {
            format!("{} multiple valueFrom types specified. choose one of: path, parameter, expression, supplied, jsonPath, jqFilter", of())
        }),
    }
    request::sources(report, &place, of, from);
    if let Some(path) = &from.path
        && kind.leaf()
    {
        template::absolute(report, &place.key("path"), &|| format!("{}.valueFrom.path", of()), path);
    }
}

fn fits(report: &mut Findings, at: &At<'_>, kind: TemplateType, of: &dyn Fn() -> String, sources: [bool; 5]) {
    let [path, parameter, expression, supplied, object] = sources;
    let wanted = match kind {
        TemplateType::Container | TemplateType::Script | TemplateType::ContainerSet if !path => "path",
        TemplateType::Steps | TemplateType::Dag if !parameter && !expression => "parameter or expression",
        TemplateType::Suspend if !supplied && !expression => "supplied",
        TemplateType::Resource if !object => "jsonPath or jqFilter",
        TemplateType::Http | TemplateType::Data => {
            return report.error_with(at, code::OUTPUT_SOURCE, || {
                (
                    format!("{} cannot be set: {} templates have no output parameters", of(), kind.word()),
                    Some("use its `outputs.result`, whole or taken apart by an expression where it is used".to_owned()),
                )
            });
        }
        TemplateType::Container
        | TemplateType::Script
        | TemplateType::ContainerSet
        | TemplateType::Steps
        | TemplateType::Dag
        | TemplateType::Suspend
        | TemplateType::Resource
        | TemplateType::Unclear => return,
    };
    report.error(at, code::OUTPUT_SOURCE, || {
        format!("{}.{wanted} must be specified for {} templates", of(), kind.word())
    });
}

fn global(report: &mut Findings, at: &At<'_>, of: &dyn Fn() -> String, global: Option<&str>) {
    if let Some(global) = global.filter(|global| !global.is_empty())
        && !name::has_variables(global)
        && !name::is_data_name(global)
    {
        report.error(&at.key("globalName"), code::NAME, || {
            format!("{}.globalName: '{global}' is invalid: use letters, digits, '_' or '-'", of())
        });
    }
}
