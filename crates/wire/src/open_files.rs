//! How many files a process may have open; every connection is one.

/// Raises the limit to this number, if the system lets it. What a shell allows a process is often less than there is room for.
#[cfg(unix)]
pub fn allow_open_files(number: u64) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let wanted = Some(number).min(limit.maximum.or(Some(number)));
    if limit.current.is_some_and(|current| Some(current) < wanted) {
        let raised = Rlimit {
            current: wanted,
            ..limit
        };
        // What cannot be had is made up for: idle connections make way.
        let _ = setrlimit(Resource::Nofile, raised);
    }
}

/// Elsewhere, there is no such limit.
#[cfg(not(unix))]
pub fn allow_open_files(_number: u64) {}
