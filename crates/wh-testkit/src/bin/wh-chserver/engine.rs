//! The calls into `libchdb.so`. One of the two modules that may use `unsafe`: see
//! `docs/adr/2026-11-29-clickhouse-engine-in-tests.md`.
#![allow(unsafe_code, reason = "a C library is called; ADR 2026-11-29-clickhouse-engine-in-tests")]

use anyhow::{Context, Result, bail, ensure};
use libloading::Library;
use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    path::Path,
};

/// `chdb_result *chdb_query_cmdline(int argc, char **argv)`
type QueryCmdline = unsafe extern "C" fn(c_int, *mut *mut c_char) -> *mut c_void;
/// `const char *chdb_result_error(chdb_result *)`: null when there was none.
type ResultError = unsafe extern "C" fn(*mut c_void) -> *const c_char;

/// Runs clickhouse-local with these arguments (the first is the program's name) until it returns.
pub(crate) fn run(library: &Path, args: &[CString]) -> Result<()> {
    // the engine takes `char **` but only reads it; the list ends with a null as C's argv does
    let mut argv: Vec<*mut c_char> = args.iter().map(|arg| arg.as_ptr().cast_mut()).collect();
    argv.push(std::ptr::null_mut());
    let argc = c_int::try_from(args.len()).context("too many arguments")?;
    // SAFETY: the library's initialisers run here; it is the pinned engine that setup checked, loaded once.
    let library = unsafe { Library::new(library) }.with_context(|| format!("cannot load {}", library.display()))?;
    // SAFETY: the types above are those that the library's header, chdb.h, gives.
    let query = unsafe { library.get::<QueryCmdline>(c"chdb_query_cmdline") }?;
    // SAFETY: as above.
    let error = unsafe { library.get::<ResultError>(c"chdb_result_error") }?;
    // SAFETY: `argv` holds `argc` valid C strings that live in `args` beyond the call.
    let result = unsafe { query(argc, argv.as_mut_ptr()) };
    ensure!(!result.is_null(), "the engine gave no result");
    // SAFETY: `result` came from this library and was not freed.
    let message = unsafe { error(result) };
    let failure = if message.is_null() {
        None
    } else {
        // SAFETY: a C string that lives as long as `result`, which is never freed.
        Some(unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned())
    };
    // its threads may still run: the library stays loaded until the process ends
    std::mem::forget(library);
    match failure {
        Some(message) => bail!(message),
        None => Ok(()),
    }
}

/// Ends the process at once, without running the engine's destructors: some of them wait for each other.
pub(crate) fn exit(code: i32) -> ! {
    // SAFETY: `_exit` has no preconditions and does not return.
    unsafe { libc::_exit(code) }
}
