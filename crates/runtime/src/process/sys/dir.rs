//! Reads the names in an open directory, repeatedly, with as few calls as possible.
#![expect(unsafe_code, reason = "this file is a border to the kernel; every call states why it is sound")]

use std::{
    ffi::CStr,
    io,
    os::fd::{AsRawFd, BorrowedFd},
};

use super::checked_long;

/// Returns whether a directory is empty. Changes its position.
pub(crate) fn is_empty(dir: BorrowedFd<'_>) -> io::Result<bool> {
    all(dir, |_| false)
}

/// Returns whether all names in a directory satisfy `wanted`; stops at the first that does not. Changes its position.
pub(crate) fn all(dir: BorrowedFd<'_>, mut wanted: impl FnMut(&CStr) -> bool) -> io::Result<bool> {
    // SAFETY: moves the position of a directory we hold open.
    checked_long(unsafe { libc::lseek64(dir.as_raw_fd(), 0, libc::SEEK_SET) })?;
    let mut bytes = [0_u64; 128];
    loop {
        let filled = read_entries(dir, &mut bytes)?;
        if filled == 0 {
            return Ok(true);
        }
        let mut at = 0;
        while at < filled {
            // SAFETY: the kernel filled the buffer up to `filled` with whole records; names end with a NUL.
            let (name, length) = unsafe {
                let entry = bytes.as_ptr().cast::<u8>().add(at).cast::<libc::dirent64>();
                (CStr::from_ptr((&raw const (*entry).d_name).cast()), usize::from((*entry).d_reclen))
            };
            if name != c"." && name != c".." && !wanted(name) {
                return Ok(false);
            }
            at += length;
        }
    }
}

/// Reads directory entries; returns the number of bytes filled. The buffer consists of words because records are
/// aligned.
pub(super) fn read_entries(dir: BorrowedFd<'_>, into: &mut [u64]) -> io::Result<usize> {
    // SAFETY: the buffer is valid for the length given.
    let got = unsafe { libc::syscall(libc::SYS_getdents64, dir.as_raw_fd(), into.as_mut_ptr(), size_of_val(into)) };
    Ok(usize::try_from(checked_long(got)?).expect("a length is not negative"))
}

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeSet,
        ffi::CString,
        fs::{self, File},
        os::fd::AsFd,
    };

    use super::*;

    #[test]
    fn names_are_read_anew_every_time_however_many_there_are() {
        let dir = tempfile::tempdir().unwrap();
        let open = File::open(dir.path()).unwrap();
        assert!(is_empty(open.as_fd()).unwrap());
        for at in 0..200 {
            fs::write(dir.path().join(format!("a-file-with-a-longer-name-{at}")), "").unwrap();
        }
        for _ in 0..2 {
            assert!(!is_empty(open.as_fd()).unwrap());
            let mut names = BTreeSet::<CString>::new();
            assert!(all(open.as_fd(), |name| names.insert(name.to_owned())).unwrap());
            assert_eq!(names.len(), 200);
        }
    }
}
