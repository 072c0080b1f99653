//! Answers that are made piece by piece, each when the client has taken the one before. It knows nothing of what is in
//! them.

use std::io;

use axum::{
    body::{Body, Bytes},
    http::StatusCode,
};
use futures_util::{StreamExt, stream};
use octoflow_control::registry::{Fault as RegistryFault, Registry};

use crate::{
    answer::{self, Answer, fault::Fault, stream::LOOKUPS},
    call::Call,
};

/// Where the pieces of one answer come from.
pub(crate) trait Pieces: Sized + Send + 'static {
    /// The next piece, and whether there is more. It waits for the disk and the engine.
    fn piece(&mut self) -> Result<(Vec<u8>, bool), RegistryFault>;
}

/// Begins an answer. Its first piece is made before the head is sent, so that a fault there is still answered as one.
pub(crate) async fn begin<P: Pieces>(
    call: &Call,
    pieces: impl FnOnce(&Registry) -> Result<P, RegistryFault> + Send + 'static,
) -> Result<Answer, Fault> {
    let first = call.work(move |registry| {
        let mut pieces = pieces(registry)?;
        let (piece, more) = pieces.piece()?;
        Ok::<_, RegistryFault>((pieces, piece, more))
    });
    let (pieces, piece, more) = first.await?;
    Ok(answer(pieces, piece, more))
}

/// The answer that begins with this piece.
fn answer<P: Pieces>(pieces: P, first: Vec<u8>, more: bool) -> Answer {
    let mut answer = answer::bytes_as(StatusCode::OK, "application/json", Vec::new());
    if more {
        let rest = stream::try_unfold(Some(pieces), next);
        *answer.body_mut() = Body::from_stream(stream::once(async { Ok(Bytes::from(first)) }).chain(rest));
    } else {
        *answer.body_mut() = Body::from(first);
    }
    answer
}

async fn next<P: Pieces>(pieces: Option<P>) -> io::Result<Option<(Bytes, Option<P>)>> {
    let Some(mut pieces) = pieces else { return Ok(None) };
    let turn = LOOKUPS.acquire().await.map_err(io::Error::other)?;
    let made = tokio::task::spawn_blocking(move || {
        let piece = pieces.piece();
        drop(turn);
        (piece, pieces)
    });
    let (piece, pieces) = made.await.map_err(io::Error::other)?;
    let (bytes, more) = piece.map_err(|fault| io::Error::other(fault.to_string()))?;
    Ok(Some((bytes.into(), more.then_some(pieces))))
}
