//! Finds the local user at the other end of a loopback connection. The kernel lists connections for everybody; the list
//! is read only when local users must be told apart, because reading it takes time.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

/// Both ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    pub peer: SocketAddr,
    pub own: SocketAddr,
}

/// Returns the user at the other end, if it is on this machine.
pub(super) fn of(ends: Ends) -> Option<u32> {
    if !ends.peer.ip().to_canonical().is_loopback() {
        return None;
    }
    ["/proc/self/net/tcp", "/proc/self/net/tcp6"].iter().find_map(|list| find(&fs::read_to_string(list).ok()?, ends))
}

/// Returns the user of the socket whose local end is the peer's.
fn find(list: &str, ends: Ends) -> Option<u32> {
    let same = |text: &str, end: SocketAddr| {
        address(text).is_some_and(|(ip, port)| port == end.port() && ip.to_canonical() == end.ip().to_canonical())
    };
    list.lines().skip(1).find_map(|line| {
        let mut columns = line.split_ascii_whitespace();
        let (_, local, remote) = (columns.next()?, columns.next()?, columns.next()?);
        let uid = columns.nth(4)?;
        (same(local, ends.peer) && same(remote, ends.own)).then(|| uid.parse().ok())?
    })
}

/// Parses an address as the kernel prints it: hexadecimal words in native byte order, and the port.
fn address(text: &str) -> Option<(IpAddr, u16)> {
    let (address, port) = text.split_once(':')?;
    let word = |at: usize| u32::from_str_radix(address.get(at * 8..at * 8 + 8)?, 16).ok().map(u32::to_ne_bytes);
    let ip = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for at in 0..4 {
                bytes[at * 4..at * 4 + 4].copy_from_slice(&word(at)?);
            }
            IpAddr::V6(Ipv6Addr::from(bytes))
        }
        _ => return None,
    };
    Some((ip, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use std::{
        net::{TcpListener, TcpStream},
        os::unix::fs::MetadataExt,
    };

    use super::*;

    #[test]
    fn the_kernel_says_who_is_at_the_other_end() {
        let me = fs::metadata("/proc/self").unwrap().uid();
        for bound in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(bound) else {
                assert!(bound.starts_with('['), "every machine has 127.0.0.1");
                continue;
            };
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (stream, peer) = listener.accept().unwrap();
            let ends = Ends { peer, own: stream.local_addr().unwrap() };
            assert_eq!(of(ends), Some(me), "{bound}");
            drop(client);
        }
        let far = Ends { peer: "192.0.2.1:80".parse().unwrap(), own: "127.0.0.1:1".parse().unwrap() };
        assert_eq!(of(far), None);
    }
}
