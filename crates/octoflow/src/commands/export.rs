//! `octoflow export NAME`: everything about a run in one file that can be shared: the object, explanations and logs, and
//! the same of the runs it consists of; one JSON value per line. Secrets are redacted.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::PathBuf,
};

use anyhow::{Context as _, Result};
use octoflow_control::read::lines::{Line, Stream};
use serde_json::{Value, json};

use super::Context;
use crate::{
    cli::Export,
    exit::Exit,
    output::{clock, redact::Redactor},
    source::{LogQuery, Source, below},
};

/// Format version in the first line of a file.
pub(crate) const FORMAT: u64 = 1;

pub(crate) fn export(args: &Export, context: &Context) -> Result<Exit> {
    let source = context.source()?;
    let row = source.find(args.namespace.or_default(), &args.name)?;
    let path = args.output.clone().unwrap_or_else(|| PathBuf::from(format!("{}.octoflow", row.name)));
    if path.as_os_str() == "-" {
        let mut lines = Vec::new();
        write(&*source, &row, args.tail, &mut lines)?;
        context.output.data(&String::from_utf8_lossy(&lines))?;
        return Ok(Exit::Succeeded);
    }
    let told = || format!("cannot write `{}`", path.display());
    let mut file = BufWriter::new(File::create(&path).with_context(told)?);
    write(&*source, &row, args.tail, &mut file)?;
    file.flush().with_context(told)?;
    context.output.data(&format!("{}\n", path.display()))?;
    Ok(Exit::Succeeded)
}

fn write(source: &dyn Source, row: &octoflow_store::RunRow, tail: Option<usize>, out: &mut dyn Write) -> Result<()> {
    let object = source.object(row)?;
    let redactor = Redactor::of(&object);
    let mut put = |value: &Value| writeln!(out, "{value}").context("cannot write the export");
    put(&json!({"octoflow": {
        "export": FORMAT, "version": env!("CARGO_PKG_VERSION"), "at": clock::now().to_string(),
        "namespace": row.namespace, "name": row.name, "uid": row.uid, "archived": row.archived,
    }}))?;
    put(&json!({"object": redactor.object(&object)}))?;
    for one in source.waiting(row)? {
        put(&json!({"waiting": {"node": one.node, "phase": one.phase, "why": redactor.text(&one.why)}}))?;
    }
    let mut made = Vec::new();
    for one in below::runs(&object) {
        let Some(child) = source.look_up(&row.namespace, Some(one.kind), &one.name)? else { continue };
        let object = source.object(&child)?;
        let redactor = Redactor::of(&object);
        put(&json!({"made": {"uid": child.uid, "archived": child.archived, "object": redactor.object(&object)}}))?;
        made.push((child, redactor));
    }
    if tail == Some(0) {
        return Ok(());
    }
    let query = LogQuery { tail, ..LogQuery::default() };
    source.lines(row, &query, &mut |node, number, line| {
        put(&json!({"line": line_json(node, number, line, &redactor)}))
    })?;
    for (child, redactor) in &made {
        source.lines(child, &query, &mut |node, number, line| {
            let mut line = line_json(node, number, line, redactor);
            line["of"] = json!(child.uid);
            put(&json!({"line": line}))
        })?;
    }
    Ok(())
}

fn line_json(node: &str, number: u64, line: &Line, redactor: &Redactor) -> Value {
    json!({
        "node": node, "number": number, "at": line.at.0, "container": line.container.as_deref(),
        "stream": match line.stream {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
            Stream::Note => "note",
        },
        "text": redactor.text(&String::from_utf8_lossy(&line.bytes)),
    })
}
