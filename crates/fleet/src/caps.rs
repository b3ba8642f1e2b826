//! What all workers of a campaign together may ask of a model, and what it may cost.

use std::str::FromStr;

use proofhouse_store::model::{LanePrice, NewLane};
use proofhouse_tools::operator::ModelPrices;

/// The lane of the models that judge and write content, which are no subject's.
pub const JUDGES: &str = "judges";

/// A run waits at most about this long for each of its requests, in seconds: where requests are capped, no more runs are under way
/// than make that many.
const LONGEST_WAIT: i64 = 10;

/// Digits after the point of an amount of money: costs are counted in billionths.
const DIGITS: usize = 9;

/// A limit, for one model or for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cap {
    /// The model, such as `openai:gpt-5`, or a provider, such as `openai`, for all of its models together; without one, every model.
    pub model: Option<String>,
    /// The most.
    pub most: i64,
}

/// A text that is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write a number greater than 0, MODEL=NUMBER or PROVIDER=NUMBER")]
pub struct CapError;

/// The model that a limit is for, if it names one, and the limit.
fn parts(text: &str) -> (Option<String>, &str) {
    match text.rsplit_once('=') {
        Some((model, number)) => (Some(model.to_owned()), number),
        None => (None, text),
    }
}

impl FromStr for Cap {
    type Err = CapError;

    /// ```
    /// use proofhouse_fleet::caps::Cap;
    ///
    /// let cap: Cap = "openai:gpt-5=2000".parse()?;
    /// assert_eq!((cap.model.as_deref(), cap.most), (Some("openai:gpt-5"), 2000));
    /// assert!("0".parse::<Cap>().is_err());
    /// # Ok::<(), proofhouse_fleet::caps::CapError>(())
    /// ```
    fn from_str(text: &str) -> Result<Self, CapError> {
        let (model, number) = parts(text);
        let most = number.replace('_', "").parse().ok();
        let most = most.filter(|most| *most > 0_i64).ok_or(CapError)?;
        Ok(Self { model, most })
    }
}

/// A limit of money, for one model or for each, in billionths of the currency of the prices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CostCap(pub Cap);

impl FromStr for CostCap {
    type Err = CapError;

    /// ```
    /// use proofhouse_fleet::caps::CostCap;
    ///
    /// let cap: CostCap = "openai:gpt-5=12.5".parse()?;
    /// assert_eq!(cap.0.most, 12_500_000_000);
    /// assert!("0.0".parse::<CostCap>().is_err() && "-1".parse::<CostCap>().is_err());
    /// # Ok::<(), proofhouse_fleet::caps::CapError>(())
    /// ```
    fn from_str(text: &str) -> Result<Self, CapError> {
        let (model, amount) = parts(text);
        let (whole, part) = amount.split_once('.').unwrap_or((amount, "0"));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !is_number(whole) || !is_number(part) || part.len() > DIGITS || whole.len() > DIGITS {
            return Err(CapError);
        }
        let most = format!("{whole}{part:0<DIGITS$}").parse().ok();
        let most = most.filter(|most| *most > 0_i64).ok_or(CapError)?;
        Ok(Self(Cap { model, most }))
    }
}

/// Why caps cannot be kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CapsError {
    /// Nobody sees the requests.
    #[error(
        "the requests, tokens and cost of {lane} cannot be counted, because Proofhouse does not send its requests; name the models that the cap is for, as MODEL=NUMBER"
    )]
    Uncounted {
        /// Whose.
        lane: String,
    },
    /// Nobody knows what it costs.
    #[error(
        "there is no price of {lane}; add the model to `prices` in the operator's file, and name that file with --prices"
    )]
    NoPrice {
        /// Which model.
        lane: String,
    },
}

/// Who asks the model of a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelRequests {
    /// Proofhouse, so that they can be counted.
    Ours,
    /// Nobody: the model is simulated.
    Simulated,
    /// The agent itself, so that nobody else sees them.
    Unseen,
}

impl ModelRequests {
    /// Whether a cap of this lane could not be kept, because nobody counts what it is for.
    fn cannot_keep(self, lane: &NewLane) -> bool {
        let sent = lane.requests_per_minute.or(lane.max_cost);
        match self {
            Self::Ours => false,
            Self::Simulated => sent.is_some(),
            Self::Unseen => sent.or(lane.max_tokens).is_some(),
        }
    }
}

/// What all workers together may ask.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FleetCaps {
    /// Tokens in all.
    pub tokens: Vec<Cap>,
    /// Runs at a time. A run asks its model one thing at a time.
    pub concurrent: Vec<Cap>,
    /// Requests in a minute.
    pub requests_per_minute: Vec<Cap>,
    /// What it may cost in all.
    pub cost: Vec<CostCap>,
    /// What tokens cost.
    pub prices: ModelPrices,
}

/// The limit of a model. One for the model itself wins over one for all.
fn most<'a>(caps: impl Iterator<Item = &'a Cap> + Clone, name: &str) -> Option<i64> {
    let own = caps.clone().find(|cap| cap.model.as_deref() == Some(name));
    let all = { caps }.find(|cap| cap.model.is_none());
    own.or(all).map(|cap| cap.most)
}

/// The limit of a provider. A limit for all models is none of a provider.
fn named<'a>(caps: impl IntoIterator<Item = &'a Cap>, provider: &str) -> Option<i64> {
    let mut caps = caps.into_iter();
    let named = caps.find(|cap| cap.model.as_deref() == Some(provider));
    named.map(|cap| cap.most)
}

/// The provider of a model: what its name begins with.
fn provider_of(lane: &str) -> Option<&str> {
    lane.split_once(':').map(|(provider, _)| provider)
}

/// How many runs make so many requests in a minute without waiting long.
fn runs_of(requests_per_minute: i64) -> i64 {
    (requests_per_minute.saturating_mul(LONGEST_WAIT) / 60).max(1)
}

impl FleetCaps {
    /// What a model may be asked. Requests and money can be capped where its requests are sent by us; tokens where they are told.
    ///
    /// # Errors
    ///
    /// Returns an error when a cap could not be kept.
    pub fn lane(&self, name: &str, requests: ModelRequests) -> Result<NewLane, CapsError> {
        let requests_per_minute = most(self.requests_per_minute.iter(), name);
        let max_cost = most(self.cost.iter().map(|cap| &cap.0), name);
        let max_tokens = most(self.tokens.iter(), name);
        let by_requests = requests_per_minute.map(runs_of);
        let concurrent = most(self.concurrent.iter(), name);
        let lane = NewLane {
            name: name.to_owned(),
            max_tokens,
            max_concurrent: concurrent.into_iter().chain(by_requests).min(),
            requests_per_minute,
            max_cost,
            price: self.price(name),
            provider: None,
        };
        if requests.cannot_keep(&lane) {
            return Err(CapsError::Uncounted { lane: lane.name });
        }
        if max_cost.is_some() && lane.price.is_none() {
            return Err(CapsError::NoPrice { lane: lane.name });
        }
        Ok(lane)
    }

    /// What the models that judge may be asked. What they cost is not told, so it is not capped.
    #[must_use]
    pub fn judges(&self) -> NewLane {
        NewLane {
            name: JUDGES.to_owned(),
            requests_per_minute: most(self.requests_per_minute.iter(), JUDGES),
            ..NewLane::default()
        }
    }

    /// What the tokens of a model cost, by the name that it has at its provider.
    fn price(&self, lane: &str) -> Option<LanePrice> {
        let (_, model) = lane.split_once(':')?;
        let (input, output) = self.prices.per_token(model)?;
        Some(LanePrice {
            input: i64::try_from(input).ok()?,
            output: i64::try_from(output).ok()?,
            currency: self.prices.currency().to_owned(),
        })
    }

    /// Adds the lanes of providers that a limit names, such as `openai`, behind those of their models. Each limit holds for all models of
    /// the provider together, and beside those of the models themselves.
    ///
    /// # Errors
    ///
    /// Returns an error when a cap could not be kept.
    pub fn add_providers(
        &self,
        lanes: &mut Vec<NewLane>,
        requests: &[ModelRequests],
    ) -> Result<(), CapsError> {
        let models = lanes.len();
        for number in 0..models {
            let Some(provider) = provider_of(&lanes[number].name).map(str::to_owned) else {
                continue;
            };
            let cost = self.cost.iter().map(|cap| &cap.0);
            let lane = NewLane {
                max_tokens: named(&self.tokens, &provider),
                max_concurrent: named(&self.concurrent, &provider),
                requests_per_minute: named(&self.requests_per_minute, &provider),
                max_cost: named(cost, &provider),
                name: provider,
                ..NewLane::default()
            };
            let is_capped = lane.max_tokens.or(lane.max_concurrent);
            let is_capped = is_capped.or(lane.requests_per_minute).or(lane.max_cost);
            if is_capped.is_none() {
                continue;
            }
            let requests = requests.get(number).copied();
            let requests = requests.unwrap_or(ModelRequests::Unseen);
            let model = &lanes[number];
            if requests.cannot_keep(&lane) {
                return Err(CapsError::Uncounted {
                    lane: model.name.clone(),
                });
            }
            if lane.max_cost.is_some() && model.price.is_none() {
                return Err(CapsError::NoPrice {
                    lane: model.name.clone(),
                });
            }
            let known = lanes[models..].iter().position(|one| one.name == lane.name);
            let at = known.map_or(lanes.len(), |known| models + known);
            if known.is_none() {
                let by_requests = lane.requests_per_minute.map(runs_of);
                let max_concurrent = lane.max_concurrent.into_iter().chain(by_requests).min();
                let price = model.price.clone().filter(|_| lane.max_cost.is_some());
                lanes.push(NewLane {
                    max_concurrent,
                    price,
                    ..lane
                });
            }
            lanes[number].provider = i64::try_from(at).ok();
        }
        Ok(())
    }

    /// Models that a limit names and no subject has.
    pub fn unused<'a>(&'a self, lanes: &'a [NewLane]) -> impl Iterator<Item = &'a str> {
        let all = [&self.tokens, &self.concurrent, &self.requests_per_minute];
        let all = all.into_iter().flatten();
        let all = all.chain(self.cost.iter().map(|cap| &cap.0));
        let named = all.filter_map(|cap| cap.model.as_deref());
        named.filter(|model| !lanes.iter().any(|lane| lane.name == *model))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caps_that_cannot_be_kept_are_refused() {
        let caps = FleetCaps {
            requests_per_minute: vec!["600".parse().unwrap()],
            concurrent: vec!["openai:big=5".parse().unwrap()],
            ..FleetCaps::default()
        };
        let lane = caps.lane("openai:small", ModelRequests::Ours).unwrap();
        assert_eq!(
            (lane.requests_per_minute, lane.max_concurrent),
            (Some(600), Some(100))
        );
        let lane = caps.lane("openai:big", ModelRequests::Ours).unwrap();
        assert_eq!(lane.max_concurrent, Some(5));
        let unseen = ModelRequests::Unseen;
        let refused = caps.lane("subject:shop", unseen).unwrap_err();
        assert!(matches!(refused, CapsError::Uncounted { .. }), "{refused}");
        let caps = FleetCaps {
            cost: vec!["openai:gpt-5=3".parse().unwrap()],
            ..FleetCaps::default()
        };
        let refused = caps.lane("openai:gpt-5", ModelRequests::Ours).unwrap_err();
        assert!(matches!(refused, CapsError::NoPrice { .. }), "{refused}");
        assert!(caps.lane("openai:other", ModelRequests::Ours).is_ok());
        assert!(caps.lane("subject:shop", unseen).is_ok());
        // An agent that asks its model by itself tells nobody what it used.
        let caps = FleetCaps {
            tokens: vec!["1000".parse().unwrap()],
            ..FleetCaps::default()
        };
        let refused = caps.lane("subject:shop", unseen).unwrap_err();
        assert!(matches!(refused, CapsError::Uncounted { .. }), "{refused}");
        let lane = caps.lane("sim:careful", ModelRequests::Simulated);
        assert_eq!(lane.unwrap().max_tokens, Some(1000));
    }

    #[test]
    fn models_of_a_provider_share_its_caps() {
        let caps = FleetCaps {
            tokens: vec!["openai=1000".parse().unwrap(), "7000".parse().unwrap()],
            requests_per_minute: vec!["openai=600".parse().unwrap()],
            concurrent: vec!["openai=40".parse().unwrap(), "sim=3".parse().unwrap()],
            ..FleetCaps::default()
        };
        let (ours, simulated) = (ModelRequests::Ours, ModelRequests::Simulated);
        let names = ["openai:big", "sim:careful", "openai:small", "other:one"];
        let requests = [ours, simulated, ours, ours];
        let lanes = names.iter().zip(requests);
        let lanes = lanes.map(|(name, requests)| caps.lane(name, requests).unwrap());
        let mut lanes: Vec<NewLane> = lanes.collect();
        caps.add_providers(&mut lanes, &requests).unwrap();
        let providers: Vec<Option<i64>> = lanes.iter().map(|lane| lane.provider).collect();
        assert_eq!(
            providers,
            [Some(4), Some(5), Some(4), None, None, None],
            "{lanes:?}"
        );
        let openai = NewLane {
            name: "openai".to_owned(),
            max_tokens: Some(1000),
            max_concurrent: Some(40),
            requests_per_minute: Some(600),
            ..NewLane::default()
        };
        assert_eq!(lanes[4], openai);
        assert_eq!(
            (lanes[5].name.as_str(), lanes[5].max_concurrent),
            ("sim", Some(3))
        );
        assert_eq!(lanes[0].max_tokens, Some(7000), "its own, beside that");
        assert_eq!(caps.unused(&lanes).count(), 0);
        // What nobody can count is refused for the provider as for the model.
        let caps = FleetCaps {
            requests_per_minute: vec!["sim=5".parse().unwrap()],
            ..FleetCaps::default()
        };
        let mut lanes = vec![caps.lane("sim:careful", simulated).unwrap()];
        let refused = caps.add_providers(&mut lanes, &[simulated]).unwrap_err();
        assert!(matches!(refused, CapsError::Uncounted { .. }), "{refused}");
    }
}
