//! The one writer: a thread that takes whatever has arrived into one transaction and syncs it once.
//!
//! While a transaction is being written and synced, commands arrive; they are all in the next one, and never in this one:
//! were a group open until nobody comes, everybody would end up in the same one, and while it is written nobody would be
//! left to prepare the next. A command that fails has nearly always changed nothing yet; where it has, the transaction is
//! undone and the others run again, each with a savepoint, so that one that fails undoes nothing of the others. Nobody is
//! answered before the commit.

use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::checkpoint::WriteAheadLog;
use super::connection::FileIdentity;
use super::error::translate;
use super::transaction::{SqliteTransaction, complete};
use crate::error::{Result, StoreError};
use crate::sql::dialect::SqlDialect;
use crate::sql::transaction::TransactionWork;

/// Commands in one transaction at most, so that the first of them is not kept waiting.
const MAX_GROUP: usize = 512;

/// How long commands are worked on before the transaction is synced, for the same reason.
const MAX_WORK: Duration = Duration::from_millis(50);

/// How long a group waits for those who were in the last one: they have just been answered and are about to come back.
/// A sync takes longer, and each group costs one.
const REUNION: Duration = Duration::from_millis(1);

/// How long the thread sleeps while it waits for them.
const NAP: Duration = Duration::from_micros(50);

/// What can be done on the connection.
pub(super) trait WriterCommand: Send {
    /// Does it, keeping what comes out.
    fn run(&mut self, session: &mut SqliteTransaction<'_>) -> Result<()>;

    /// Answers: with what came out, or with an error.
    fn answer(self: Box<Self>, outcome: Result<()>);

    /// Whether nobody waits for it any more. They were told that it was not done, so it is not.
    fn is_abandoned(&self) -> bool;
}

/// Work with somebody who waits for it.
pub(super) struct PendingWrite<T> {
    pub(super) work: TransactionWork<T>,
    pub(super) output: Option<T>,
    pub(super) reply: oneshot::Sender<Result<T>>,
}

impl<T: Send> WriterCommand for PendingWrite<T> {
    fn run(&mut self, session: &mut SqliteTransaction<'_>) -> Result<()> {
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
type CommandResult = (Box<dyn WriterCommand>, Result<()>);

/// The state of the thread.
pub(super) struct SqliteWriter {
    /// None in memory. It ends before the connection does.
    pub(super) log: Option<WriteAheadLog>,
    pub(super) connection: Connection,
    pub(super) dialect: std::sync::Arc<SqlDialect>,
    /// None in memory.
    pub(super) presence: Option<FileIdentity>,
    /// How many commands the last group had.
    pub(super) last_group: usize,
}

impl SqliteWriter {
    /// Serves until nobody can send any more.
    pub(super) fn serve(mut self, mut commands: mpsc::Receiver<Box<dyn WriterCommand>>) {
        while let Some(first) = commands.blocking_recv() {
            self.group(first, &mut commands);
            // However it went: what failed and was tried again was written to the log as well.
            if let Some(log) = &self.log {
                log.keep_short(&self.connection);
            }
        }
        // Tells the planner of statements how much there is, for the next time.
        if let Err(error) = self.connection.pragma_update(None, "optimize", 0x10_000) {
            tracing::debug!(%error, "the statistics could not be updated");
        }
    }

    fn group(
        &mut self,
        first: Box<dyn WriterCommand>,
        commands: &mut mpsc::Receiver<Box<dyn WriterCommand>>,
    ) {
        if let Err(error) = self.begin() {
            // Those behind it have waited as long. Were each to wait for the lock in turn, the last would wait for ever.
            while let Ok(behind) = commands.try_recv() {
                behind.answer(Err(error.clone()));
            }
            first.answer(Err(error));
            return;
        }
        let started = Instant::now();
        self.wait_for_others(started, commands);
        let size = MAX_GROUP.min(1 + commands.len());
        let mut done: Vec<CommandResult> = Vec::with_capacity(size);
        let mut next = Some(first);
        while let Some(mut command) = next.take() {
            if !command.is_abandoned() {
                let before = self.connection.total_changes();
                let outcome = self.run(&mut *command);
                let is_half_done =
                    outcome.is_err() && (size == 1 || self.connection.total_changes() != before);
                done.push((command, outcome));
                // SQLite undoes a transaction by itself on some errors, such as a full disk.
                if is_half_done || self.connection.is_autocommit() {
                    self.rollback();
                    self.again(done);
                    return;
                }
            }
            if done.len() < size && started.elapsed() < MAX_WORK {
                next = commands.try_recv().ok();
            }
        }
        self.last_group = done.len();
        self.finish(done);
    }

    /// Commits and answers.
    fn finish(&mut self, done: Vec<CommandResult>) {
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

    /// The transaction is undone, because a command failed when it had changed something: runs again what had worked,
    /// each with a savepoint, so that the next that fails undoes only itself.
    fn again(&mut self, done: Vec<CommandResult>) {
        let (worked, failed): (Vec<CommandResult>, Vec<CommandResult>) =
            done.into_iter().partition(|(_, outcome)| outcome.is_ok());
        for (command, outcome) in failed {
            command.answer(outcome);
        }
        if worked.is_empty() {
            return;
        }
        if let Err(error) = self.begin() {
            for (command, _) in worked {
                command.answer(Err(error.clone()));
            }
            return;
        }
        let mut done: Vec<CommandResult> = Vec::with_capacity(worked.len());
        let mut worked = worked.into_iter();
        while let Some((mut command, _)) = worked.next() {
            if !command.is_abandoned() {
                let outcome = self.in_savepoint(&mut *command);
                done.push((command, outcome));
            }
            if self.connection.is_autocommit() {
                done.extend(worked);
                self.one_by_one(done);
                return;
            }
        }
        self.finish(done);
    }

    /// Waits for those of the last group. One caller alone is never kept waiting: its groups have one command.
    fn wait_for_others(&self, started: Instant, commands: &mpsc::Receiver<Box<dyn WriterCommand>>) {
        while 1 + commands.len() < self.last_group / 2 && started.elapsed() < REUNION {
            std::thread::sleep(NAP);
        }
    }

    /// The transaction is undone: runs again, each in a transaction of its own, what had worked.
    fn one_by_one(&mut self, done: Vec<CommandResult>) {
        for (mut command, outcome) in done {
            if command.is_abandoned() {
                continue;
            }
            let outcome = outcome.and_then(|()| self.alone(&mut *command));
            command.answer(outcome);
        }
    }

    fn alone(&mut self, command: &mut dyn WriterCommand) -> Result<()> {
        self.begin()?;
        match self.run(command) {
            Ok(()) => self.commit(),
            Err(error) => {
                self.rollback();
                Err(error)
            }
        }
    }

    fn in_savepoint(&mut self, command: &mut dyn WriterCommand) -> Result<()> {
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

    fn run(&mut self, command: &mut dyn WriterCommand) -> Result<()> {
        command.run(&mut SqliteTransaction {
            connection: &mut self.connection,
            dialect: &self.dialect,
        })
    }

    fn begin(&self) -> Result<()> {
        self.sql("BEGIN IMMEDIATE")
    }

    /// Commits and syncs. What was written to a file that is gone is not durable, so it is not written: whoever is told that
    /// it was not kept may find the file put back. One that goes away at this very moment is noticed afterwards.
    fn commit(&self) -> Result<()> {
        if let Err(error) = self.is_there().and_then(|()| self.sql("COMMIT")) {
            self.rollback();
            return Err(error);
        }
        self.is_there()
    }

    /// Refuses when the file is not the one that was opened any more.
    fn is_there(&self) -> Result<()> {
        self.presence.as_ref().map_or(Ok(()), FileIdentity::check)
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
