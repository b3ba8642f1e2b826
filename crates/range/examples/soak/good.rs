//! A client that does nothing wrong: it must be answered all the while.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::Targets;
use crate::raw::{exchange, request};
use crate::speech::{say, start_session};

/// How long the server may take for it, with everything else going on: a second or two on a quick
/// machine, and slow ones have to pass as well. How long it took at most is among the figures.
const PATIENCE: Duration = Duration::from_secs(15);

#[derive(Debug, Default)]
pub(crate) struct Good {
    session: Option<String>,
    /// The longest that it took to be answered by both servers.
    pub(crate) slowest: Duration,
    pub(crate) answered: u64,
    /// How often it took more than a second.
    pub(crate) late: u64,
}

impl Good {
    /// Uses both servers once.
    pub(crate) async fn use_both(&mut self, targets: &Targets) -> Result<(), String> {
        let began = Instant::now();
        let used = tokio::time::timeout(PATIENCE, async {
            self.use_mcp(targets).await?;
            use_a2a(targets).await
        });
        match used.await {
            Ok(Ok(())) => {
                self.slowest = self.slowest.max(began.elapsed());
                self.answered += 1;
                self.late += u64::from(began.elapsed() > Duration::from_secs(1));
                Ok(())
            }
            Ok(Err(problem)) => Err(problem),
            Err(_) => Err("a good client was not answered in time".to_owned()),
        }
    }

    async fn use_mcp(&mut self, targets: &Targets) -> Result<(), String> {
        let call = request(
            &json!(1),
            "tools/call",
            &json!({"name": "plain", "arguments": {"text": "hello"}}),
        );
        // A flood may have ended our session, or the connection before the request was read (status 0); then we start
        // anew, once, as clients do.
        for _ in 0..2 {
            let session = match self.session.take() {
                Some(session) => session,
                None => start_session(targets, &json!({}))
                    .await
                    .ok_or("no session")?,
            };
            let answer = say(targets, &session, &call).await;
            if matches!(answer.status, 0 | 404) {
                continue;
            }
            self.session = Some(session);
            let told = &answer.json()["result"]["content"][0]["text"];
            return if told == "hello" {
                Ok(())
            } else {
                Err(format!("a good MCP client got {answer:?}"))
            };
        }
        Err("sessions or connections end before they are used".to_owned())
    }
}

async fn use_a2a(targets: &Targets) -> Result<(), String> {
    let card =
        "GET /.well-known/agent-card.json HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
    let answer = exchange(targets.a2a, card.as_bytes()).await;
    if answer.json()["name"] == "Helper" {
        Ok(())
    } else {
        Err(format!("a good A2A client got {answer:?}"))
    }
}
