//! When a request is sent again, and after how long: the one place for retries and `Retry-After`.
//!
//! A caller has a [`RetryPolicy`] with its own numbers, says what it may repeat ([`RetryOn`]) and what
//! happened ([`RetryCause`]), and gets the wait before the next attempt, or none. Chance and the
//! present time are passed in, so that every wait can be tested.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use http::HeaderMap;
use jiff::Timestamp;

use crate::client::ClientError;

/// How often and after how long a request is sent again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How often a request is sent at most, the first time included.
    pub attempts: u32,
    /// The wait before the second attempt; it doubles with each further one.
    pub base: Duration,
    /// The longest of these waits.
    pub cap: Duration,
    /// The longest wait that the other side may ask for; for a longer one nothing is sent again.
    pub max_retry_after: Duration,
    /// How the waits of many clients are spread.
    pub jitter: Jitter,
}

/// How waits are spread, so that clients that failed together do not come back together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Jitter {
    /// Not at all: there is one client.
    None,
    /// A tenth more or less, for what comes back regularly anyway.
    Tenth,
    /// Anything from nothing to the whole wait.
    Full,
}

/// Which failures a request is sent again after. See [`RetryOn::covers`] for the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryOn {
    /// The request was not sent: it may not have its effect twice.
    NotSent,
    /// That, or the connection broke, or the server or a gateway before it is busy.
    Busy,
    /// That, or the server failed in a way that often passes.
    Failed,
    /// The server is busy or failed in whichever way. What has no status is not repeated.
    ServerError,
}

/// Why an attempt came to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryCause {
    /// No connection could be made.
    NotSent,
    /// The connection broke after something may have been sent.
    Broken,
    /// The server answered with this status.
    Status {
        /// The status.
        code: u16,
        /// How long the server asks to wait.
        retry_after: Option<Duration>,
    },
    /// Something that another attempt does not change.
    Final,
}

/// What a `Retry-After` header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryAfter {
    /// To wait so long.
    Delay(Duration),
    /// To wait until then. What that means depends on two clocks.
    Until(Timestamp),
}

impl RetryPolicy {
    /// The wait before the next attempt after attempt number `attempt`, counted from 1, failed for this
    /// cause; none if there is to be no other. `chance` is between 0 and 1.
    ///
    /// ```
    /// use std::time::Duration;
    /// use proofhouse_wire::retry::{Jitter, RetryCause, RetryOn, RetryPolicy};
    /// let policy = RetryPolicy {
    ///     attempts: 3,
    ///     base: Duration::from_millis(200),
    ///     cap: Duration::from_secs(30),
    ///     max_retry_after: Duration::from_secs(30),
    ///     jitter: Jitter::Full,
    /// };
    /// let wait = |attempt| policy.next_wait(RetryOn::NotSent, RetryCause::NotSent, attempt, 0.5);
    /// assert_eq!(wait(2), Some(Duration::from_millis(200)));
    /// assert_eq!(wait(3), None);
    /// ```
    #[must_use]
    pub fn next_wait(
        &self,
        on: RetryOn,
        cause: RetryCause,
        attempt: u32,
        chance: f64,
    ) -> Option<Duration> {
        if attempt >= self.attempts || !on.covers(cause) {
            return None;
        }
        match cause.retry_after() {
            Some(asked) => (asked <= self.max_retry_after).then_some(asked),
            None => Some(self.back_off(attempt, chance)),
        }
    }

    /// The wait after attempt number `attempt`, counted from 1, if nobody asks for another one. `chance`
    /// is between 0 and 1.
    #[must_use]
    pub fn back_off(&self, attempt: u32, chance: f64) -> Duration {
        let doublings = attempt.saturating_sub(1).min(u32::BITS - 1);
        let wait = self.base.saturating_mul(1 << doublings).min(self.cap);
        self.jitter.spread(wait, chance)
    }
}

impl Jitter {
    /// A wait, spread by `chance` between 0 and 1.
    #[must_use]
    pub fn spread(self, wait: Duration, chance: f64) -> Duration {
        let chance = chance.clamp(0.0, 1.0);
        let part = match self {
            Self::None => return wait,
            Self::Tenth => 0.9 + 0.2 * chance,
            Self::Full => chance,
        };
        // Only a wait that is practically endless cannot be made longer.
        Duration::try_from_secs_f64(wait.as_secs_f64() * part).unwrap_or(wait)
    }
}

impl RetryOn {
    /// Whether a request is sent again after this.
    ///
    /// | cause | `NotSent` | `Busy` | `Failed` | `ServerError` |
    /// |---|---|---|---|---|
    /// | not sent | yes | yes | yes | no |
    /// | broken | no | yes | yes | no |
    /// | 429, 502, 503, 504 | no | yes | yes | yes |
    /// | 500, 529 | no | no | yes | yes |
    /// | another 5xx | no | no | no | yes |
    /// | anything else | no | no | no | no |
    #[must_use]
    pub fn covers(self, cause: RetryCause) -> bool {
        match cause {
            RetryCause::NotSent => self != Self::ServerError,
            RetryCause::Broken => matches!(self, Self::Busy | Self::Failed),
            RetryCause::Status { code, .. } => match code {
                429 | 502 | 503 | 504 => self != Self::NotSent,
                500 | 529 => matches!(self, Self::Failed | Self::ServerError),
                501 | 505..=599 => self == Self::ServerError,
                _ => false,
            },
            RetryCause::Final => false,
        }
    }
}

impl RetryCause {
    fn retry_after(self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => retry_after,
            Self::NotSent | Self::Broken | Self::Final => None,
        }
    }

    /// How long everybody who asks this server should wait, if it wants that: what it asks for, or `otherwise` where it names no
    /// time.
    ///
    /// ```
    /// use std::time::Duration;
    /// use proofhouse_wire::retry::RetryCause;
    /// let (second, minute) = (Duration::from_secs(1), Duration::from_secs(60));
    /// let pause = |code, retry_after| RetryCause::Status { code, retry_after }.pause(second);
    /// assert_eq!(pause(429, Some(minute)), Some(minute));
    /// assert_eq!(pause(429, None), Some(second));
    /// assert_eq!(pause(503, Some(minute)), Some(minute));
    /// assert_eq!(pause(503, None), None);
    /// ```
    #[must_use]
    pub fn pause(self, otherwise: Duration) -> Option<Duration> {
        match self {
            Self::Status {
                code: 429,
                retry_after,
            } => Some(retry_after.unwrap_or(otherwise)),
            Self::Status {
                code: 503 | 529,
                retry_after,
            } => retry_after,
            Self::Status { .. } | Self::NotSent | Self::Broken | Self::Final => None,
        }
    }

    /// Whether the server itself says that it would answer later, so that its `Retry-After` is about
    /// this client and not about something behind it.
    #[must_use]
    pub fn asks_to_wait(self) -> bool {
        matches!(
            self,
            Self::Status {
                code: 429 | 503,
                ..
            }
        )
    }
}

impl From<&ClientError> for RetryCause {
    fn from(error: &ClientError) -> Self {
        match error {
            ClientError::Connect { .. } => Self::NotSent,
            ClientError::Broken(_) => Self::Broken,
            ClientError::Denied(_)
            | ClientError::Url { .. }
            | ClientError::Setup(_)
            | ClientError::TooSlow
            | ClientError::TooLarge { .. }
            | ClientError::EventTooLarge(_)
            | ClientError::TooManyEvents { .. } => Self::Final,
        }
    }
}

impl RetryAfter {
    /// What the `Retry-After` of a response says; none if it is absent or makes no sense.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        Self::parse(headers.get(http::header::RETRY_AFTER)?.to_str().ok()?)
    }

    /// The same for a provider of models: several also say it in milliseconds, which is more exact.
    #[must_use]
    pub fn of_provider(headers: &HeaderMap) -> Option<Self> {
        let milliseconds = headers
            .get("retry-after-ms")
            .and_then(|value| value.to_str().ok()?.trim().parse().ok());
        match milliseconds {
            Some(milliseconds) => Some(Self::Delay(Duration::from_millis(milliseconds))),
            None => Self::of(headers),
        }
    }

    /// Reads seconds, whole or not, or a date.
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Ok(seconds) = text.parse() {
            return Some(Self::Delay(Duration::from_secs(seconds)));
        }
        if let Ok(seconds) = text.parse() {
            return Duration::try_from_secs_f64(seconds).ok().map(Self::Delay);
        }
        let date = jiff::fmt::rfc2822::parse(text).ok()?;
        Some(Self::Until(date.timestamp()))
    }

    /// The wait, if it is not given as a date.
    #[must_use]
    pub fn delay(self) -> Option<Duration> {
        match self {
            Self::Delay(delay) => Some(delay),
            Self::Until(_) => None,
        }
    }

    /// The wait from now on; none at all until a date that has passed.
    #[must_use]
    pub fn wait(self, now: Timestamp) -> Duration {
        match self {
            Self::Delay(delay) => delay,
            Self::Until(date) => Duration::try_from(date.duration_since(now)).unwrap_or_default(),
        }
    }
}

/// A number between 0 and 1 that differs each time. It spreads retries and guards nothing.
#[must_use]
pub fn chance() -> f64 {
    let bits = RandomState::new().hash_one(0) >> 32;
    f64::from(u32::try_from(bits).unwrap_or_default()) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: RetryPolicy = RetryPolicy {
        attempts: 4,
        base: Duration::from_millis(100),
        cap: Duration::from_millis(300),
        max_retry_after: Duration::from_secs(30),
        jitter: Jitter::Full,
    };

    fn status(code: u16) -> RetryCause {
        RetryCause::Status {
            code,
            retry_after: None,
        }
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pairs = pairs.iter().map(|(name, value)| {
            let value = value.parse().expect("a header of the test");
            (http::HeaderName::from_static(name), value)
        });
        pairs.collect()
    }

    #[test]
    fn the_table_of_causes() {
        let on = [
            RetryOn::NotSent,
            RetryOn::Busy,
            RetryOn::Failed,
            RetryOn::ServerError,
        ];
        let mut rows = vec![
            (RetryCause::NotSent, [true, true, true, false]),
            (RetryCause::Broken, [false, true, true, false]),
            (RetryCause::Final, [false; 4]),
        ];
        for code in [429, 502, 503, 504] {
            rows.push((status(code), [false, true, true, true]));
        }
        for code in [500, 529] {
            rows.push((status(code), [false, false, true, true]));
        }
        for code in [501, 505, 507, 599] {
            rows.push((status(code), [false, false, false, true]));
        }
        for code in [200, 304, 400, 401, 403, 404, 408, 409, 425, 600] {
            rows.push((status(code), [false; 4]));
        }
        for (cause, expected) in rows {
            assert_eq!(on.map(|on| on.covers(cause)), expected, "{cause:?}");
        }
    }

    #[test]
    fn waits_double_up_to_the_cap() {
        for (attempt, chance, expected) in [
            (0, 1.0, 100),
            (1, 1.0, 100),
            (2, 1.0, 200),
            (3, 1.0, 300),
            (40, 1.0, 300),
            (u32::MAX, 1.0, 300),
            (2, 0.5, 100),
            (2, 0.0, 0),
            (2, -3.0, 0),
            (2, 7.0, 200),
        ] {
            let wait = POLICY.back_off(attempt, chance);
            assert_eq!(wait.as_millis(), expected, "{attempt} {chance}");
        }
    }

    #[test]
    fn jitter_spreads_a_wait() {
        let wait = Duration::from_secs(60);
        for (jitter, chance, expected) in [
            (Jitter::None, 0.0, 60),
            (Jitter::None, 1.0, 60),
            (Jitter::Tenth, 0.0, 54),
            (Jitter::Tenth, 0.5, 60),
            (Jitter::Tenth, 1.0, 66),
            (Jitter::Full, 0.25, 15),
            (Jitter::Full, 1.0, 60),
        ] {
            assert_eq!(
                jitter.spread(wait, chance).as_secs(),
                expected,
                "{jitter:?}"
            );
        }
        assert_eq!(Jitter::Tenth.spread(Duration::MAX, 1.0), Duration::MAX);
    }

    #[test]
    fn the_wait_before_the_next_attempt() {
        let asked = |code, seconds| RetryCause::Status {
            code,
            retry_after: Some(Duration::from_secs(seconds)),
        };
        for (cause, attempt, expected) in [
            (RetryCause::NotSent, 1, Some(100)),
            (RetryCause::NotSent, 3, Some(300)),
            (RetryCause::NotSent, 4, None),
            (RetryCause::Final, 1, None),
            (status(503), 1, Some(100)),
            (status(500), 1, None),
            (asked(503, 0), 1, Some(0)),
            (asked(503, 30), 1, Some(30_000)),
            (asked(503, 31), 1, None),
            (asked(503, 1), 4, None),
            (asked(400, 1), 1, None),
        ] {
            let wait = POLICY.next_wait(RetryOn::Busy, cause, attempt, 1.0);
            let expected = expected.map(Duration::from_millis);
            assert_eq!(wait, expected, "{cause:?} {attempt}");
        }
    }

    #[test]
    fn what_a_header_asks_for() {
        let now: Timestamp = "2026-01-01T12:00:00Z".parse().expect("a time");
        for (text, delay, wait) in [
            ("0", Some(0), Some(0)),
            (" 7 ", Some(7_000), Some(7_000)),
            ("1.5", Some(1_500), Some(1_500)),
            ("Thu, 01 Jan 2026 12:20:00 GMT", None, Some(1_200_000)),
            ("Thu, 01 Jan 2026 11:00:00 GMT", None, Some(0)),
            ("-1", None, None),
            ("inf", None, None),
            ("NaN", None, None),
            ("99999999999999999999", None, None),
            ("soon", None, None),
            ("", None, None),
        ] {
            let asked = RetryAfter::of(&headers(&[("retry-after", text)]));
            assert_eq!(
                asked.and_then(RetryAfter::delay),
                delay.map(Duration::from_millis),
                "{text}"
            );
            assert_eq!(
                asked.map(|asked| asked.wait(now)),
                wait.map(Duration::from_millis),
                "{text}"
            );
        }
        assert_eq!(RetryAfter::of(&headers(&[])), None);
    }

    #[test]
    fn providers_may_say_it_in_milliseconds() {
        for (pairs, expected) in [
            (vec![("retry-after-ms", "3"), ("retry-after", "9")], Some(3)),
            (
                vec![("retry-after-ms", "x"), ("retry-after", "9")],
                Some(9_000),
            ),
            (vec![("retry-after", "2")], Some(2_000)),
            (vec![], None),
        ] {
            let asked = RetryAfter::of_provider(&headers(&pairs)).and_then(RetryAfter::delay);
            assert_eq!(asked, expected.map(Duration::from_millis), "{pairs:?}");
        }
    }

    #[test]
    fn errors_of_the_client_are_causes() {
        let connect = ClientError::Connect {
            url: String::new(),
            reason: String::new(),
            timed_out: true,
        };
        for (error, expected) in [
            (connect, RetryCause::NotSent),
            (ClientError::Broken(String::new()), RetryCause::Broken),
            (ClientError::TooSlow, RetryCause::Final),
            (ClientError::Denied(String::new()), RetryCause::Final),
        ] {
            assert_eq!(RetryCause::from(&error), expected, "{error}");
        }
    }

    #[test]
    fn chance_is_between_0_and_1_and_differs() {
        let chances: Vec<_> = (0..8).map(|_| chance()).collect();
        assert!(chances.iter().all(|chance| (0.0..=1.0).contains(chance)));
        assert!(chances.iter().any(|chance| *chance != chances[0]));
    }
}
