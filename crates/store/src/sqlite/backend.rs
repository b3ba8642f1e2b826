//! Hands transactions to the writer or to a reader, and answers in bounded time.

use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::SqliteOptions;
use super::checkpoint::{LOG_PAGES, WriteAheadLog};
use super::connection::{self, FileIdentity};
use super::readers::Readers;
use super::writer::{PendingWrite, SqliteWriter, WriterCommand};
use crate::error::{Result, StoreError};
use crate::migrate;
use crate::sql::dialect::{Flavor, SqlDialect};
use crate::sql::transaction::{TransactionMode, TransactionWork};
use crate::sync::lock;

/// Commands that may wait for the writer. Those who come later wait to be let in.
const QUEUE: usize = 1024;

/// How long a write may take with all the waiting. A disk that stands still must not hold callers for ever.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// One file, one writer, several readers.
#[derive(Debug)]
pub(crate) struct SqliteBackend {
    commands: Mutex<Option<mpsc::Sender<Box<dyn WriterCommand>>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// None in memory, where there is one connection.
    readers: Option<Readers>,
}

impl SqliteBackend {
    pub(crate) async fn open(options: SqliteOptions) -> Result<Self> {
        let dialect = Arc::new(SqlDialect::new(Flavor::Sqlite));
        let (commands, queue) = mpsc::channel(QUEUE);
        let readers = options
            .path
            .as_ref()
            .map(|path| Readers::new(path.clone(), options.readers, Arc::clone(&dialect)));
        let (ready, opened) = oneshot::channel();
        let up_to = options.up_to_version;
        let thread = std::thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || match open(&options, dialect) {
                Ok(writer) => {
                    let _ = ready.send(Ok(()));
                    writer.serve(queue);
                }
                Err(error) => {
                    let _ = ready.send(Err(error));
                }
            })
            .map_err(|error| {
                StoreError::Unavailable(format!("no thread can be started: {error}"))
            })?;
        let backend = Self {
            commands: Mutex::new(Some(commands)),
            thread: Mutex::new(Some(thread)),
            readers,
        };
        opened.await.map_err(|_| stopped())??;
        backend
            .write(Box::new(move |tx| Box::pin(migrate::run(tx, up_to))))
            .await?;
        Ok(backend)
    }

    async fn write<T: Send + 'static>(&self, work: TransactionWork<T>) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let command = PendingWrite {
            work,
            output: None,
            reply,
        };
        self.send(Box::new(command), answer).await
    }

    async fn send<T>(
        &self,
        command: Box<dyn WriterCommand>,
        answer: oneshot::Receiver<Result<T>>,
    ) -> Result<T> {
        let commands = lock(&self.commands).clone();
        let commands =
            commands.ok_or_else(|| StoreError::Unavailable("the store is closed".to_owned()))?;
        let writing = async {
            commands.send(command).await.map_err(|_| stopped())?;
            answer.await.map_err(|_| stopped())?
        };
        tokio::time::timeout(MAX_WAIT, writing).await.map_err(|_| {
            StoreError::Unavailable(format!("no answer within {} s", MAX_WAIT.as_secs()))
        })?
    }

    /// Runs the work in one transaction, which is durable when this returns.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        mode: TransactionMode,
        work: TransactionWork<T>,
    ) -> Result<T> {
        match (mode, &self.readers) {
            (mode, Some(readers)) if mode.is_read() => readers.run(work).await,
            _ => self.write(work).await,
        }
    }

    /// Finishes what is under way and ends.
    pub(crate) async fn close(&self) {
        if let Some(readers) = &self.readers {
            readers.close().await;
        }
        // The thread ends when the last sender is gone and the queue is empty.
        drop(lock(&self.commands).take());
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread {
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
    }
}

fn stopped() -> StoreError {
    StoreError::Unavailable("the writer has stopped".to_owned())
}

fn open(options: &SqliteOptions, dialect: Arc<SqlDialect>) -> Result<SqliteWriter> {
    let mut connection = connection::writer(options.path.as_deref())?;
    if options.max_bytes.is_some() {
        connection::limit(&connection, options.max_bytes)?;
    }
    let presence = options.path.as_deref().map(FileIdentity::of).transpose()?;
    let log = options.path.clone();
    let log = log.map(|path| WriteAheadLog::of(&mut connection, path, LOG_PAGES));
    Ok(SqliteWriter {
        log: log.transpose()?,
        connection,
        dialect,
        presence,
        last_group: 0,
    })
}
