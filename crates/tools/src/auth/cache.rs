//! One token, kept until shortly before it expires and fetched once however many ask for it.

use std::future::Future;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use proofhouse_wire::sync::lock;

use super::error::AuthError;
use proofhouse_manifest::interpolate::Sealed;

/// How many seconds before its end a token is fetched anew: a request that starts with it must still be
/// under way with a token that counts, and clocks differ.
const MARGIN: u64 = 60;
/// Of a short life, no more than this part is given away as margin.
const MARGIN_PART: u64 = 4;
/// A token that was fetched less than this many seconds ago is fresh enough for a caller who cannot say
/// which token was refused; most likely it was the one before.
const JUST_FETCHED: u64 = 5;
/// When a token cannot be renewed but still counts, it is this many seconds before the next try.
const RENEW_AGAIN: u64 = 10;

/// The time in seconds since 1970.
pub(super) type UnixClock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// What a request for a token brought.
#[derive(Debug, Clone)]
pub(super) struct Fetched {
    pub(super) token: Sealed<String>,
    /// When it ends, if that was said.
    pub(super) expires_at: Option<u64>,
}

/// Which token will do.
#[derive(Debug, Clone, Copy)]
pub(super) enum TokenDemand<'a> {
    Any,
    /// One that was fetched a moment ago.
    Fresh,
    /// Any but this one, which was refused.
    Not(&'a str),
}

pub(super) struct TokenCache {
    state: Arc<Mutex<TokenState>>,
    clock: UnixClock,
}

#[derive(Default)]
struct TokenState {
    held: Option<HeldToken>,
    /// The request that is under way. Whoever comes meanwhile shares its result, also a failure.
    flight: Option<Flight>,
}

type Flight = Shared<BoxFuture<'static, Result<Sealed<String>, AuthError>>>;

struct HeldToken {
    token: Sealed<String>,
    fetched_at: u64,
    /// When to fetch the next one; never, if its end is not known.
    renew_at: Option<u64>,
    expires_at: Option<u64>,
}

impl TokenCache {
    pub(super) fn new(clock: UnixClock) -> Self {
        Self {
            state: Arc::default(),
            clock,
        }
    }

    /// The token, fetched if there is none that will do.
    pub(super) async fn get<F>(
        &self,
        wanted: TokenDemand<'_>,
        fetch: impl FnOnce() -> F,
    ) -> Result<Sealed<String>, AuthError>
    where
        F: Future<Output = Result<Fetched, AuthError>> + Send + 'static,
    {
        let flight = {
            let mut state = lock(&self.state);
            if let Some(held) = &state.held
                && held.will_do(wanted, (self.clock)())
            {
                return Ok(held.token.clone());
            }
            match &state.flight {
                Some(flight) => flight.clone(),
                None => {
                    let flight = self.start(fetch());
                    state.flight = Some(flight.clone());
                    flight
                }
            }
        };
        let result = flight.await;
        match result {
            Err(AuthError::Stopped) => {
                // Nobody was left to say that the flight is over.
                lock(&self.state).flight = None;
                Err(AuthError::Stopped)
            }
            Err(error) if matches!(wanted, TokenDemand::Any) => self.old_one().ok_or(error),
            result => result,
        }
    }

    /// Fetches in a task of its own: a caller that is cancelled must not take the others with it, nor
    /// lose a refresh token that the answer brings.
    fn start<F>(&self, fetching: F) -> Flight
    where
        F: Future<Output = Result<Fetched, AuthError>> + Send + 'static,
    {
        let (state, clock) = (Arc::clone(&self.state), Arc::clone(&self.clock));
        let task = tokio::spawn(async move {
            let asked_at = clock();
            let result = fetching.await;
            let mut state = lock(&state);
            state.flight = None;
            let held = HeldToken::new(result?, asked_at);
            let token = held.token.clone();
            state.held = Some(held);
            Ok(token)
        });
        task.map(|ended| ended.unwrap_or(Err(AuthError::Stopped)))
            .boxed()
            .shared()
    }

    /// The token that could not be renewed, if it still counts.
    fn old_one(&self) -> Option<Sealed<String>> {
        let now = (self.clock)();
        let mut state = lock(&self.state);
        let held = state.held.as_mut()?;
        let counts = held.expires_at.is_none_or(|end| now < end);
        counts.then(|| {
            held.renew_at = held.expires_at.map(|_| now.saturating_add(RENEW_AGAIN));
            held.token.clone()
        })
    }
}

impl HeldToken {
    fn new(fetched: Fetched, asked_at: u64) -> Self {
        let renew_at = fetched.expires_at.map(|end| {
            let life = end.saturating_sub(asked_at);
            end - MARGIN.min(life / MARGIN_PART).min(end)
        });
        Self {
            token: fetched.token,
            fetched_at: asked_at,
            renew_at,
            expires_at: fetched.expires_at,
        }
    }

    fn will_do(&self, wanted: TokenDemand<'_>, now: u64) -> bool {
        let due = self.renew_at.is_some_and(|at| now >= at);
        !due && match wanted {
            TokenDemand::Any => true,
            TokenDemand::Fresh => now.saturating_sub(self.fetched_at) < JUST_FETCHED,
            TokenDemand::Not(refused) => self.token.expose() != refused,
        }
    }
}
