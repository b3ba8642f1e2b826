//! What people write about Pods on a command line: quantities, labels, tolerations, references to secrets.

use std::str::FromStr;

use proofhouse_tools::actions::is_dns_label;

/// A setting of Pods that Kubernetes would refuse.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidPodSetting(&'static str);

impl InvalidPodSetting {
    pub(super) const NAME: Self = Self(
        "names of namespaces, secrets and service accounts have lower-case letters, digits, `-` and `.`",
    );
    pub(super) const IMAGE: Self =
        Self("the name of an image has no spaces and at most 1024 characters");
    pub(super) const NO_WORKERS: Self = Self("there must be at least one worker");
}

/// The longest part of a name, and the longest prefix.
const MAX_PART: usize = 63;
const MAX_PREFIX: usize = 253;

/// An amount of CPU or memory, such as `500m` or `2Gi`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quantity(String);

impl Quantity {
    /// As Kubernetes takes it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Quantity {
    type Err = InvalidPodSetting;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const ENDINGS: [&str; 14] = [
            "", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei",
        ];
        let is_number = |c: char| c.is_ascii_digit() || c == '.';
        let end = text.find(|c| !is_number(c)).unwrap_or(text.len());
        let (number, ending) = text.split_at(end);
        let is_positive = number.parse::<f64>().is_ok_and(|number| number > 0.0);
        if text.len() <= 32 && is_positive && ENDINGS.contains(&ending) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidPodSetting(
                "write an amount of Kubernetes greater than zero, such as 500m, 2 or 1Gi",
            ))
        }
    }
}

/// A label: its name and its value. Also what nodes are selected by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodLabel {
    /// Its name, perhaps with a prefix.
    pub name: String,
    /// Its value.
    pub value: String,
}

impl FromStr for PodLabel {
    type Err = InvalidPodSetting;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, value) = text
            .split_once('=')
            .ok_or(InvalidPodSetting("write NAME=VALUE"))?;
        if !is_label_name(name) || !is_label_value(value) {
            return Err(InvalidPodSetting(
                "labels have at most 63 letters, digits, `-`, `_` and `.`, from a letter or digit to another",
            ));
        }
        Ok(Self {
            name: name.to_owned(),
            value: value.to_owned(),
        })
    }
}

/// A taint of nodes that Pods stand: `KEY`, `KEY=VALUE`, each perhaps with `:EFFECT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodToleration {
    /// The key of the taint.
    pub key: String,
    /// Its value; any without it.
    pub value: Option<String>,
    /// Its effect; any without it.
    pub effect: Option<String>,
}

impl FromStr for PodToleration {
    type Err = InvalidPodSetting;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (taint, effect) = match text.rsplit_once(':') {
            Some((taint, effect)) => (taint, Some(effect)),
            None => (text, None),
        };
        let (key, value) = match taint.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (taint, None),
        };
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        let is_known = effect.is_none_or(|effect| effects.contains(&effect));
        if !is_known || !is_label_name(key) || !value.is_none_or(is_label_value) {
            return Err(InvalidPodSetting(
                "write KEY[=VALUE][:EFFECT], where EFFECT is NoSchedule, PreferNoSchedule or NoExecute",
            ));
        }
        Ok(Self {
            key: key.to_owned(),
            value: value.map(str::to_owned),
            effect: effect.map(str::to_owned),
        })
    }
}

/// A variable whose value is in a secret of the namespace: `NAME=SECRET:KEY`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretVariable {
    /// The variable.
    pub name: String,
    /// The secret.
    pub secret: String,
    /// The key in it.
    pub key: String,
}

impl FromStr for SecretVariable {
    type Err = InvalidPodSetting;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.split_once('=').and_then(|(name, reference)| {
            let (secret, key) = reference.split_once(':')?;
            Some((name, secret, key))
        });
        match parts {
            Some((name, secret, key))
                if is_variable(name) && is_object_name(secret) && is_secret_key(key) =>
            {
                Ok(Self {
                    name: name.to_owned(),
                    secret: secret.to_owned(),
                    key: key.to_owned(),
                })
            }
            // What is wrong may be a secret that was put there itself, so that it is not repeated.
            _ => Err(InvalidPodSetting(
                "write NAME=SECRET:KEY, with the name of a secret in the namespace and a key in it",
            )),
        }
    }
}

/// A variable with its value: `NAME=VALUE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvironmentPair {
    /// The variable.
    pub name: String,
    /// Its value, which everybody sees who may read Jobs.
    pub value: String,
}

impl FromStr for EnvironmentPair {
    type Err = InvalidPodSetting;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('=') {
            Some((name, value)) if is_variable(name) => Ok(Self {
                name: name.to_owned(),
                value: value.to_owned(),
            }),
            _ => Err(InvalidPodSetting("write NAME=VALUE")),
        }
    }
}

fn is_variable(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(is_part) && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// The name of an object: labels with dots between them.
pub(super) fn is_object_name(name: &str) -> bool {
    name.len() <= MAX_PREFIX && name.split('.').all(is_dns_label)
}

fn is_secret_key(key: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !key.is_empty() && key.len() <= MAX_PREFIX && key.chars().all(is_part)
}

fn is_label_name(name: &str) -> bool {
    let (prefix, name) = match name.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, name),
    };
    prefix.is_none_or(is_object_name) && !name.is_empty() && is_label_value(name)
}

fn is_label_value(value: &str) -> bool {
    let is_edge = |c: Option<char>| c.is_none_or(|c| c.is_ascii_alphanumeric());
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    value.len() <= MAX_PART
        && value.chars().all(is_part)
        && is_edge(value.chars().next())
        && is_edge(value.chars().last())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: FromStr<Err = InvalidPodSetting>>(texts: &[(&str, bool)]) {
        for (text, is_good) in texts {
            let read = text.parse::<T>();
            assert_eq!(read.is_ok(), *is_good, "{text}");
            if let Err(error) = read {
                assert!(!error.to_string().contains("hunter2"), "{error}");
            }
        }
    }

    #[test]
    fn what_kubernetes_takes_is_taken() {
        check::<Quantity>(&[
            ("500m", true),
            ("2", true),
            ("1.5Gi", true),
            ("", false),
            ("0", false),
            ("-1", false),
            ("1 Gi", false),
            ("1GB", false),
            ("1e9", false),
        ]);
        check::<PodLabel>(&[
            ("team=a", true),
            ("example.com/team=a.b_c", true),
            ("team=", true),
            ("team", false),
            ("=a", false),
            ("-a=b", false),
            ("a=b/c", false),
            ("a/b/c=d", false),
        ]);
        check::<PodToleration>(&[
            ("gpu", true),
            ("gpu=yes", true),
            ("gpu=yes:NoSchedule", true),
            ("gpu:NoExecute", true),
            ("gpu:Never", false),
            ("", false),
        ]);
        check::<SecretVariable>(&[
            ("OPENAI_API_KEY=models:openai", true),
            ("OPENAI_API_KEY=hunter2", false),
            ("OPENAI_API_KEY=hunter2/hunter2:x", false),
            ("1A=models:openai", false),
            ("A=models:", false),
        ]);
        check::<EnvironmentPair>(&[("A=b=c", true), ("A=", true), ("=b", false), ("A", false)]);
    }
}
