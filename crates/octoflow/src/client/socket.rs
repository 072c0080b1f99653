//! HTTP over the unix socket of a server on this machine, as a transport of the HTTP client. The kernel identifies us,
//! so no token is needed.

use std::{
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    time::Duration,
};

use octoflow_server::connect_local;
use ureq::{
    Agent, Error,
    config::Config,
    unversioned::{
        resolver::DefaultResolver,
        transport::{Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport},
    },
};

/// Placeholder address in requests; a unix socket has none.
pub(super) const URL: &str = "http://127.0.0.1";

/// Makes an agent whose connections all go to this socket.
pub(super) fn agent(config: Config, socket: &Path) -> Agent {
    Agent::with_parts(config, SocketConnector(socket.to_owned()), DefaultResolver::default())
}

#[derive(Debug)]
struct SocketConnector(PathBuf);

impl Connector for SocketConnector {
    type Out = SocketTransport;

    fn connect(&self, details: &ConnectionDetails<'_>, _: Option<()>) -> Result<Option<SocketTransport>, Error> {
        let stream = connect_local(&self.0).map_err(|error| match error.kind() {
            // For the caller both mean that there is no server.
            io::ErrorKind::NotFound => io::Error::new(io::ErrorKind::ConnectionRefused, error),
            _ => error,
        })?;
        let config = details.config;
        let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
        Ok(Some(SocketTransport { stream, buffers }))
    }
}

#[derive(Debug)]
struct SocketTransport {
    stream: UnixStream,
    buffers: LazyBuffers,
}

impl Transport for SocketTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        let timeout = timeout.for_write();
        self.stream.set_write_timeout(within(timeout))?;
        let output = &self.buffers.output()[..amount];
        self.stream.write_all(output).map_err(|error| late(error, timeout))
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        let timeout = timeout.for_read();
        self.stream.set_read_timeout(within(timeout))?;
        let input = self.buffers.input_append_buf();
        let amount = loop {
            match self.stream.read(input) {
                // A signal of ours, such as a resized terminal.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read.map_err(|error| late(error, timeout))?,
            }
        };
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        // Nothing may be readable between two answers: bytes, an end or an error all mean that it cannot be reused.
        let looked = self.stream.set_nonblocking(true).and_then(|()| self.stream.read(&mut [0]));
        let quiet = matches!(looked, Err(error) if error.kind() == io::ErrorKind::WouldBlock);
        self.stream.set_nonblocking(false).is_ok() && quiet
    }
}

fn within(timeout: NextTimeout) -> Option<Duration> {
    timeout.not_zero().map(|left| *left)
}

fn late(error: io::Error, timeout: NextTimeout) -> Error {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Error::Timeout(timeout.reason),
        _ => error.into(),
    }
}
