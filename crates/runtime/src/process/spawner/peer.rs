//! The spawner's end of the connection: sends and receives whole messages without blocking. What the socket does not
//! take at once is queued in order, descriptors together with their message.

use std::{
    collections::VecDeque,
    io::{self, Read},
    os::{
        fd::{AsFd, AsRawFd, OwnedFd, RawFd},
        unix::net::UnixStream,
    },
};

use crate::process::{
    sys,
    wire::{FromSpawner, ToSpawner, frame, next_frame},
};

pub(crate) struct Peer {
    socket: UnixStream,
    inbox: Vec<u8>,
    outbox: VecDeque<QueuedMessage>,
    /// True after the handshake.
    pub(crate) handshaken: bool,
    /// True if the socket was full at the last flush.
    pub(crate) wants_room: bool,
}

/// Result of a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flushed {
    All,
    /// The socket is full.
    NoRoom,
    /// Too many descriptors are in transit already; the next is sent when the other side has received some.
    NoDescriptors,
}

struct QueuedMessage {
    bytes: Vec<u8>,
    sent: usize,
    descriptor: Option<OwnedFd>,
}

/// Bytes read per event, so that one loud engine cannot starve the tasks.
const LOOK: usize = 256 * 1024;

impl Peer {
    pub(crate) fn new(socket: UnixStream) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self { socket, inbox: Vec::new(), outbox: VecDeque::new(), handshaken: false, wants_room: false })
    }

    /// Returns the messages that have arrived completely. `Err` means that the other side is gone.
    pub(crate) fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Vec<ToSpawner>> {
        let mut taken = 0;
        while taken < LOOK {
            match self.socket.read(buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    self.inbox.extend_from_slice(&buffer[..count]);
                    taken += count;
                    if count < buffer.len() {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let mut rest = &self.inbox[..];
        let mut messages = Vec::new();
        while let Some(message) = next_frame(&mut rest).map_err(io::Error::other)? {
            messages.push(message);
        }
        let used = self.inbox.len() - rest.len();
        self.inbox.drain(..used);
        Ok(messages)
    }

    /// Returns whether the other side has closed the connection; unread messages may still be in the socket.
    pub(crate) fn is_gone(&self) -> bool {
        sys::has_hung_up(self.socket.as_fd())
    }

    pub(crate) fn queue(&mut self, message: &FromSpawner, descriptor: Option<OwnedFd>) {
        match self.outbox.back_mut() {
            Some(queued) if descriptor.is_none() && queued.sent == 0 => frame(message, &mut queued.bytes),
            _ => {
                let mut bytes = Vec::with_capacity(256);
                frame(message, &mut bytes);
                self.outbox.push_back(QueuedMessage { bytes, sent: 0, descriptor });
            }
        }
    }

    /// Sends what the socket takes. Returns whether something is left to send.
    pub(crate) fn flush(&mut self) -> io::Result<Flushed> {
        while let Some(queued) = self.outbox.front_mut() {
            let descriptors: Vec<RawFd> = queued.descriptor.iter().map(AsRawFd::as_raw_fd).collect();
            match sys::send_with(self.socket.as_fd(), &queued.bytes[queued.sent..], &descriptors) {
                Ok(count) => {
                    queued.descriptor = None;
                    queued.sent += count;
                    if queued.sent == queued.bytes.len() {
                        self.outbox.pop_front();
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Flushed::NoRoom),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.raw_os_error() == Some(libc::ETOOMANYREFS) => return Ok(Flushed::NoDescriptors),
                Err(error) => return Err(error),
            }
        }
        Ok(Flushed::All)
    }
}

impl AsRawFd for Peer {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}
