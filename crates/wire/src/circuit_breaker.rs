//! Circuit breakers: a host that nobody answers at is left alone but for one probe at a time.
//!
//! Failures to connect are counted by host. After a few in a row the circuit of the host is open: requests wait, one of
//! them is let through when the time for a probe has come, and what becomes of it decides for the others. Hosts know
//! nothing of each other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;
use tokio::time::{Instant, timeout_at};
use url::Url;

use crate::client::ClientError;
use crate::sync::lock;

/// Failures in a row after which a circuit is open.
const THRESHOLD: u32 = 3;
/// The wait before the first probe; it doubles with each one that fails.
const FIRST_PROBE: Duration = Duration::from_millis(500);
/// The longest of these waits.
const LONGEST: Duration = Duration::from_secs(10);
/// Hosts that are remembered. Only those that fail are.
const MAX_HOSTS: usize = 1_024;

/// The circuits of all hosts that a client talks to.
#[derive(Debug, Default)]
pub struct CircuitBreaker {
    hosts: Mutex<HashMap<String, Circuit>>,
}

#[derive(Debug)]
struct Circuit {
    /// Failures in a row.
    failures: u32,
    /// When the next probe may be made.
    probe_at: Instant,
    is_probing: bool,
    /// Told when a probe has ended.
    ended: Arc<Notify>,
    /// What the last failure was.
    reason: String,
}

/// A circuit that stayed open for as long as somebody could wait.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct CircuitOpen {
    /// What the last attempt to connect came to.
    pub reason: String,
    /// How many came to nothing in a row.
    pub failures: u32,
}

/// A request that is let through. Whoever drops it without a word has learned nothing.
#[derive(Debug)]
pub struct CircuitPass<'b> {
    breaker: &'b CircuitBreaker,
    host: String,
    is_probe: bool,
}

/// What somebody who wants to connect is to do.
enum CircuitTurn {
    Go {
        is_probe: bool,
    },
    Wait {
        until: Instant,
        /// Made while nothing could happen yet, so that no end is missed.
        ended: OwnedNotified,
    },
}

impl CircuitBreaker {
    /// Waits until a request may go to the host of an address: at once if its circuit is closed.
    ///
    /// # Errors
    ///
    /// Returns an error when the circuit is still open at the deadline.
    pub async fn enter(
        &self,
        url: &Url,
        deadline: Instant,
    ) -> Result<CircuitPass<'_>, CircuitOpen> {
        let host = host_of(url);
        loop {
            let now = Instant::now();
            match self.turn(&host, now) {
                CircuitTurn::Go { is_probe } => {
                    return Ok(CircuitPass {
                        breaker: self,
                        host,
                        is_probe,
                    });
                }
                CircuitTurn::Wait { until, ended } => {
                    if now >= deadline {
                        return Err(self.open(&host));
                    }
                    // Whoever probes may be done before, and may have found the host.
                    let _ = timeout_at(until.min(deadline), ended).await;
                }
            }
        }
    }

    /// Why nobody gets through to the host of an address, if its circuit is open.
    #[must_use]
    pub fn is_open(&self, url: &Url) -> Option<CircuitOpen> {
        let open = self.open(&host_of(url));
        (open.failures >= THRESHOLD).then_some(open)
    }

    fn turn(&self, host: &str, now: Instant) -> CircuitTurn {
        let mut hosts = lock(&self.hosts);
        let Some(circuit) = hosts.get_mut(host).filter(|circuit| circuit.is_open()) else {
            return CircuitTurn::Go { is_probe: false };
        };
        if !circuit.is_probing && circuit.probe_at <= now {
            circuit.is_probing = true;
            return CircuitTurn::Go { is_probe: true };
        }
        let until = if circuit.is_probing {
            // A probe that never ends would leave those who wait without a turn.
            now + LONGEST
        } else {
            circuit.probe_at
        };
        CircuitTurn::Wait {
            until,
            ended: Arc::clone(&circuit.ended).notified_owned(),
        }
    }

    fn open(&self, host: &str) -> CircuitOpen {
        let hosts = lock(&self.hosts);
        let circuit = hosts.get(host);
        CircuitOpen {
            reason: circuit.map_or_else(String::new, |circuit| circuit.reason.clone()),
            failures: circuit.map_or(0, |circuit| circuit.failures),
        }
    }

    fn failed(&self, host: &str, reason: &str, now: Instant) {
        let mut hosts = lock(&self.hosts);
        if hosts.len() >= MAX_HOSTS && !hosts.contains_key(host) {
            // Whoever makes up hosts makes others forget theirs, which only costs them a few attempts.
            hosts.clear();
        }
        let circuit = hosts.entry(host.to_owned()).or_insert_with(|| Circuit {
            failures: 0,
            probe_at: now,
            is_probing: false,
            ended: Arc::default(),
            reason: String::new(),
        });
        circuit.failures = circuit.failures.saturating_add(1);
        let doublings = circuit.failures.saturating_sub(THRESHOLD).min(16);
        let wait = FIRST_PROBE.saturating_mul(1 << doublings).min(LONGEST);
        circuit.probe_at = now + wait;
        circuit.reason = reason.to_owned();
    }

    fn probe_ended(&self, host: &str) {
        if let Some(circuit) = lock(&self.hosts).get_mut(host) {
            circuit.is_probing = false;
            circuit.ended.notify_waiters();
        }
    }
}

impl Circuit {
    fn is_open(&self) -> bool {
        self.failures >= THRESHOLD
    }
}

impl CircuitPass<'_> {
    /// Notes what became of the request. Only whether there was a connection counts.
    pub fn note<T>(self, result: &Result<T, ClientError>) {
        match result {
            Err(ClientError::Connect { reason, .. }) => {
                self.breaker.failed(&self.host, reason, Instant::now());
            }
            // Nothing was tried.
            Err(ClientError::Denied(_) | ClientError::Url { .. } | ClientError::Setup(_)) => {}
            Ok(_)
            | Err(
                ClientError::TooSlow
                | ClientError::Broken(_)
                | ClientError::TooLarge { .. }
                | ClientError::EventTooLarge(_)
                | ClientError::TooManyEvents { .. },
            ) => {
                if let Some(circuit) = lock(&self.breaker.hosts).remove(&self.host) {
                    circuit.ended.notify_waiters();
                }
            }
        }
    }
}

impl Drop for CircuitPass<'_> {
    fn drop(&mut self) {
        if self.is_probe {
            self.breaker.probe_ended(&self.host);
        }
    }
}

/// Ports of one machine are different services.
fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    format!("{host}:{}", url.port_or_known_default().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    fn is_probe(turn: &CircuitTurn) -> Option<bool> {
        match turn {
            CircuitTurn::Go { is_probe } => Some(*is_probe),
            CircuitTurn::Wait { .. } => None,
        }
    }

    fn broken(now: Instant) -> CircuitBreaker {
        let breaker = CircuitBreaker::default();
        for _ in 0..THRESHOLD {
            assert_eq!(is_probe(&breaker.turn("a", now)), Some(false));
            breaker.failed("a", "refused", now);
        }
        breaker
    }

    #[test]
    fn an_open_circuit_lets_one_probe_through() {
        let now = Instant::now();
        let breaker = broken(now);
        assert_eq!(is_probe(&breaker.turn("a", now)), None, "it is open");
        assert_eq!(
            is_probe(&breaker.turn("b", now)),
            Some(false),
            "another host"
        );
        let later = now + FIRST_PROBE;
        assert_eq!(is_probe(&breaker.turn("a", later)), Some(true));
        assert_eq!(
            is_probe(&breaker.turn("a", later + LONGEST)),
            None,
            "one at a time"
        );
        breaker.probe_ended("a");
        assert_eq!(
            is_probe(&breaker.turn("a", later)),
            Some(true),
            "it learned nothing"
        );
    }

    #[test]
    fn probes_come_less_and_less_often() {
        let mut now = Instant::now();
        let breaker = broken(now);
        let waits = [500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000];
        for wait in waits.map(Duration::from_millis) {
            let almost = now + wait - Duration::from_millis(1);
            assert_eq!(is_probe(&breaker.turn("a", almost)), None, "{wait:?}");
            now += wait;
            assert_eq!(is_probe(&breaker.turn("a", now)), Some(true), "{wait:?}");
            breaker.failed("a", "refused", now);
            breaker.probe_ended("a");
        }
    }

    #[tokio::test]
    async fn those_who_wait_go_on_when_the_probe_finds_the_host() {
        let breaker = broken(Instant::now() - FIRST_PROBE);
        {
            let mut hosts = lock(&breaker.hosts);
            let circuit = hosts.remove("a").unwrap();
            hosts.insert("a.test:80".to_owned(), circuit);
        }
        let (url, now) = (url("http://a.test/x"), Instant::now());
        let probe = breaker.enter(&url, now).await.unwrap();
        let error = breaker.enter(&url, now).await.unwrap_err();
        assert_eq!((&*error.reason, error.failures), ("refused", THRESHOLD));
        // Their time is as good as endless here: only the probe lets them go.
        let waiting = breaker.enter(&url, now + LONGEST * 360);
        let (waited, ()) = tokio::join!(waiting, async { probe.note(&Ok(())) });
        assert!(!waited.unwrap().is_probe);
        assert!(
            lock(&breaker.hosts).is_empty(),
            "hosts that answer are forgotten"
        );
    }

    #[test]
    fn hosts_that_are_made_up_do_not_fill_the_memory() {
        let (breaker, now) = (CircuitBreaker::default(), Instant::now());
        for number in 0..MAX_HOSTS * 2 {
            breaker.failed(&format!("h{number}"), "refused", now);
        }
        assert!(lock(&breaker.hosts).len() <= MAX_HOSTS);
        assert_ne!(
            host_of(&url("http://a.test:81")),
            host_of(&url("http://a.test"))
        );
    }
}
