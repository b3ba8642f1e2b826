//! Places for traces: a directory, or the object store of a cloud with credentials from the environment.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, RetryConfig};
use proofhouse_subjects::{EnvironmentLookup, without_credentials};
use proofhouse_wire::{ProxySettings, Url};

use crate::object_http::ObjectHttp;

/// How often a request to a store is repeated, and for how long.
const RETRIES: usize = 5;
const RETRY_TIME: Duration = Duration::from_secs(60);

/// What S3 takes from the environment, under the names that the tools of AWS have for it.
const S3_VARIABLES: [&str; 18] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_ENDPOINT_URL_STS",
    "AWS_ALLOW_HTTP",
    "AWS_VIRTUAL_HOSTED_STYLE_REQUEST",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_ROLE_ARN",
    "AWS_ROLE_SESSION_NAME",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_SERVER_SIDE_ENCRYPTION",
    "AWS_SSE_KMS_KEY_ID",
];

/// What Google Cloud Storage takes from the environment.
const GOOGLE_VARIABLES: [&str; 6] = [
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_SERVICE_ACCOUNT",
    "GOOGLE_SERVICE_ACCOUNT_KEY",
    "GOOGLE_BEARER_TOKEN",
    "GOOGLE_BASE_URL",
    "GOOGLE_SKIP_SIGNATURE",
];

/// What Azure takes from the environment, and what the crate calls it where that is not the same.
const AZURE_VARIABLES: [(&str, &str); 14] = [
    ("AZURE_STORAGE_ACCOUNT", "account_name"),
    ("AZURE_STORAGE_KEY", "account_key"),
    ("AZURE_STORAGE_ACCOUNT_NAME", "account_name"),
    ("AZURE_STORAGE_ACCOUNT_KEY", "account_key"),
    ("AZURE_STORAGE_SAS_TOKEN", "sas_token"),
    ("AZURE_CLIENT_ID", "client_id"),
    ("AZURE_CLIENT_SECRET", "client_secret"),
    ("AZURE_TENANT_ID", "tenant_id"),
    ("AZURE_AUTHORITY_HOST", "authority_host"),
    ("AZURE_FEDERATED_TOKEN_FILE", "federated_token_file"),
    ("AZURE_STORAGE_ENDPOINT", "endpoint"),
    ("AZURE_STORAGE_USE_EMULATOR", "use_emulator"),
    ("AZURE_SKIP_SIGNATURE", "skip_signature"),
    ("AZURE_ALLOW_HTTP", "azure_allow_http"),
];

/// Why a place for traces is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {reason}")]
pub struct TracePlaceError {
    /// The place, without credentials.
    pub place: String,
    /// What is wrong with it.
    pub reason: String,
}

/// A place for traces. It names no credentials, so it can be kept in the store and be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracePlace {
    text: String,
    kind: PlaceKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PlaceKind {
    Directory(PathBuf),
    S3(Url),
    Google(Url),
    Azure(Url),
}

impl fmt::Display for TracePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for TracePlace {
    type Err = TracePlaceError;

    fn from_str(text: &str) -> Result<Self, TracePlaceError> {
        let wrong = |reason: &str| TracePlaceError {
            place: without_credentials(text),
            reason: reason.to_owned(),
        };
        let kind = if text.contains("://") {
            let url = Url::parse(text).map_err(|error| wrong(&error.to_string()))?;
            kind_of(url).map_err(wrong)?
        } else if text.is_empty() {
            return Err(wrong("name a directory or a URL"));
        } else {
            PlaceKind::Directory(PathBuf::from(text))
        };
        Ok(Self {
            text: text.to_owned(),
            kind,
        })
    }
}

/// The place that a URL names.
fn kind_of(url: Url) -> Result<PlaceKind, &'static str> {
    // `abfss://CONTAINER@ACCOUNT.dfs.core.windows.net` is a name, not a login.
    let has_container = url.scheme().starts_with("abfs");
    let has_login = url.password().is_some() || (!url.username().is_empty() && !has_container);
    if has_login || url.query().is_some() || url.fragment().is_some() {
        return Err(
            "the URL may hold no credentials and no parameters, because it is kept in the store; \
             they come from the environment",
        );
    }
    if url.scheme() == "file" {
        let path = url.to_file_path();
        let path = path.map_err(|()| "this is not a path of this machine")?;
        return Ok(PlaceKind::Directory(path));
    }
    if url.host_str().unwrap_or_default().is_empty() {
        return Err("the URL names no bucket");
    }
    match url.scheme() {
        "s3" | "s3a" => Ok(PlaceKind::S3(url)),
        "gs" => Ok(PlaceKind::Google(url)),
        "az" | "azure" | "abfs" | "abfss" => Ok(PlaceKind::Azure(url)),
        _ => Err("name a directory, or a URL that begins with file, s3, gs, az or abfss"),
    }
}

/// What a place needs of the machine.
#[derive(Clone)]
pub struct TraceAccess {
    /// Where credentials and endpoints come from.
    pub environment: EnvironmentLookup,
    /// What requests go through.
    pub proxies: ProxySettings,
}

/// A place that was opened.
pub(crate) struct OpenedPlace {
    pub(crate) store: Arc<dyn ObjectStore>,
    /// Where traces begin in it.
    pub(crate) prefix: Path,
    /// Texts that must not be told.
    pub(crate) secrets: Vec<String>,
}

impl TracePlace {
    /// Opens the place. Nothing is asked of it yet.
    pub(crate) fn open(&self, access: &TraceAccess) -> Result<OpenedPlace, TracePlaceError> {
        let mut secrets = Vec::new();
        let mut variable = |name: &str| {
            let value = (access.environment)(name).filter(|value| !value.is_empty())?;
            if is_secret(name) {
                secrets.push(value.clone());
            }
            Some(value)
        };
        let opened = match &self.kind {
            PlaceKind::Directory(path) => directory(path),
            PlaceKind::S3(url) => s3(url, &mut variable, access),
            PlaceKind::Google(url) => google(url, &mut variable, access),
            PlaceKind::Azure(url) => azure(url, &mut variable, access),
        };
        let (store, prefix) = opened.map_err(|error| TracePlaceError {
            place: self.text.clone(),
            reason: redacted(&error.to_string(), &secrets),
        })?;
        Ok(OpenedPlace {
            store,
            prefix,
            secrets,
        })
    }
}

type Opened = object_store::Result<(Arc<dyn ObjectStore>, Path)>;

fn directory(path: &std::path::Path) -> Opened {
    let absolute = std::path::absolute(path).map_err(|error| object_store::Error::Generic {
        store: "directory",
        source: Box::new(error),
    })?;
    let prefix = Path::from_absolute_path(absolute)?;
    Ok((Arc::new(LocalFileSystem::new()), prefix))
}

fn retries() -> RetryConfig {
    RetryConfig {
        max_retries: RETRIES,
        retry_timeout: RETRY_TIME,
        ..RetryConfig::default()
    }
}

fn connector(access: &TraceAccess) -> object_store::Result<ObjectHttp> {
    let made = ObjectHttp::new(access.proxies.clone());
    made.map_err(|error| object_store::Error::Generic {
        store: "HTTP",
        source: Box::new(error),
    })
}

fn s3(url: &Url, variable: &mut dyn FnMut(&str) -> Option<String>, access: &TraceAccess) -> Opened {
    let mut builder = AmazonS3Builder::new();
    for name in S3_VARIABLES {
        if let Some(value) = variable(name) {
            builder = builder.with_config(name.to_ascii_lowercase().parse()?, value);
        }
    }
    let builder = builder
        .with_url(url.as_str())
        .with_retry(retries())
        .with_http_connector(connector(access)?);
    Ok((Arc::new(builder.build()?), Path::from_url_path(url.path())?))
}

fn google(
    url: &Url,
    variable: &mut dyn FnMut(&str) -> Option<String>,
    access: &TraceAccess,
) -> Opened {
    let mut builder = GoogleCloudStorageBuilder::new();
    for name in GOOGLE_VARIABLES {
        if let Some(value) = variable(name) {
            builder = builder.with_config(name.to_ascii_lowercase().parse()?, value);
        }
    }
    let builder = builder
        .with_url(url.as_str())
        .with_retry(retries())
        .with_http_connector(connector(access)?);
    Ok((Arc::new(builder.build()?), Path::from_url_path(url.path())?))
}

fn azure(
    url: &Url,
    variable: &mut dyn FnMut(&str) -> Option<String>,
    access: &TraceAccess,
) -> Opened {
    let mut builder = MicrosoftAzureBuilder::new();
    for (name, key) in AZURE_VARIABLES {
        if let Some(value) = variable(name) {
            builder = builder.with_config(key.parse()?, value);
        }
    }
    let builder = builder
        .with_url(url.as_str())
        .with_retry(retries())
        .with_http_connector(connector(access)?);
    Ok((Arc::new(builder.build()?), Path::from_url_path(url.path())?))
}

/// Whether what a variable holds must not be told.
fn is_secret(name: &str) -> bool {
    let holds = ["KEY", "SECRET", "TOKEN"]
        .iter()
        .any(|part| name.contains(part));
    holds && !name.ends_with("_FILE")
}

/// A text without secrets.
pub(crate) fn redacted(text: &str, secrets: &[String]) -> String {
    let mut told = text.to_owned();
    for secret in secrets {
        told = told.replace(secret.as_str(), "…");
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(variables: &'static [(&'static str, &'static str)]) -> TraceAccess {
        TraceAccess {
            environment: Arc::new(move |wanted| {
                let found = variables.iter().find(|(name, _)| *name == wanted);
                found.map(|(_, value)| (*value).to_owned())
            }),
            proxies: ProxySettings::default(),
        }
    }

    #[test]
    fn places_are_directories_and_urls_without_credentials() {
        for place in [
            "traces",
            "/srv/traces",
            "file:///srv/traces",
            "s3://bucket",
            "s3://bucket/some/prefix",
            "gs://bucket/prefix",
            "az://container/prefix",
            "abfss://container@account.dfs.core.windows.net/prefix",
        ] {
            let parsed: TracePlace = place.parse().unwrap();
            assert_eq!(parsed.to_string(), place);
        }
        for place in [
            "",
            "ftp://host/traces",
            "https://host/traces",
            "s3:///traces",
            "s3://key:hunter2@bucket/traces",
            "s3://hunter2@bucket/traces",
            "az://container/traces?sig=hunter2",
            "abfss://container:hunter2@account.dfs.core.windows.net/prefix",
        ] {
            let refused = place.parse::<TracePlace>().unwrap_err();
            assert!(!refused.to_string().contains("hunter2"), "{refused}");
        }
    }

    #[test]
    fn every_variable_is_known_to_its_store() {
        for name in S3_VARIABLES {
            let key = name.to_ascii_lowercase();
            assert!(
                key.parse::<object_store::aws::AmazonS3ConfigKey>().is_ok(),
                "{name}"
            );
        }
        for name in GOOGLE_VARIABLES {
            let key = name.to_ascii_lowercase();
            assert!(
                key.parse::<object_store::gcp::GoogleConfigKey>().is_ok(),
                "{name}"
            );
        }
        for (name, key) in AZURE_VARIABLES {
            assert!(
                key.parse::<object_store::azure::AzureConfigKey>().is_ok(),
                "{name}"
            );
        }
    }

    #[test]
    fn all_clouds_are_opened_with_what_the_environment_says() {
        let azure = access(&[
            ("AZURE_STORAGE_ACCOUNT", "account"),
            ("AZURE_STORAGE_KEY", "c2VjcmV0"),
        ]);
        let s3 = access(&[
            ("AWS_ACCESS_KEY_ID", "id"),
            ("AWS_SECRET_ACCESS_KEY", "hunter2"),
        ]);
        let google = access(&[("GOOGLE_BEARER_TOKEN", "hunter2")]);
        for (place, access, prefix, secrets) in [
            ("az://container/a/b", &azure, "a/b", 1),
            ("s3://bucket/a%20b/", &s3, "a b", 2),
            ("gs://bucket", &google, "", 1),
        ] {
            let opened = place.parse::<TracePlace>().unwrap().open(access).unwrap();
            assert_eq!(opened.prefix.as_ref(), prefix, "{place}");
            assert_eq!(opened.secrets.len(), secrets, "{place}");
        }
        // Half of what is needed is told at once, and without the other half.
        let half = access(&[("AWS_SECRET_ACCESS_KEY", "hunter2")]);
        let place: TracePlace = "s3://bucket".parse().unwrap();
        let refused = place.open(&half).err().unwrap();
        assert!(!refused.to_string().contains("hunter2"), "{refused}");
    }
}
