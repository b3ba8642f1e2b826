//! For callers that block: their requests run on a thread of their own, and the caller waits for it.

use std::future::Future;
use std::sync::mpsc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use crate::client::ClientError;

/// Runs the work of a [`Client`](crate::client::Client) for code that is not asynchronous.
///
/// It may be used and dropped anywhere, on the threads of another runtime too; those are blocked
/// meanwhile, as the caller wants it.
#[derive(Debug)]
pub struct Blocking {
    /// Always there until it is dropped.
    runtime: Option<Runtime>,
}

impl Blocking {
    /// Starts the thread, which ends when this is dropped.
    ///
    /// # Errors
    ///
    /// Returns an error when the system has no thread left.
    pub fn new() -> Result<Self, ClientError> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("http")
            .enable_io()
            .enable_time()
            .build()
            .map_err(|error| ClientError::Setup(error.to_string()))?;
        Ok(Self {
            runtime: Some(runtime),
        })
    }

    /// Waits for what the work comes to.
    ///
    /// # Errors
    ///
    /// Returns the error of the work, or [`ClientError::TooSlow`] when it takes longer than `time`.
    pub fn wait<T: Send + 'static>(
        &self,
        time: Duration,
        work: impl Future<Output = Result<T, ClientError>> + Send + 'static,
    ) -> Result<T, ClientError> {
        let ended = || ClientError::Broken("the work ended before its time".to_owned());
        let Some(runtime) = &self.runtime else {
            return Err(ended());
        };
        let (sender, receiver) = mpsc::sync_channel(1);
        runtime.spawn(async move {
            let result = tokio::time::timeout(time, work).await;
            // The caller waits until it gets this.
            let _ = sender.send(result.unwrap_or(Err(ClientError::TooSlow)));
        });
        // Not the receiver of an asynchronous channel: that one refuses to block a thread of a runtime.
        receiver.recv().unwrap_or_else(|_| Err(ended()))
    }
}

impl Drop for Blocking {
    fn drop(&mut self) {
        // Waiting for the thread would panic on a thread of another runtime.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    async fn soon() -> Result<u8, ClientError> {
        tokio::time::sleep(Duration::from_millis(2)).await;
        Ok(7)
    }

    #[test]
    fn work_is_waited_for_but_not_for_ever() {
        let blocking = Blocking::new().unwrap();
        assert_eq!(blocking.wait(LONG, soon()).unwrap(), 7);
        let never = std::future::pending::<Result<u8, ClientError>>();
        let slow = blocking.wait(Duration::from_millis(20), never);
        assert!(matches!(slow, Err(ClientError::TooSlow)), "{slow:?}");
        // Others go on meanwhile and afterwards.
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert_eq!(blocking.wait(LONG, soon()).unwrap(), 7));
            }
        });
    }

    #[tokio::test]
    async fn it_works_and_ends_within_another_runtime() {
        let blocking = Blocking::new().unwrap();
        assert_eq!(blocking.wait(LONG, soon()).unwrap(), 7);
        drop(blocking);
    }

    #[test]
    fn work_that_panics_is_an_error() {
        let blocking = Blocking::new().unwrap();
        let broken = blocking.wait(LONG, async {
            let nobody: Option<u8> = None;
            Ok(nobody.expect("on purpose"))
        });
        assert!(matches!(broken, Err(ClientError::Broken(_))), "{broken:?}");
        assert_eq!(blocking.wait(LONG, soon()).unwrap(), 7);
    }
}
