//! The flags that choose a semantic evaluator, for every command that judges messages.

use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use proofhouse_fleet::plan::{StoredModel, WorkerNeed};
use proofhouse_oatf::SemanticEvaluator;
use proofhouse_semantic::{Config, Method, OpenAiSemantic, Secret};
use proofhouse_wire::gate::RequestGate;

use crate::output::CommandError;
use crate::proxies;

/// The variable with the key, unless another one is named.
const KEY_VARIABLE: &str = "PROOFHOUSE_SEMANTIC_API_KEY";
/// The variable that many have set for [`ITS_HOST`], and that is read for no other host: a key must not
/// go to somebody it was not made for.
const WELL_KNOWN_VARIABLE: &str = "OPENAI_API_KEY";
const ITS_HOST: &str = "https://api.openai.com";

/// How indicators that go by meaning are judged.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Semantic indicators")]
pub(crate) struct SemanticOptions {
    /// Use a model to evaluate semantic indicators, which match by meaning. The messages are sent to that model.
    /// Without this option, semantic indicators are skipped
    #[arg(long, value_enum, value_name = "METHOD", requires_all = ["semantic_url", "semantic_model"])]
    pub(crate) semantic: Option<SemanticMethod>,

    /// URL of an OpenAI-compatible API, such as http://127.0.0.1:8080/v1
    #[arg(long, value_name = "URL", requires = "semantic")]
    pub(crate) semantic_url: Option<String>,

    /// The name of the model
    #[arg(long, value_name = "NAME", requires = "semantic")]
    pub(crate) semantic_model: Option<String>,

    /// The environment variable that holds the API key [default: PROOFHOUSE_SEMANTIC_API_KEY]
    #[arg(long, value_name = "NAME", requires = "semantic")]
    pub(crate) semantic_key_env: Option<String>,

    /// Time limit for one evaluation, including retries [default: 30]
    #[arg(long, value_name = "SECONDS", requires = "semantic", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) semantic_timeout: Option<u64>,

    /// The maximum number of requests [default: 1000]
    #[arg(long, value_name = "N", requires = "semantic")]
    pub(crate) semantic_max_requests: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SemanticMethod {
    /// Compare embeddings of the texts
    Embeddings,
    /// Ask a chat model for a score
    Judge,
}

impl SemanticOptions {
    /// The evaluator that was asked for, if one was.
    pub(crate) fn evaluator(&self) -> Result<Option<Arc<dyn SemanticEvaluator>>, CommandError> {
        self.evaluator_behind(None)
    }

    /// The same, with its requests behind a gate.
    pub(crate) fn evaluator_behind(
        &self,
        gate: Option<Arc<dyn RequestGate>>,
    ) -> Result<Option<Arc<dyn SemanticEvaluator>>, CommandError> {
        #[expect(
            clippy::disallowed_methods,
            reason = "the binary reads the environment"
        )]
        let environment = |name: &str| std::env::var(name).ok();
        let Some(mut config) = self.config(environment)? else {
            return Ok(None);
        };
        config.gate = gate;
        let evaluator =
            OpenAiSemantic::new(config).map_err(|error| CommandError::usage(error.to_string()))?;
        Ok(Some(Arc::new(evaluator)))
    }

    /// The model that was asked for, as a plan keeps it.
    pub(crate) fn stored(&self) -> Option<StoredModel> {
        let method = self.semantic?.to_possible_value()?;
        Some(StoredModel {
            need: WorkerNeed::Semantic,
            method: Some(method.get_name().to_owned()),
            url: self.semantic_url.clone()?,
            model: self.semantic_model.clone()?,
            key_env: self.semantic_key_env.clone(),
            timeout: self.semantic_timeout,
            max_requests: self.semantic_max_requests,
        })
    }

    /// These options, or those that the plan was made with if none are given.
    pub(crate) fn or_planned(&self, plan: &[StoredModel]) -> Self {
        let planned = StoredModel::find(plan, WorkerNeed::Semantic);
        let Some(planned) = planned.filter(|_| self.semantic.is_none()) else {
            return self.clone();
        };
        let method = planned.method.as_deref().unwrap_or_default();
        Self {
            semantic: SemanticMethod::from_str(method, false).ok(),
            semantic_url: Some(planned.url.clone()),
            semantic_model: Some(planned.model.clone()),
            semantic_key_env: planned.key_env.clone(),
            semantic_timeout: planned.timeout,
            semantic_max_requests: planned.max_requests,
        }
    }

    fn config(
        &self,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Config>, CommandError> {
        let method = match self.semantic {
            None => return Ok(None),
            Some(SemanticMethod::Embeddings) => Method::Embeddings,
            Some(SemanticMethod::Judge) => Method::Judge,
        };
        let needed = |value: &Option<String>, flag: &str| {
            value
                .clone()
                .ok_or_else(|| CommandError::usage(format!("--semantic needs {flag}")))
        };
        let url = needed(&self.semantic_url, "--semantic-url")?;
        let model = needed(&self.semantic_model, "--semantic-model")?;
        let api_key = self.key(&url, environment)?;
        let mut config = Config {
            api_key,
            proxies: proxies::from_environment(),
            ..Config::new(url, model, method)
        };
        if let Some(seconds) = self.semantic_timeout {
            config.timeout = Duration::from_secs(seconds);
        }
        if let Some(requests) = self.semantic_max_requests {
            config.max_requests = requests;
        }
        Ok(Some(config))
    }

    /// The key, if there is one: a variable that is named has to be set, the usual ones need not.
    fn key(
        &self,
        url: &str,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Secret>, CommandError> {
        // An empty variable is how scripts leave one out.
        let read = |name: &str| environment(name).filter(|key| !key.is_empty());
        let key = match &self.semantic_key_env {
            // The name is not repeated: some give the key itself, and messages end up in logs.
            Some(name) => Some(read(name).ok_or_else(|| {
                CommandError::usage(
                    "--semantic-key-env: no variable of this name is set, or it is empty; give the \
                     name of a variable, not the key",
                )
            })?),
            None => read(KEY_VARIABLE).or_else(|| {
                let rest = url.strip_prefix(ITS_HOST)?;
                (rest.is_empty() || rest.starts_with('/'))
                    .then(|| read(WELL_KNOWN_VARIABLE))
                    .flatten()
            }),
        };
        Ok(key.map(Secret::new))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit_code::Exit;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Program {
        #[command(flatten)]
        options: SemanticOptions,
    }

    fn parse(line: &str) -> Result<SemanticOptions, clap::Error> {
        let words = std::iter::once("program").chain(line.split_whitespace());
        Program::try_parse_from(words).map(|program| program.options)
    }

    fn judge(url: &str, more: &str) -> SemanticOptions {
        parse(&format!(
            "--semantic judge --semantic-url {url} --semantic-model m {more}"
        ))
        .unwrap()
    }

    /// The key that is taken from an environment with these variables.
    fn key(options: &SemanticOptions, variables: &[(&str, &str)]) -> Option<Secret> {
        let environment = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        options.config(environment).unwrap().unwrap().api_key
    }

    #[test]
    fn nothing_is_asked_unless_it_is_wanted() {
        assert!(parse("").unwrap().evaluator().unwrap().is_none());
        for incomplete in [
            "--semantic judge",
            "--semantic judge --semantic-url http://127.0.0.1:1",
            "--semantic judge --semantic-model m",
            "--semantic-url http://127.0.0.1:1",
            "--semantic-timeout 3",
            "--semantic guess --semantic-url http://127.0.0.1:1 --semantic-model m",
        ] {
            assert!(parse(incomplete).is_err(), "{incomplete}");
        }
        for seconds in ["0", "-1", "3601", "x"] {
            let line = format!(
                "--semantic judge --semantic-url u --semantic-model m --semantic-timeout={seconds}"
            );
            assert!(parse(&line).is_err(), "{seconds}");
        }
    }

    #[test]
    fn flags_reach_the_configuration() {
        let options = judge(
            "http://127.0.0.1:1/v1",
            "--semantic-timeout 7 --semantic-max-requests 3",
        );
        let config = options.config(|_| None).unwrap().unwrap();
        assert_eq!(config.base_url, "http://127.0.0.1:1/v1");
        assert_eq!((config.model.as_str(), config.method), ("m", Method::Judge));
        assert_eq!(config.timeout, Duration::from_secs(7));
        assert_eq!(config.max_requests, 3);
        assert!(config.api_key.is_none());
        assert!(options.evaluator().unwrap().is_some());
        let line = "--semantic embeddings --semantic-url http://127.0.0.1:1 --semantic-model m";
        let config = parse(line).unwrap().config(|_| None).unwrap().unwrap();
        assert_eq!(config.method, Method::Embeddings);
    }

    #[test]
    fn keys_come_from_the_right_variable() {
        let (ours, theirs) = ((KEY_VARIABLE, "ours"), (WELL_KNOWN_VARIABLE, "theirs"));
        let openai = judge("https://api.openai.com/v1", "");
        let other = judge("https://models.example/v1", "");
        assert_eq!(key(&openai, &[ours, theirs]), Some(Secret::new("ours")));
        assert_eq!(key(&other, &[ours, theirs]), Some(Secret::new("ours")));
        assert_eq!(key(&openai, &[theirs]), Some(Secret::new("theirs")));
        assert_eq!(
            key(&openai, &[(KEY_VARIABLE, ""), theirs]),
            Some(Secret::new("theirs"))
        );
        // A key goes to the host it was made for, and to none that only looks like it.
        for url in [
            "https://models.example/v1",
            "https://api.openai.com.example/v1",
            "http://api.openai.com/v1",
            "http://127.0.0.1:8080/v1",
        ] {
            assert_eq!(key(&judge(url, ""), &[theirs]), None, "{url}");
        }
        let named = judge("https://models.example/v1", "--semantic-key-env MINE");
        assert_eq!(key(&named, &[("MINE", "m"), ours]), Some(Secret::new("m")));
    }

    #[test]
    fn mistakes_are_usage_errors() {
        let named = judge("https://models.example/v1", "--semantic-key-env MINE");
        let error = named.config(|_| None).unwrap_err();
        assert_eq!(error.exit, Exit::Usage);
        assert!(
            error.message.contains("no variable of this name is set"),
            "{error}"
        );
        assert!(!error.message.contains("MINE"), "{error}");
        let error = judge("models.example", "").evaluator().err().unwrap();
        assert_eq!(error.exit, Exit::Usage);
        assert!(error.message.contains("https://"), "{error}");
    }
}
