//! Keeps the log short: copies it into the database beside the writer, so that nobody waits while that is done.
//!
//! SQLite would do it in the middle of a commit, and sync the database there. Here a thread of its own does, while the
//! writer goes on. What was written meanwhile is little, and the writer copies it: only when all of the log is copied
//! does the next transaction begin it anew.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::JoinHandle;

use rusqlite::Connection;
use rusqlite::wal::CheckpointMode;

use super::connection;
use super::error::translate;
use crate::error::{Result, StoreError};

/// How many pages the log may have before it is copied. SQLite would say a thousand, after which the same pages of an
/// index are copied again and again.
pub(super) const LOG_PAGES: usize = 8_192;

/// How many times as many it may have before the writer copies all of it, whatever the thread does.
const TOO_MANY: usize = 4;

/// Nobody copies.
const IDLE: u8 = 0;
/// The thread copies.
const COPYING: u8 = 1;
/// The thread has copied what it found; the rest is for the writer.
const COPIED: u8 = 2;

/// What the writer does about its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CheckpointStep {
    Nothing,
    /// Has the thread copy it.
    Ask,
    /// Copies what is left.
    Copy,
}

/// By how many pages the log has, how many it may have, and how far the thread is.
fn step(pages: usize, enough: usize, progress: u8) -> CheckpointStep {
    match progress {
        _ if pages < enough => CheckpointStep::Nothing,
        IDLE => CheckpointStep::Ask,
        COPYING if pages < TOO_MANY * enough => CheckpointStep::Nothing,
        _ => CheckpointStep::Copy,
    }
}

/// The log of a database, as the writer sees it.
#[derive(Debug)]
pub(super) struct WriteAheadLog {
    /// Pages that it has since the last commit.
    pages: Arc<AtomicUsize>,
    /// How many it may have before it is copied.
    enough: usize,
    progress: Arc<AtomicU8>,
    /// None when it ends.
    asks: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl WriteAheadLog {
    /// Watches the log of the writer's connection, from now on the only one who has it copied.
    pub(super) fn of(writer: &mut Connection, path: PathBuf, enough: usize) -> Result<Self> {
        let pages = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&pages);
        let see = move |_: &mut rusqlite::hooks::Wal, pages: std::ffi::c_int| {
            seen.store(usize::try_from(pages).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        };
        // In place of SQLite's own, which copies when a thousand pages are there.
        writer
            .wal_hook(Some(see))
            .map_err(|error| translate(&error))?;
        let progress = Arc::new(AtomicU8::new(IDLE));
        let (asks, asked) = mpsc::sync_channel(1);
        let told = Arc::clone(&progress);
        let thread = std::thread::Builder::new()
            .name("store-log".to_owned())
            .spawn(move || copy_when_asked(&path, &asked, &told))
            .map_err(|error| {
                StoreError::Unavailable(format!("no thread can be started: {error}"))
            })?;
        Ok(Self {
            pages,
            enough,
            progress,
            asks: Some(asks),
            thread: Some(thread),
        })
    }

    /// Called after each commit of the writer.
    pub(super) fn keep_short(&self, writer: &Connection) {
        let pages = self.pages.load(Ordering::Relaxed);
        match step(pages, self.enough, self.progress.load(Ordering::Acquire)) {
            CheckpointStep::Nothing => {}
            CheckpointStep::Ask => {
                self.progress.store(COPYING, Ordering::Release);
                let asked = self.asks.as_ref().map(|asks| asks.try_send(()));
                if !matches!(asked, Some(Ok(()))) {
                    self.progress.store(COPIED, Ordering::Release);
                }
            }
            CheckpointStep::Copy => {
                copy(writer);
                // One that still copies says so itself when it is done.
                let _ = self.progress.compare_exchange(
                    COPIED,
                    IDLE,
                    Ordering::AcqRel,
                    Ordering::Relaxed,
                );
            }
        }
    }
}

impl Drop for WriteAheadLog {
    fn drop(&mut self) {
        // The thread ends, and with it its connection: the last to be closed is the writer's, which copies all of the log.
        drop(self.asks.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn copy_when_asked(path: &std::path::Path, asked: &Receiver<()>, progress: &AtomicU8) {
    let mut kept = None;
    for () in asked {
        let opened = match kept.take() {
            Some(connection) => Ok(connection),
            None => connection::copier(path),
        };
        match opened {
            // One that failed may be of a file that is gone; the next one is opened anew.
            Ok(connection) => kept = copy(&connection).then_some(connection),
            Err(error) => tracing::debug!(%error, "the log of the database cannot be opened"),
        }
        progress.store(COPIED, Ordering::Release);
    }
}

/// Copies as much as can be copied without waiting for anybody. What cannot be copied stays in the log, and nothing is lost.
fn copy(connection: &Connection) -> bool {
    let copied = connection.wal_checkpoint_v2(None::<&str>, CheckpointMode::PASSIVE);
    if let Err(error) = &copied {
        tracing::debug!(%error, "the log of the database could not be copied");
    }
    copied.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_copies_first_and_the_writer_what_is_left() {
        assert_eq!(step(99, 100, IDLE), CheckpointStep::Nothing);
        assert_eq!(step(99, 100, COPIED), CheckpointStep::Nothing);
        assert_eq!(step(100, 100, IDLE), CheckpointStep::Ask);
        assert_eq!(step(399, 100, COPYING), CheckpointStep::Nothing);
        assert_eq!(step(101, 100, COPIED), CheckpointStep::Copy);
        assert_eq!(step(400, 100, COPYING), CheckpointStep::Copy);
    }

    /// A log that is never begun anew would have all that was written: fifty times what it may have.
    #[test]
    fn the_log_stays_short_while_much_is_written() {
        const ENOUGH: usize = 100;
        const EACH: usize = 10;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        let mut writer = connection::writer(Some(&path)).unwrap();
        let log = WriteAheadLog::of(&mut writer, path, ENOUGH).unwrap();
        writer.execute_batch("CREATE TABLE t (bytes BLOB)").unwrap();
        let insert = format!("INSERT INTO t VALUES (zeroblob({}))", EACH * 4096);
        let (mut longest, mut before, mut began_anew) = (0, 0, 0);
        for _ in 0..50 * ENOUGH / EACH {
            writer.execute(&insert, []).unwrap();
            let pages = log.pages.load(Ordering::Relaxed);
            began_anew += usize::from(pages < before);
            (longest, before) = (longest.max(pages), pages);
            log.keep_short(&writer);
        }
        assert!(longest <= (TOO_MANY + 1) * ENOUGH, "{longest} pages");
        assert!(began_anew >= 50 / (TOO_MANY + 2), "{began_anew} times");
    }
}
