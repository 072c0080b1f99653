//! A SQLite file layer (VFS) for fault injection: it makes one call, or all of them, fail as a disk does, and records
//! every write, so that a test can reconstruct what a power cut would leave. For tests only: once `install` was called
//! it replaces the VFS of the whole process.
#![expect(unsafe_code, reason = "the library takes its file layer as a table of C functions; there is no other way in")]

use std::{
    collections::{BTreeMap, HashMap},
    ffi::{CStr, c_char, c_int, c_void},
    fs,
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use rusqlite::ffi;

/// Kinds of injected failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// `EIO`: the state of the disk is unknown.
    Broken,
    /// `ENOSPC`: the disk is full.
    Full,
    /// `EINTR`: a signal interrupted the call; the library retries such a write by itself.
    Interrupted,
}

/// Bytes of the header in front of every page in the log.
const FRAME_HEADER: usize = 24;

/// Which of the unsynced writes survive a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tear {
    /// None of them.
    None,
    /// All of them.
    All,
    /// All of them, but only half of the last one.
    Last,
    /// Only the last: the disk reordered the writes.
    OnlyLast,
}

#[derive(Clone, Debug)]
enum Event {
    /// Content of the file when it was first opened.
    Found(PathBuf, Vec<u8>),
    Write(PathBuf, usize, Vec<u8>),
    Truncate(PathBuf, usize),
    Sync(PathBuf),
    Delete(PathBuf),
    Mark(u64),
}

/// The fault-injecting disk of this process.
#[derive(Default)]
pub struct Disk {
    state: Mutex<State>,
    /// True if the next write of the library fails once with `EINTR`.
    interrupt: AtomicBool,
    interrupts: AtomicU64,
}

#[derive(Default)]
struct State {
    /// Calls so far that could fail.
    calls: u64,
    once: Option<(u64, Fault)>,
    always: Option<Fault>,
    recording: bool,
    log: Vec<Event>,
    /// The real file behind each file of the library, by address.
    files: HashMap<usize, File>,
}

// The fields are addresses of tables that the library never frees.
struct File {
    real: &'static ffi::sqlite3_io_methods,
    path: Option<PathBuf>,
}

struct Layer {
    real: *mut ffi::sqlite3_vfs,
    methods: OnceLock<&'static ffi::sqlite3_io_methods>,
}

// SAFETY: the pointer is to the library's own layer, which lives as long as the process and may be used by any thread.
unsafe impl Sync for Layer {}
// SAFETY: as above.
unsafe impl Send for Layer {}

static DISK: OnceLock<Disk> = OnceLock::new();
static LAYER: OnceLock<Layer> = OnceLock::new();

/// Installs the layer below every database that is opened from now on in this process.
pub fn install() -> &'static Disk {
    let disk = DISK.get_or_init(Disk::default);
    LAYER.get_or_init(|| {
        // SAFETY: without a name the library answers with its default layer, which is never freed. The copy differs in
        // the functions below only, and is leaked, because the library keeps the pointer.
        unsafe {
            let real = ffi::sqlite3_vfs_find(std::ptr::null());
            assert!(!real.is_null(), "the library has a file layer");
            if let Some(replace) = (*real).xSetSystemCall {
                let call: unsafe extern "C" fn(c_int, *const c_void, usize) -> isize = write;
                let call = std::mem::transmute::<
                    unsafe extern "C" fn(c_int, *const c_void, usize) -> isize,
                    unsafe extern "C" fn(),
                >(call);
                replace(real, c"write".as_ptr(), Some(call));
                let call: unsafe extern "C" fn(c_int, *const c_void, usize, i64) -> isize = write_at;
                let call = std::mem::transmute::<
                    unsafe extern "C" fn(c_int, *const c_void, usize, i64) -> isize,
                    unsafe extern "C" fn(),
                >(call);
                // Which of them the library calls depends on how it was built.
                replace(real, c"pwrite".as_ptr(), Some(call));
                replace(real, c"pwrite64".as_ptr(), Some(call));
            }
            let own = Box::leak(Box::new(std::ptr::read(real)));
            own.zName = c"octoflow-faults".as_ptr();
            own.pNext = std::ptr::null_mut();
            own.xOpen = Some(open);
            own.xDelete = Some(delete);
            assert_eq!(ffi::sqlite3_vfs_register(own, 1), ffi::SQLITE_OK, "the layer is taken");
            Layer { real, methods: OnceLock::new() }
        }
    });
    disk
}

impl Disk {
    /// Returns the number of calls so far that could fail.
    pub fn calls(&self) -> u64 {
        self.lock().calls
    }

    /// Makes only the `n`-th call from now on fail, counted from one.
    pub fn fail_nth(&self, n: u64, fault: Fault) {
        let mut state = self.lock();
        state.once = Some((state.calls + n, fault));
    }

    /// Returns whether the call that was to fail has happened.
    pub fn has_failed(&self) -> bool {
        self.lock().once.is_none()
    }

    /// Returns how many writes were interrupted so far.
    pub fn interrupts(&self) -> u64 {
        self.interrupts.load(Ordering::Relaxed)
    }

    /// Makes every call fail, or none.
    pub fn fail_all(&self, fault: Option<Fault>) {
        let mut state = self.lock();
        (state.always, state.once) = (fault, None);
    }

    /// Starts recording writes to all files that are opened from now on.
    pub fn record(&self) {
        let mut state = self.lock();
        (state.recording, state.log) = (true, Vec::new());
    }

    /// Records that a commit was acknowledged.
    pub fn mark(&self, number: u64) {
        self.note(Event::Mark(number));
    }

    /// Returns the number of points in time at which the power could be cut.
    pub fn moments(&self) -> usize {
        self.lock().log.len() + 1
    }

    /// Writes the files as a power cut at that point would leave them into a directory. Returns the last number marked
    /// before; `None` if this kind of tear gives the same result as the point before.
    pub fn cut_power(&self, moment: usize, tear: Tear, to: &Path) -> Option<Option<u64>> {
        let state = self.lock();
        let log = &state.log[..moment];
        let tears = matches!(log.last(), Some(Event::Write(..) | Event::Truncate(..)));
        if tear != Tear::None && !tears {
            return None;
        }
        let mut marked = None;
        let mut durable: BTreeMap<&Path, Vec<u8>> = BTreeMap::new();
        let mut pending: Vec<(&Path, &Event)> = Vec::new();
        for event in log {
            match event {
                Event::Found(path, content) => drop(durable.insert(path, content.clone())),
                Event::Write(path, ..) | Event::Truncate(path, _) => pending.push((path, event)),
                Event::Sync(path) => {
                    let file = durable.entry(path).or_default();
                    pending.iter().filter(|(of, _)| of == path).for_each(|(_, event)| put(file, event, 1));
                    pending.retain(|(of, _)| of != path);
                }
                Event::Delete(path) => {
                    durable.remove(path.as_path());
                    pending.retain(|(of, _)| of != path);
                }
                Event::Mark(number) => marked = Some(*number),
            }
        }
        let last = pending.len().saturating_sub(1);
        for (at, (path, event)) in pending.iter().enumerate() {
            let part = match tear {
                Tear::None => 0,
                Tear::All => 1,
                Tear::Last if at == last => 2,
                Tear::Last => 1,
                Tear::OnlyLast => u8::from(at == last),
            };
            if part > 0 {
                put(durable.entry(path).or_default(), event, part.into());
            }
        }
        for (path, content) in durable {
            let name = path.file_name().unwrap_or(path.as_os_str());
            fs::write(to.join(name), content).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
        Some(marked)
    }

    /// Returns the pages of the largest transaction written to a log since recording started.
    pub fn largest_transaction(&self) -> usize {
        let (mut largest, mut pages) = (0, 0);
        for event in &self.lock().log {
            let Event::Write(path, _, bytes) = event else { continue };
            // The header of a page; its second number tells whether the page is the last of a transaction.
            if bytes.len() == FRAME_HEADER && path.to_string_lossy().ends_with("-wal") {
                pages += 1;
                if bytes[4..8] != [0; 4] {
                    largest = largest.max(pages);
                    pages = 0;
                }
            }
        }
        largest
    }

    /// Returns the fault that this call must fail with, if any.
    fn next(&self) -> Option<Fault> {
        let mut state = self.lock();
        state.calls += 1;
        match state.once {
            Some((at, fault)) if at == state.calls => {
                state.once = None;
                Some(fault)
            }
            _ => state.always,
        }
    }

    fn note(&self, event: Event) {
        let mut state = self.lock();
        if state.recording {
            state.log.push(event);
        }
    }

    fn file(&self, file: *mut ffi::sqlite3_file) -> (&'static ffi::sqlite3_io_methods, Option<PathBuf>) {
        let state = self.lock();
        let known = state.files.get(&(file as usize)).expect("every file was opened through this layer");
        (known.real, known.path.clone())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Applies a write or a truncation, or the first `1 / part` of a write.
fn put(file: &mut Vec<u8>, event: &Event, part: usize) {
    match event {
        Event::Write(_, at, bytes) => {
            let bytes = &bytes[..bytes.len() / part];
            if file.len() < at + bytes.len() {
                file.resize(at + bytes.len(), 0);
            }
            file[*at..at + bytes.len()].copy_from_slice(bytes);
        }
        Event::Truncate(_, size) => file.resize(*size, 0),
        _ => {}
    }
}

fn disk() -> &'static Disk {
    DISK.get().expect("the layer was installed")
}

fn layer() -> &'static Layer {
    LAYER.get().expect("the layer was installed")
}

unsafe extern "C" fn open(
    _: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    let (disk, layer) = (disk(), layer());
    // SAFETY: the arguments are the library's own and go to its own layer; `file` is valid for as long as it is open,
    // and its table of functions is replaced by a copy that is never freed.
    unsafe {
        let there = !name.is_null() && Path::new(&*CStr::from_ptr(name).to_string_lossy()).exists();
        // A file that is there can be opened on a full disk.
        if disk.next().is_some_and(|fault| fault != Fault::Full || !there) {
            (*file).pMethods = std::ptr::null();
            return ffi::SQLITE_CANTOPEN;
        }
        let Some(real_open) = (*layer.real).xOpen else { return ffi::SQLITE_ERROR };
        let opened = real_open(layer.real, name, file, flags, out);
        if opened != ffi::SQLITE_OK || (*file).pMethods.is_null() {
            return opened;
        }
        let real: &'static ffi::sqlite3_io_methods = &*(*file).pMethods;
        let own = layer.methods.get_or_init(|| {
            let mut own = std::ptr::read(real);
            own.xClose = Some(close);
            own.xWrite = Some(write_file);
            own.xTruncate = Some(truncate);
            own.xSync = Some(sync);
            Box::leak(Box::new(own))
        });
        (*file).pMethods = *own;
        let path = (!name.is_null()).then(|| PathBuf::from(CStr::from_ptr(name).to_string_lossy().into_owned()));
        if let Some(path) = &path {
            let known = |event: &Event| matches!(event, Event::Found(of, _) if of == path);
            let mut state = disk.lock();
            let deleted = |event: &Event| matches!(event, Event::Delete(of) if of == path);
            let found = state.log.iter().rposition(known);
            let gone = state.log.iter().rposition(deleted);
            if state.recording && (found.is_none() || gone > found) {
                let content = fs::read(path).unwrap_or_default();
                state.log.push(Event::Found(path.clone(), content));
            }
        }
        disk.lock().files.insert(file as usize, File { real, path });
        opened
    }
}

unsafe extern "C" fn delete(_: *mut ffi::sqlite3_vfs, name: *const c_char, sync_dir: c_int) -> c_int {
    let (disk, layer) = (disk(), layer());
    // SAFETY: as in `open`.
    unsafe {
        let Some(real) = (*layer.real).xDelete else { return ffi::SQLITE_ERROR };
        let deleted = real(layer.real, name, sync_dir);
        if deleted == ffi::SQLITE_OK {
            disk.note(Event::Delete(PathBuf::from(CStr::from_ptr(name).to_string_lossy().into_owned())));
        }
        deleted
    }
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    let (real, _) = disk().file(file);
    disk().lock().files.remove(&(file as usize));
    // SAFETY: the file is as the library's own layer left it, except for its table, which is put back.
    unsafe {
        (*file).pMethods = real;
        real.xClose.map_or(ffi::SQLITE_OK, |close| close(file))
    }
}

unsafe extern "C" fn write_file(file: *mut ffi::sqlite3_file, from: *const c_void, size: c_int, at: i64) -> c_int {
    let (real, path) = disk().file(file);
    match disk().next() {
        Some(Fault::Broken) => return ffi::SQLITE_IOERR_WRITE,
        Some(Fault::Full) => return ffi::SQLITE_FULL,
        Some(Fault::Interrupted) => disk().interrupt.store(true, Ordering::Release),
        None => {}
    }
    // SAFETY: the library hands in `size` bytes at `from`.
    let (written, bytes) = unsafe {
        let bytes = std::slice::from_raw_parts(from.cast::<u8>(), usize::try_from(size).unwrap_or_default()).to_vec();
        (real.xWrite.map_or(ffi::SQLITE_ERROR, |write| write(file, from, size, at)), bytes)
    };
    if let (ffi::SQLITE_OK, Some(path)) = (written, path) {
        disk().note(Event::Write(path, usize::try_from(at).unwrap_or_default(), bytes));
    }
    written
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, size: i64) -> c_int {
    let (real, path) = disk().file(file);
    if disk().next().is_some() {
        return ffi::SQLITE_IOERR_TRUNCATE;
    }
    // SAFETY: the file is open, and the function is the one its own layer gave it.
    let cut = unsafe { real.xTruncate.map_or(ffi::SQLITE_ERROR, |truncate| truncate(file, size)) };
    if let (ffi::SQLITE_OK, Some(path)) = (cut, path) {
        disk().note(Event::Truncate(path, usize::try_from(size).unwrap_or_default()));
    }
    cut
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, flags: c_int) -> c_int {
    let (real, path) = disk().file(file);
    if disk().next().is_some() {
        return ffi::SQLITE_IOERR_FSYNC;
    }
    // SAFETY: as in `truncate`.
    let synced = unsafe { real.xSync.map_or(ffi::SQLITE_ERROR, |sync| sync(file, flags)) };
    if let (ffi::SQLITE_OK, Some(path)) = (synced, path) {
        disk().note(Event::Sync(path));
    }
    synced
}

/// Makes a write of the library fail once with `EINTR`, as if a signal had arrived.
fn is_interrupted() -> bool {
    let interrupted = disk().interrupt.swap(false, Ordering::AcqRel);
    if interrupted {
        disk().interrupts.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the address is that of this thread's own error number.
        unsafe { *libc::__errno_location() = libc::EINTR };
    }
    interrupted
}

/// Replaces `pwrite`, which the library calls if it was built with it.
unsafe extern "C" fn write_at(file: c_int, from: *const c_void, size: usize, at: i64) -> isize {
    if is_interrupted() {
        return -1;
    }
    // SAFETY: the arguments are the library's own.
    unsafe { libc::pwrite64(file, from, size, at) }
}

/// Replaces `write`, which the library calls otherwise.
unsafe extern "C" fn write(file: c_int, from: *const c_void, size: usize) -> isize {
    if is_interrupted() {
        return -1;
    }
    // SAFETY: the arguments are the library's own.
    unsafe { libc::write(file, from, size) }
}
