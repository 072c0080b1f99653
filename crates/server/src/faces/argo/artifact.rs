//! Artifact downloads: by node and name, of a workflow by name or uid, whole or one file of a directory. Names are
//! looked up in the status of the workflow and never become paths.

use std::{fs::File, io::Read};

use axum::{
    body::{Body, Bytes},
    http::{HeaderName, HeaderValue, Method, Response, header},
};
use futures_util::stream;
use octoflow_control::registry::{Artifact, ArtifactRead, Fault as RegistryFault, Side};

use super::{kind, namespace};
use crate::{
    answer::{Answer, fault::Fault},
    call::Call,
    faces::openapi::operation::Content,
    route::{Need, Table},
};

/// Read size; the next chunk is read when the client has taken the previous one.
const CHUNK: usize = 256 * 1024;

pub(super) fn routes(table: &mut Table) {
    for (word, side) in [("artifacts", Side::Outputs), ("input-artifacts", Side::Inputs)] {
        let path = format!("/{word}/{{namespace}}/{{name}}/{{node}}/{{artifact}}");
        table
            .get(path, Need::ReadJob, move |call| download(call, side, By::Name))
            .about("Downloads an artifact of a node")
            .gives(any_file());
        table
            .get(format!("/{word}-by-uid/{{uid}}/{{node}}/{{artifact}}"), Need::ReadJob, move |call| {
                download(call, side, By::Uid)
            })
            .about("Downloads an artifact of a node of the workflow with this uid")
            .gives(any_file());
    }
    let files = "/artifact-files/{namespace}/{sort}/{id}/{node}/{side}/{artifact}";
    for path in [files.to_owned(), format!("{files}/"), format!("{files}/{{*path}}")] {
        table
            .get(path, Need::ReadJob, file)
            .about("Downloads an artifact, or one file of a directory")
            .gives(any_file());
    }
    table.add(Method::POST, "/upload-artifacts/{*rest}", Need::WriteJob, upload).refuses();
}

/// Every media type an artifact can have.
fn any_file() -> Content {
    KNOWN.iter().fold(Content::default(), |content, kind| content.or(kind, None))
}

const KNOWN: &[&str] = &[
    "application/octet-stream",
    "text/plain",
    "application/json",
    "text/html",
    "image/png",
    "image/jpeg",
    "image/svg+xml",
    "application/gzip",
    "application/x-tar",
    "application/zip",
];

#[derive(Clone, Copy)]
enum By {
    Name,
    Uid,
}

async fn file(call: Call) -> Result<Answer, Fault> {
    let side = match call.param("side") {
        "outputs" => Side::Outputs,
        "inputs" => Side::Inputs,
        other => return Err(Fault::bad_request(format!("artifacts are `outputs` or `inputs`, not `{other}`"))),
    };
    let by = match call.param("sort") {
        "workflows" => By::Name,
        "archived-workflows" => By::Uid,
        other => {
            return Err(Fault::bad_request(format!("an id is of `workflows` or `archived-workflows`, not `{other}`")));
        }
    };
    download(call, side, by).await
}

async fn download(call: Call, side: Side, by: By) -> Result<Answer, Fault> {
    let part = |name: &str| call.optional_param(name).unwrap_or_default().to_owned();
    let (node, name, inner) = (part("node"), part("artifact"), part("path"));
    let id = [part("name"), part("uid"), part("id")].concat();
    let namespace = namespace(&call)?;
    let lent = call
        .work(move |registry| -> Result<ArtifactRead, RegistryFault> {
            let found = match by {
                By::Name => registry.find_run(kind("Workflow"), namespace.as_deref().unwrap_or_default(), &id),
                By::Uid => registry.find_run_by_uid(kind("Workflow"), &id),
            }?;
            if namespace.is_some_and(|namespace| namespace != found.row.namespace) {
                return Ok(ArtifactRead::Absent(format!("there is no workflow `{id}` in this namespace")));
            }
            let inner = Some(inner.as_str()).filter(|inner| !inner.is_empty());
            registry.artifact(&found.row, &node, side, &name, inner)
        })
        .await?;
    match lent {
        ArtifactRead::Found(artifact) => Ok(hand_out(artifact)),
        ArtifactRead::Absent(why) => Err(Fault::not_found(why)),
    }
}

async fn upload(_: Call) -> Result<Answer, Fault> {
    Err(Fault::not_implemented("artifacts cannot be uploaded here; give them with the workflow, raw or from a store"))
}

fn hand_out(artifact: Artifact) -> Answer {
    let Artifact { name, file, size } = artifact;
    let mut answer = Response::new(Body::from_stream(stream::try_unfold(file, next)));
    let headers = answer.headers_mut();
    let disposition = format!("filename=\"{}\"", plain(&name));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind_of(&name)));
    headers.insert(header::CONTENT_LENGTH, size.into());
    if let Ok(disposition) = HeaderValue::from_str(&disposition) {
        headers.insert(header::CONTENT_DISPOSITION, disposition);
    }
    // User content under our origin: sandboxed, so that it can run no script and load nothing.
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox; default-src 'none'"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(HeaderName::from_static("x-frame-options"), HeaderValue::from_static("SAMEORIGIN"));
    answer
}

async fn next(mut file: File) -> std::io::Result<Option<(Bytes, File)>> {
    let read = tokio::task::spawn_blocking(move || {
        let mut chunk = vec![0; CHUNK];
        let count = file.read(&mut chunk)?;
        chunk.truncate(count);
        Ok::<_, std::io::Error>((chunk, file))
    });
    let (chunk, file) = read.await.map_err(std::io::Error::other)??;
    Ok((!chunk.is_empty()).then(|| (Bytes::from(chunk), file)))
}

/// Makes a name safe for a quoted header value.
fn plain(name: &str) -> String {
    let ordinary = |letter: char| letter.is_ascii_graphic() && !matches!(letter, '"' | '\\' | '/');
    name.chars().map(|letter| if ordinary(letter) { letter } else { '_' }).collect()
}

fn kind_of(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, end)| end) {
        "txt" | "log" | "md" | "csv" | "yaml" | "yml" => "text/plain; charset=utf-8",
        "json" => "application/json",
        "html" | "htm" => "text/html; charset=utf-8",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "svg" => "image/svg+xml",
        "tgz" | "gz" => "application/gzip",
        "tar" => "application/x-tar",
        "zip" => "application/zip",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_headers_can_end_nothing() {
        assert_eq!(plain("a\"; x=\"b/../c\r\n.txt"), "a_;_x=_b_.._c__.txt");
        assert_eq!(kind_of("a.tgz"), "application/gzip");
        assert_eq!(kind_of("main"), "application/octet-stream");
    }
}
