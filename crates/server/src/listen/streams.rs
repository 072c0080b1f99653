//! Long-lived answers: watches and followed logs. They are counted and limited, end at shutdown, and a panic in one
//! ends only that one.

use std::{
    collections::HashMap,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
};

use axum::body::{Body, Bytes, HttpBody};
use futures_util::task::AtomicWaker;
use hyper::body::{Frame, SizeHint};

use crate::{
    answer::fault::Fault,
    gate::access::Caller,
    listen::executor::{self, Unsent},
};

/// A stream is polled for more when less than this is unsent: enough to keep a connection busy, and little enough that
/// thousands of clients that do not read fit into memory until they time out.
const MAX_UNSENT: usize = 64 * 1024;

pub(crate) struct Streams {
    /// Unsent bytes of all streams.
    unsent: AtomicUsize,
    most: usize,
    most_each: usize,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    all: usize,
    by_token: HashMap<String, usize>,
}

/// Permit for one open stream, released when dropped.
pub(crate) struct Permit {
    streams: Arc<Streams>,
    token: String,
}

impl Streams {
    pub(crate) fn new(most: usize, most_each: usize) -> Arc<Self> {
        Arc::new(Self { unsent: AtomicUsize::new(0), most, most_each, open: Mutex::default() })
    }

    pub(crate) fn enter(self: &Arc<Self>, caller: &Caller) -> Result<Permit, Fault> {
        const LATER: u32 = 5;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.all >= self.most {
            let text = format!("{} watches are open, and no more are allowed (--max-watches)", open.all);
            return Err(Fault::too_many(text, LATER));
        }
        let own = open.by_token.entry(caller.id.clone()).or_default();
        if *own >= self.most_each {
            let text = format!("this token has {own} watches open, and no more are allowed (--max-watches-per-token)");
            return Err(Fault::too_many(text, LATER));
        }
        *own += 1;
        open.all += 1;
        Ok(Permit { streams: self.clone(), token: caller.id.clone() })
    }

    pub(crate) fn unsent(&self) -> usize {
        self.unsent.load(Ordering::Relaxed)
    }

    pub(crate) fn open(&self) -> usize {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).all
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut open = self.streams.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.all -= 1;
        if let Some(own) = open.by_token.get_mut(&self.token) {
            *own -= 1;
            if *own == 0 {
                open.by_token.remove(&self.token);
            }
        }
    }
}

/// Body of a stream, with its permit.
pub(crate) struct Streamed {
    /// `None` once it is over.
    body: Option<Body>,
    unsent: Arc<Unsent>,
    /// Woken when unsent bytes were taken.
    waiting: Arc<AtomicWaker>,
    permit: Permit,
}

/// Piece in flight, counted until the connection has taken it or is gone.
struct InFlightPiece {
    piece: Bytes,
    unsent: Arc<Unsent>,
    waiting: Arc<AtomicWaker>,
    streams: Arc<Streams>,
}

impl AsRef<[u8]> for InFlightPiece {
    fn as_ref(&self) -> &[u8] {
        &self.piece
    }
}

impl Drop for InFlightPiece {
    fn drop(&mut self) {
        self.streams.unsent.fetch_sub(self.piece.len(), Ordering::Relaxed);
        self.unsent.take(self.piece.len());
        self.waiting.wake();
    }
}

impl Streamed {
    pub(crate) fn body(body: Body, permit: Permit) -> Body {
        let unsent = Arc::default();
        executor::observe(&unsent);
        Body::new(Self { body: Some(body), unsent, waiting: Arc::default(), permit })
    }

    /// Counts a piece until it is sent.
    fn outgoing(&self, frame: Frame<Bytes>) -> Frame<Bytes> {
        frame.map_data(|piece| {
            let (unsent, waiting) = (self.unsent.clone(), self.waiting.clone());
            let streams = self.permit.streams.clone();
            unsent.hand_over(piece.len());
            streams.unsent.fetch_add(piece.len(), Ordering::Relaxed);
            Bytes::from_owner(InFlightPiece { piece, unsent, waiting, streams })
        })
    }

    fn is_stalled(&self) -> bool {
        self.unsent.bytes() >= MAX_UNSENT
    }
}

impl HttpBody for Streamed {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.is_stalled() {
            self.waiting.register(cx.waker());
            // It may have been taken in between.
            if self.is_stalled() {
                return Poll::Pending;
            }
        }
        let Some(body) = self.body.as_mut() else { return Poll::Ready(None) };
        // After a panic the body is not polled again, so its broken state is never seen.
        let polled = catch_unwind(AssertUnwindSafe(|| Pin::new(body).poll_frame(cx)));
        let frame = match polled {
            Ok(polled) => ready!(polled),
            Err(_) => {
                tracing::error!("a stream broke off: this is a bug of ours");
                Some(Err(axum::Error::new("the stream broke off")))
            }
        };
        if !matches!(frame, Some(Ok(_))) {
            self.body = None;
        }
        Poll::Ready(frame.map(|frame| frame.map(|frame| self.outgoing(frame))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(SizeHint::new, HttpBody::size_hint)
    }
}
