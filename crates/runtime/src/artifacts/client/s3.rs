//! Artifacts in S3 buckets: one object, or everything below a key as a directory. Requests are signed in their URL and
//! redirects are not followed, so a signature goes to no other host.

use std::{fs::File, io::Seek, ops::Range, time::Duration};

use octoflow_model::{location::Bucket, order::Fetched};
use rusty_s3::{
    Credentials, S3Action, UrlStyle,
    actions::{
        AbortMultipartUpload, CompleteMultipartUpload, CompleteMultipartUploadResponse, CreateMultipartUpload,
        ListObjectsV2, UploadPart,
    },
};
use ureq::{
    Agent, Body, SendBody,
    http::{Method, Response},
};
use url::Url;

use super::{
    ArtifactClient, Error, IsWanted, TransferError, Tree, copy_while_wanted, file_range, web::excerpt, with_retries,
};
use crate::{
    artifacts::{pack::describe, unpack::ArtifactFile},
    egress,
};

pub(super) struct Client<'a> {
    artifact_client: &'a ArtifactClient,
    agent: Agent,
    bucket: rusty_s3::Bucket,
    credentials: Option<Credentials>,
    key: &'a str,
}

/// Lifetime of a signature. A request starts at once, but clocks may differ.
const SIGNED_FOR: Duration = Duration::from_secs(3600);
/// Largest object that is uploaded in one request.
const ONE_PIECE: u64 = 256 << 20;
/// Smallest part of a multipart upload. There may be ten thousand of them.
const PIECE: u64 = 64 << 20;
const MAX_PIECES: u64 = 9_000;
/// Limit of objects in a directory.
const MAX_OBJECTS: usize = 1_000_000;

impl<'a> Client<'a> {
    pub(super) fn new(artifact_client: &'a ArtifactClient, place: &'a Bucket) -> Result<Self, Error> {
        let failed = |why: String| Error::Failed(format!("bucket `{}`: {why}", place.bucket));
        let region = if place.region.is_empty() { "us-east-1" } else { &place.region };
        let scheme = if place.insecure { "http" } else { "https" };
        let endpoint = if place.endpoint.is_empty() {
            format!("https://s3.{region}.amazonaws.com")
        } else if place.endpoint.contains("://") {
            place.endpoint.clone()
        } else {
            format!("{scheme}://{}", place.endpoint)
        };
        let url = Url::parse(&endpoint)
            .map_err(|error| failed(format!("the endpoint `{}` is not usable: {error}", place.endpoint)))?;
        let of_amazon = url.host_str().is_some_and(|host| host.ends_with(".amazonaws.com"));
        // Names with dots do not fit the certificate, and other servers rarely know buckets as hosts.
        let style = if of_amazon && !place.bucket.contains('.') { UrlStyle::VirtualHost } else { UrlStyle::Path };
        let bucket = rusty_s3::Bucket::new(url, style, place.bucket.clone(), region.to_owned())
            .map_err(|error| failed(format!("it cannot be addressed: {error}")))?;
        let agent = match &place.authority {
            Some(pem) => egress::agent_trusting(&artifact_client.policy, pem.reveal().as_bytes())
                .map_err(|why| failed(format!("caSecret: {why}")))?,
            None => artifact_client.agent.clone(),
        };
        let credentials = place.keys.as_ref().map(|keys| match &keys.session {
            Some(token) => Credentials::new_with_token(keys.access.reveal(), keys.secret.reveal(), token.reveal()),
            None => Credentials::new(keys.access.reveal(), keys.secret.reveal()),
        });
        Ok(Self { artifact_client, agent, bucket, credentials, key: &place.key })
    }

    /// Fetches the object or, if there is none, the directory of that name.
    pub(super) fn fetch(&self, is_wanted: IsWanted<'_>) -> Result<(ArtifactFile, Fetched), Error> {
        if !self.key.ends_with('/') {
            match with_retries(is_wanted, || self.get(is_wanted)) {
                Err(failed_attempt) if failed_attempt.is_absent() => {}
                done => return done.map_err(Error::from),
            }
        }
        let prefix = format!("{}/", self.key.trim_end_matches('/'));
        let objects = self.list(&prefix, is_wanted)?;
        if objects.is_empty() {
            let bucket = self.bucket.name();
            return Err(Error::Absent(format!(
                "there is neither object nor directory `{}` in bucket `{bucket}`",
                self.key
            )));
        }
        let mut tree = Tree::begin(self.artifact_client.store())?;
        for (key, size) in objects {
            let mut answer = with_retries(is_wanted, || self.ask(Method::GET, &key, "GET"))?;
            let length = answer.body().content_length().unwrap_or(size);
            tree.add(&key[prefix.len()..], length, &mut answer.body_mut().with_config().limit(u64::MAX).reader())?;
        }
        tree.finish()
    }

    fn get(&self, is_wanted: IsWanted<'_>) -> Result<(ArtifactFile, Fetched), TransferError> {
        let mut answer = self.ask(Method::GET, self.key, "GET")?;
        let promised = answer.body().content_length();
        let mut entry = self.artifact_client.entry()?;
        let received =
            copy_while_wanted(&mut answer.body_mut().with_config().limit(u64::MAX).reader(), &mut entry, is_wanted)?;
        if promised.is_some_and(|promised| promised != received) {
            return Err(TransferError::retryable(format!(
                "only {received} of {} bytes were received",
                promised.unwrap_or(0)
            )));
        }
        let held = entry.into_temp().map_err(|error| TransferError::permanent(describe(error)))?;
        let fetched = Fetched { digest: held.digest, size: held.size };
        Ok((ArtifactFile { file: held.file, size: held.size, own: false, maybe_tree: false }, fetched))
    }

    /// Uploads a range of a file as one object.
    pub(super) fn send(&self, key: &str, file: &File, range: Range<u64>, is_wanted: IsWanted<'_>) -> Result<(), Error> {
        if range.end - range.start > ONE_PIECE {
            let piece = PIECE.max((range.end - range.start).div_ceil(MAX_PIECES));
            return self.send_in_pieces_of(piece, key, file, range, is_wanted);
        }
        let url = self.bucket.put_object(self.credentials.as_ref(), key).sign(SIGNED_FOR);
        with_retries(is_wanted, || self.upload(&url, file, &range)).map(drop).map_err(Error::from)
    }

    /// Uploads every file of a tree as an object below the key.
    pub(super) fn send_tree(&self, mut file: File, is_wanted: IsWanted<'_>) -> Result<(), Error> {
        let failed = |error: std::io::Error| Error::Failed(error.to_string());
        file.rewind().map_err(failed)?;
        let mut archive = tar::Archive::new(file.try_clone().map_err(failed)?);
        let mut files = Vec::new();
        for entry in archive.entries().map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if !entry.header().entry_type().is_file() {
                continue;
            }
            let path = entry.path().map_err(failed)?;
            let name = path.strip_prefix(".").unwrap_or(&path);
            let name = name.to_str().ok_or_else(|| {
                Error::Failed(format!("the name `{}` is not text and cannot be a key", path.display()))
            })?;
            let start = entry.raw_file_position();
            files.push((format!("{}/{name}", self.key.trim_end_matches('/')), start..start + entry.size()));
        }
        for (key, range) in files {
            self.send(&key, &file, range, is_wanted)?;
        }
        Ok(())
    }

    /// Deletes the object, or everything below its name.
    pub(super) fn delete(&self, below: bool, is_wanted: IsWanted<'_>) -> Result<(), Error> {
        let keys = if below {
            let found = self.list(&format!("{}/", self.key.trim_end_matches('/')), is_wanted)?;
            found.into_iter().map(|(key, _)| key).collect()
        } else {
            vec![self.key.to_owned()]
        };
        for key in keys {
            match with_retries(is_wanted, || self.ask(Method::DELETE, &key, "DELETE")) {
                Err(failed_attempt) if failed_attempt.is_absent() => {}
                done => drop(done?),
            }
        }
        Ok(())
    }

    /// Lists keys and sizes of all objects whose key begins with the prefix.
    pub(super) fn list(&self, prefix: &str, is_wanted: IsWanted<'_>) -> Result<Vec<(String, u64)>, Error> {
        /// Size limit of a page: a thousand keys of a kilobyte each, and markup.
        const PAGE: u64 = 8 << 20;
        let mut found = Vec::new();
        let mut next: Option<String> = None;
        loop {
            let page = with_retries(is_wanted, || {
                let mut action = self.bucket.list_objects_v2(self.credentials.as_ref());
                action.with_prefix(prefix);
                // Servers do not agree on how to encode a plus; plain text they all write the same way.
                action.query_mut().remove("encoding-type");
                if let Some(token) = &next {
                    action.with_continuation_token(token.as_str());
                }
                let mut answer = self.call(Method::GET, &action.sign(SIGNED_FOR), "LIST")?;
                ListObjectsV2::parse_response(&excerpt(&mut answer, PAGE))
                    .map_err(|error| TransferError::permanent(format!("the list of objects cannot be read: {error}")))
            })?;
            found.extend(page.contents.into_iter().map(|object| (object.key, object.size.unwrap_or(0))));
            if found.len() > MAX_OBJECTS {
                return Err(Error::Failed(format!("there are more than {MAX_OBJECTS} objects below `{prefix}`")));
            }
            match page.next_continuation_token {
                Some(token) => next = Some(token),
                None => break,
            }
        }
        found.sort();
        Ok(found)
    }

    pub(super) fn send_in_pieces_of(
        &self,
        piece: u64,
        key: &str,
        file: &File,
        range: Range<u64>,
        is_wanted: IsWanted<'_>,
    ) -> Result<(), Error> {
        let credentials = self.credentials.as_ref();
        let upload = with_retries(is_wanted, || {
            let url = CreateMultipartUpload::new(&self.bucket, credentials, key).sign(SIGNED_FOR);
            let mut answer = self.call(Method::POST, &url, "POST")?;
            CreateMultipartUpload::parse_response(&excerpt(&mut answer, 1 << 20)).map_err(|error| {
                TransferError::permanent(format!("the answer to a new upload cannot be read: {error}"))
            })
        })?;
        let done = self.send_pieces(piece, (key, upload.upload_id()), file, range, is_wanted);
        if done.is_err() {
            // An incomplete upload costs its owner money; if the abort fails too, the bucket's own rules must clean up.
            let url = AbortMultipartUpload::new(&self.bucket, credentials, key, upload.upload_id()).sign(SIGNED_FOR);
            let _ = self.call(Method::DELETE, &url, "DELETE");
        }
        done
    }

    fn send_pieces(
        &self,
        piece: u64,
        (key, upload): (&str, &str),
        file: &File,
        range: Range<u64>,
        is_wanted: IsWanted<'_>,
    ) -> Result<(), Error> {
        let credentials = self.credentials.as_ref();
        let mut tags = Vec::new();
        let mut start = range.start;
        while start < range.end {
            let part = start..range.end.min(start + piece);
            let number = u16::try_from(tags.len() + 1).expect("pieces are so large that there are few");
            let url = UploadPart::new(&self.bucket, credentials, key, number, upload).sign(SIGNED_FOR);
            let answer = with_retries(is_wanted, || self.upload(&url, file, &part))?;
            let tag = answer.headers().get("etag").and_then(|tag| tag.to_str().ok()).unwrap_or_default();
            tags.push(tag.to_owned());
            start = part.end;
        }
        let action =
            || CompleteMultipartUpload::new(&self.bucket, credentials, key, upload, tags.iter().map(String::as_str));
        with_retries(is_wanted, || {
            let url = action().sign(SIGNED_FOR);
            let request = self.agent.post(url.as_str());
            let answer = request.send(action().body());
            let mut answer = self.checked(answer.map_err(|error| TransferError::of_request(&error))?, "POST")?;
            // A failure may come with a success status.
            CompleteMultipartUploadResponse::parse(&excerpt(&mut answer, 1 << 20))
                .map(drop)
                .map_err(|error| TransferError::retryable(format!("the upload was not completed: {error}")))
        })
        .map_err(Error::from)
    }

    fn upload(&self, url: &Url, file: &File, range: &Range<u64>) -> Result<Response<Body>, TransferError> {
        let mut body = file_range(file, range).map_err(|error| TransferError::permanent(error.to_string()))?;
        let request = self.agent.put(url.as_str()).header("content-length", (range.end - range.start).to_string());
        let answer = request.send(SendBody::from_reader(&mut body));
        self.checked(answer.map_err(|error| TransferError::of_request(&error))?, "PUT")
    }

    fn ask(&self, method: Method, key: &str, verb: &str) -> Result<Response<Body>, TransferError> {
        let credentials = self.credentials.as_ref();
        let url = if method == Method::DELETE {
            self.bucket.delete_object(credentials, key).sign(SIGNED_FOR)
        } else {
            self.bucket.get_object(credentials, key).sign(SIGNED_FOR)
        };
        self.call(method, &url, verb)
    }

    fn call(&self, method: Method, url: &Url, verb: &str) -> Result<Response<Body>, TransferError> {
        let url = url.as_str();
        let answer = if method == Method::POST {
            self.agent.post(url).send_empty()
        } else if method == Method::DELETE {
            self.agent.delete(url).call()
        } else {
            self.agent.get(url).call()
        };
        self.checked(answer.map_err(|error| TransferError::of_request(&error))?, verb)
    }

    fn checked(&self, mut answer: Response<Body>, verb: &str) -> Result<Response<Body>, TransferError> {
        let status = answer.status().as_u16();
        if (200..300).contains(&status) {
            return Ok(answer);
        }
        let body = excerpt(&mut answer, 4096);
        let part = |name: &str| {
            let (_, rest) = body.split_once(&format!("<{name}>"))?;
            Some(rest.split_once("</")?.0.to_owned())
        };
        let said = [part("Code"), part("Message")].into_iter().flatten().collect::<Vec<_>>().join(": ");
        let what = format!("{verb} in bucket `{}`", self.bucket.name());
        TransferError::of_status(status, &what, &said).map_or(Ok(answer), Err)
    }
}
