//! Sockets between engine and spawner: bytes with attached descriptors, and the identity of the peer. Nothing here
//! decides anything; every function is one call, its arguments checked by types.
#![expect(unsafe_code, reason = "this file is a border to the kernel; every call states why it is sound")]

use std::{
    io, mem,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
    ptr,
};

use super::checked;

/// Sends bytes without blocking, with descriptors attached to the first of them. Returns how many bytes were sent.
pub(crate) fn send_with(socket: BorrowedFd<'_>, bytes: &[u8], descriptors: &[RawFd]) -> io::Result<usize> {
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut control = [0_u64; 16];
    // SAFETY: every pointer in the message points to a local that outlives the call; the control buffer is aligned
    // and has room for the descriptors, which the assertion checks.
    unsafe {
        let mut message: libc::msghdr = mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        if !descriptors.is_empty() {
            let payload = u32::try_from(size_of_val(descriptors)).expect("a few descriptors");
            let space = libc::CMSG_SPACE(payload) as usize;
            assert!(space <= size_of_val(&control), "at most a few descriptors ride on one message");
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = space;
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(payload) as usize;
            ptr::copy_nonoverlapping(descriptors.as_ptr(), libc::CMSG_DATA(header).cast(), descriptors.len());
        }
        let sent = libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT);
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }
}

/// Waits until the socket is writable again or is broken.
pub(crate) fn wait_for_room(socket: BorrowedFd<'_>) {
    let mut entry = libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
    // SAFETY: one valid entry. The result shows at the next attempt to send.
    unsafe { libc::poll(&raw mut entry, 1, -1) };
}

/// Returns the pid of the process at the other end of a connected socket.
pub(crate) fn peer_pid(socket: BorrowedFd<'_>) -> Option<u32> {
    let mut about = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = libc::socklen_t::try_from(size_of_val(&about)).expect("a small structure");
    // SAFETY: the kernel writes at most `length` bytes into a local of that size.
    let answer = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut about).cast(),
            &raw mut length,
        )
    };
    checked(answer).ok().and_then(|_| u32::try_from(about.pid).ok()).filter(|pid| *pid != 0)
}

pub(crate) fn has_hung_up(socket: BorrowedFd<'_>) -> bool {
    let mut entry = libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLRDHUP, revents: 0 };
    // SAFETY: one valid entry.
    unsafe { libc::poll(&raw mut entry, 1, 0) > 0 }
}

/// Receives bytes and the descriptors attached to them.
pub(crate) fn receive_with(
    socket: BorrowedFd<'_>,
    into: &mut [u8],
    descriptors: &mut impl Extend<Option<OwnedFd>>,
) -> io::Result<usize> {
    let mut part = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let mut control = [0_u64; 16];
    // SAFETY: every pointer in the message points to a local or to `into`, which outlive the call; received
    // descriptors are new and ours.
    unsafe {
        let mut message: libc::msghdr = mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control);
        let got = libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC);
        let got = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
        let mut complete = false;
        let mut header = libc::CMSG_FIRSTHDR(&raw const message);
        while !header.is_null() {
            if (*header).cmsg_level == libc::SOL_SOCKET && (*header).cmsg_type == libc::SCM_RIGHTS {
                let bytes = (*header).cmsg_len - libc::CMSG_LEN(0) as usize;
                let data = libc::CMSG_DATA(header).cast::<RawFd>();
                for index in 0..bytes / size_of::<RawFd>() {
                    descriptors.extend([Some(OwnedFd::from_raw_fd(ptr::read_unaligned(data.add(index))))]);
                    complete = true;
                }
            }
            header = libc::CMSG_NXTHDR(&raw const message, header);
        }
        // One descriptor is attached per message, so a truncated message lost exactly that one, and later ones keep
        // their order.
        if message.msg_flags & libc::MSG_CTRUNC != 0 && !complete {
            descriptors.extend([None]);
        }
        Ok(got)
    }
}
