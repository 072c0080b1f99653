//! Capabilities of Linux that a task of root does not get: those that lead out of its namespaces. Called between clone and
//! exec, so it only makes raw calls on locals.
#![expect(unsafe_code, reason = "this file is a border to the kernel; every call states why it is sound")]

use std::ffi::c_int;

/// Layout of the header and of each set that `capget` and `capset` use.
pub(super) const VERSION_3: u32 = 0x2008_0522;

#[repr(C)]
pub(super) struct Header {
    pub(super) version: u32,
    pub(super) pid: c_int,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Sets {
    pub(super) effective: u32,
    pub(super) permitted: u32,
    pub(super) inheritable: u32,
}

/// What root keeps, by number: what containers usually have, so that packages are installed, owners changed, users switched,
/// low ports bound and packets sent. Without `MKNOD`, because a device of the machine is its disk.
const KEPT: [u32; 13] = [
    0,  // CHOWN
    1,  // DAC_OVERRIDE
    3,  // FOWNER
    4,  // FSETID
    5,  // KILL
    6,  // SETGID
    7,  // SETUID
    8,  // SETPCAP
    10, // NET_BIND_SERVICE
    13, // NET_RAW
    18, // SYS_CHROOT
    29, // AUDIT_WRITE
    31, // SETFCAP
];

const KEPT_MASK: u32 = {
    let (mut mask, mut at) = (0, 0);
    while at < KEPT.len() {
        mask |= 1 << KEPT[at];
        at += 1;
    }
    mask
};

/// Capabilities that a kernel may have.
const MOST: u32 = 64;

/// Takes every other capability from the running process and all that it will ever execute. Returns -1 and sets `errno` if
/// that is not possible.
pub(crate) fn give_up() -> c_int {
    // SAFETY: raw calls; header and sets have the layout of version 3, which is two sets, and outlive the calls.
    unsafe {
        for capability in (0..MOST).filter(|number| *number >= 32 || KEPT_MASK & (1 << *number) == 0) {
            let known = libc::prctl(libc::PR_CAPBSET_READ, capability, 0, 0, 0);
            // The numbers have no gaps: this one is newer than the kernel.
            if known < 0 {
                break;
            }
            if known > 0 && libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) < 0 {
                return -1;
            }
        }
        libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        let mut header = Header { version: VERSION_3, pid: 0 };
        let mut sets = [Sets::default(); 2];
        if libc::syscall(libc::SYS_capget, &raw mut header, sets.as_mut_ptr()) < 0 {
            return -1;
        }
        let [low, high] = &mut sets;
        // An inherited one would come back with the next program.
        *low = Sets {
            effective: low.effective & KEPT_MASK,
            permitted: low.permitted & KEPT_MASK,
            inheritable: low.inheritable & KEPT_MASK,
        };
        *high = Sets::default();
        if libc::syscall(libc::SYS_capset, &raw mut header, sets.as_ptr()) < 0 { -1 } else { 0 }
    }
}
