//! The one writer: a thread that takes whatever has arrived into one transaction and syncs it once.
//!
//! While a transaction is being synced, commands arrive; they are all in the next one. Each has a savepoint of its own,
//! so one that fails undoes nothing of the others. Nobody is answered before the commit.

use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, oneshot};

use super::connection::Presence;
use super::error::translate;
use super::session::{SqliteSession, complete};
use crate::error::{Result, StoreError};
use crate::sql::dialect::Dialect;
use crate::sql::session::Work;

/// Commands in one transaction at most, so that the first of them is not kept waiting.
const MAX_GROUP: usize = 512;

/// How long commands are taken in before the transaction is synced, for the same reason.
const MAX_GATHERING: Duration = Duration::from_millis(50);

/// How long a group waits for those who were in the last one: they have just been answered and are about to come back.
/// A sync takes longer, and each group costs one.
const REUNION: Duration = Duration::from_millis(1);

/// How long the thread sleeps while it waits for them.
const NAP: Duration = Duration::from_micros(50);

/// What can be done on the connection.
pub(super) trait Command: Send {
    /// Does it, keeping what comes out.
    fn run(&mut self, session: &mut SqliteSession<'_>) -> Result<()>;

    /// Answers: with what came out, or with an error.
    fn answer(self: Box<Self>, outcome: Result<()>);

    /// Whether nobody waits for it any more. They were told that it was not done, so it is not.
    fn is_abandoned(&self) -> bool;
}

/// Work with somebody who waits for it.
pub(super) struct Transaction<T> {
    pub(super) work: Work<T>,
    pub(super) output: Option<T>,
    pub(super) reply: oneshot::Sender<Result<T>>,
}

impl<T: Send> Command for Transaction<T> {
    fn run(&mut self, session: &mut SqliteSession<'_>) -> Result<()> {
        self.output = Some(complete(&self.work, session)?);
        Ok(())
    }

    fn answer(self: Box<Self>, outcome: Result<()>) {
        let lost = || StoreError::Corrupt("a transaction gave nothing".to_owned());
        let Self { output, reply, .. } = *self;
        // Whoever asked may have gone; what was written stays.
        let _ = reply.send(outcome.and_then(|()| output.ok_or_else(lost)));
    }

    fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }
}

/// A command, and how far it is.
type Done = (Box<dyn Command>, Result<()>);

/// The state of the thread.
pub(super) struct Writer {
    pub(super) connection: Connection,
    pub(super) dialect: std::sync::Arc<Dialect>,
    /// None in memory.
    pub(super) presence: Option<Presence>,
    /// How many commands the last group had.
    pub(super) last_group: usize,
}

impl Writer {
    /// Serves until nobody can send any more.
    pub(super) fn serve(mut self, mut commands: mpsc::Receiver<Box<dyn Command>>) {
        while let Some(first) = commands.blocking_recv() {
            self.group(first, &mut commands);
        }
        // Tells the planner of statements how much there is, for the next time.
        if let Err(error) = self.connection.pragma_update(None, "optimize", 0x10_000) {
            tracing::debug!(%error, "the statistics could not be updated");
        }
    }

    fn group(&mut self, first: Box<dyn Command>, commands: &mut mpsc::Receiver<Box<dyn Command>>) {
        if let Err(error) = self.begin() {
            // Those behind it have waited as long. Were each to wait for the lock in turn, the last would wait for ever.
            while let Ok(behind) = commands.try_recv() {
                behind.answer(Err(error.clone()));
            }
            first.answer(Err(error));
            return;
        }
        let started = Instant::now();
        let mut done: Vec<Done> = Vec::new();
        let mut next = Some(first);
        while let Some(mut command) = next.take() {
            if !command.is_abandoned() {
                let outcome = self.in_savepoint(&mut *command);
                done.push((command, outcome));
            }
            // SQLite undoes a transaction by itself on some errors, such as a full disk.
            if self.connection.is_autocommit() {
                self.one_by_one(done);
                return;
            }
            if done.len() < MAX_GROUP && started.elapsed() < MAX_GATHERING {
                next = self.another(done.len(), started, commands);
            }
        }
        self.last_group = done.len();
        match self.commit() {
            Ok(()) => {
                for (command, outcome) in done {
                    command.answer(outcome);
                }
            }
            Err(error) if done.len() > 1 => {
                tracing::warn!(%error, "a group of writes could not be committed; each is tried alone");
                self.one_by_one(done);
            }
            Err(error) => {
                for (command, outcome) in done {
                    command.answer(outcome.and(Err(error.clone())));
                }
            }
        }
    }

    /// The next command of the group, if there is one. One caller alone is never kept waiting: its groups have one command.
    fn another(
        &self,
        have: usize,
        started: Instant,
        commands: &mut mpsc::Receiver<Box<dyn Command>>,
    ) -> Option<Box<dyn Command>> {
        loop {
            match commands.try_recv() {
                Ok(command) => return Some(command),
                Err(TryRecvError::Empty)
                    if have < self.last_group / 2 && started.elapsed() < REUNION =>
                {
                    std::thread::sleep(NAP);
                }
                Err(_) => return None,
            }
        }
    }

    /// The transaction is undone: runs again, each in a transaction of its own, what had worked.
    fn one_by_one(&mut self, done: Vec<Done>) {
        for (mut command, outcome) in done {
            if command.is_abandoned() {
                continue;
            }
            let outcome = outcome.and_then(|()| self.alone(&mut *command));
            command.answer(outcome);
        }
    }

    fn alone(&mut self, command: &mut dyn Command) -> Result<()> {
        self.begin()?;
        match self.run(command) {
            Ok(()) => self.commit(),
            Err(error) => {
                self.rollback();
                Err(error)
            }
        }
    }

    fn in_savepoint(&mut self, command: &mut dyn Command) -> Result<()> {
        self.sql("SAVEPOINT command")?;
        let outcome = self.run(command).and_then(|()| self.sql("RELEASE command"));
        match outcome {
            Ok(()) => Ok(()),
            Err(error) => {
                if !self.connection.is_autocommit()
                    && self
                        .sql("ROLLBACK TO command")
                        .and_then(|()| self.sql("RELEASE command"))
                        .is_err()
                {
                    // Not even that: the whole transaction is given up, which the caller sees.
                    self.rollback();
                }
                Err(error)
            }
        }
    }

    fn run(&mut self, command: &mut dyn Command) -> Result<()> {
        command.run(&mut SqliteSession {
            connection: &mut self.connection,
            dialect: &self.dialect,
        })
    }

    fn begin(&self) -> Result<()> {
        self.sql("BEGIN IMMEDIATE")
    }

    /// Commits and syncs. What was written to a file that is gone is not durable.
    fn commit(&self) -> Result<()> {
        if let Err(error) = self.sql("COMMIT") {
            self.rollback();
            return Err(error);
        }
        self.presence.as_ref().map_or(Ok(()), Presence::check)
    }

    fn rollback(&self) {
        if !self.connection.is_autocommit()
            && let Err(error) = self.sql("ROLLBACK")
        {
            tracing::warn!(%error, "a transaction could not be undone");
        }
    }

    fn sql(&self, sql: &str) -> Result<()> {
        let run = || self.connection.prepare_cached(sql)?.execute([]);
        run().map(|_| ()).map_err(|error| translate(&error))
    }
}
