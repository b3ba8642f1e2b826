//! Reads the `auth` block: one provider per name, told apart by `type`.

use proofhouse_source::format::{FormatReader, TypeSpec};
use proofhouse_source::{NodeRef, PathSegment};
use serde_json::{Map, Value};
use url::{Host, Url};

use super::fields::{CLIENT_CREDENTIALS, ENV, GITHUB_APP, PROVIDER, REFRESH_TOKEN, STATIC};
use super::reader::{OperatorFields, OperatorReader};
use super::variables::is_name;
use crate::auth::{
    AuthConfig, ClientAuthentication, ClientCredentials, GithubApp, KeyError, OauthClient,
    ProviderBinding, ProviderConfig, RefreshToken, SigningKey,
};
use proofhouse_manifest::interpolate::{NotAHost, Root, Sealed, Template, TokenHosts};

/// What a request for a token says by itself.
const TAKEN: [&str; 6] = [
    "grant_type",
    "scope",
    "client_id",
    "client_secret",
    "refresh_token",
    "audience",
];

const GITHUB_API: &str = "https://api.github.com";

/// One type of provider.
struct ProviderType {
    /// Its name in the operator's file.
    name: &'static str,
    /// What a mapping of it has.
    spec: &'static TypeSpec,
    /// Reads one in which everything that is needed is there.
    read: fn(&mut Block<'_, '_, '_>) -> Option<ProviderConfig>,
}

/// Every type of provider, in the order in which messages name them.
static TYPES: [ProviderType; 5] = [
    ProviderType {
        name: "static",
        spec: &STATIC,
        read: |block| block.secret("token").map(ProviderConfig::Fixed),
    },
    ProviderType {
        name: "env",
        spec: &ENV,
        read: |block| block.variable().map(ProviderConfig::Fixed),
    },
    ProviderType {
        name: "client_credentials",
        spec: &CLIENT_CREDENTIALS,
        read: |block| {
            let client = block.client()?;
            Some(ProviderConfig::ClientCredentials(ClientCredentials {
                client,
            }))
        },
    },
    ProviderType {
        name: "refresh_token",
        spec: &REFRESH_TOKEN,
        read: |block| {
            let refresh_token = block.secret("refresh_token");
            Some(ProviderConfig::RefreshToken(RefreshToken {
                client: block.client()?,
                refresh_token: refresh_token?,
            }))
        },
    },
    ProviderType {
        name: "github_app",
        spec: &GITHUB_APP,
        read: |block| block.github_app().map(ProviderConfig::GithubApp),
    },
];

/// Reads all providers; those with errors are left out.
pub(super) fn read_all<'s>(node: NodeRef<'s>, reader: &mut OperatorReader<'s, '_>) -> AuthConfig {
    let mut config = AuthConfig::default();
    let Some(entries) = node.entries() else {
        reader.mismatch(node, "a mapping");
        return config;
    };
    for (name, node) in entries {
        reader.within(PathSegment::Key(name), |reader| {
            if !can_be_referred_to(name) {
                reader.error(
                    "OC-005",
                    "a provider of this name cannot be referred to as `{auth.name()}`".to_owned(),
                    Some("use letters, digits, `_` and `-`".to_owned()),
                );
            } else if let Some((provider, binding)) = read(node, reader) {
                config.insert(name, provider, binding);
            }
        });
    }
    config
}

fn can_be_referred_to(name: &str) -> bool {
    let template = Template::parse(&format!("{{auth.{name}()}}"));
    template
        .whole()
        .is_some_and(|found| found.root == Root::Auth && found.path.join(".") == name)
}

fn read<'s>(
    node: NodeRef<'s>,
    reader: &mut OperatorReader<'s, '_>,
) -> Option<(ProviderConfig, ProviderBinding)> {
    if !reader.is_mapping(node) {
        return None;
    }
    let found = reader.peek(node, &PROVIDER).read("type", |reader, node| {
        let of = reader.text(node)?;
        let found = TYPES.iter().find(|known| known.name == of);
        if found.is_none() {
            reader.unknown_word(&of, &TYPES.each_ref().map(|known| known.name));
        }
        found
    });
    let found = found?;
    let mut block = Block {
        fields: reader.fields(node, found.spec)?,
    };
    if block.fields.has_all_required() {
        let (provider, binding) = ((found.read)(&mut block), block.binding());
        provider.zip(binding)
    } else {
        None
    }
}

/// A mapping of secrets and addresses, such as that of one provider, in which everything that is needed is there.
pub(super) struct Block<'r, 's, 'l> {
    fields: OperatorFields<'r, 's, 'l>,
}

impl<'r, 's, 'l> Block<'r, 's, 'l> {
    pub(super) fn new(fields: OperatorFields<'r, 's, 'l>) -> Self {
        Self { fields }
    }

    /// The reader, when all fields are read.
    pub(super) fn into_reader(self) -> &'r mut OperatorReader<'s, 'l> {
        self.fields.reader
    }

    fn read<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&mut OperatorReader<'s, 'l>, NodeRef<'s>) -> Option<T>,
    ) -> Option<T> {
        if self.has(key) {
            self.fields.read(key, read)
        } else {
            None
        }
    }

    fn has(&self, key: &str) -> bool {
        self.fields.has(key)
    }

    pub(super) fn text(&mut self, key: &'static str) -> Option<String> {
        self.read(key, |reader, node| {
            let text = reader.text_or_number(node)?;
            if text.trim().is_empty() {
                reader.error("OC-005", format!("`{key}` is an empty text"), None);
                return None;
            }
            Some(text)
        })
    }

    pub(super) fn secret(&mut self, key: &'static str) -> Option<Sealed<String>> {
        // What a file or a shell leaves at the end of a secret is no part of it.
        self.text(key)
            .map(|text| Sealed::new(text.trim_end_matches(['\r', '\n']).to_owned()))
    }

    /// To whom the tokens belong.
    fn binding(&mut self) -> Option<ProviderBinding> {
        let wrong = "this is no tool; write `namespace/name`, `namespace/*` or `*`";
        let tools = self.each("tools", wrong, |text| {
            let is_part = |part: &str| !(part.is_empty() || part.contains(['/', ' ']));
            let is_tool = text.split_once('/').is_some_and(|(namespace, name)| {
                is_part(namespace) && is_part(name) && !namespace.contains('*')
            });
            (is_tool || text == "*").then(|| text.to_owned())
        });
        let wrong = &NotAHost.to_string();
        let hosts = self.each("hosts", wrong, |text| TokenHosts::parse([text]).ok());
        Some(ProviderBinding {
            tools: tools?,
            hosts: hosts?.into_iter().reduce(TokenHosts::and)?,
        })
    }

    /// One or more texts, each of which is something; nothing if one is not.
    fn each<T>(
        &mut self,
        key: &'static str,
        wrong: &str,
        of: impl Fn(&str) -> Option<T>,
    ) -> Option<Vec<T>> {
        self.read(key, |reader, node| {
            let texts: Vec<String> = match node.items() {
                Some(_) => reader
                    .texts(node)
                    .into_iter()
                    .map(|(text, _)| text)
                    .collect(),
                None => reader.text(node).into_iter().collect(),
            };
            let found: Option<Vec<T>> = texts.iter().map(|text| of(text.trim())).collect();
            let found = found.filter(|found| !found.is_empty());
            if found.is_none() {
                reader.error("OC-005", wrong.to_owned(), None);
            }
            found
        })
    }

    fn variable(&mut self) -> Option<Sealed<String>> {
        self.read("variable", |reader, node| {
            let name = reader.text(node)?;
            if !is_name(&name) {
                let message = "this cannot be the name of an environment variable".to_owned();
                let help = Some("to write the token itself, use `type: static`".to_owned());
                reader.error("OC-005", message, help);
                return None;
            }
            let value = reader.variable(&name)?;
            let value = value.trim_end_matches(['\r', '\n']);
            if value.is_empty() {
                let message = format!("the environment variable `{name}` is empty");
                reader.error(super::NOT_SET, message, None);
                return None;
            }
            Some(Sealed::new(value.to_owned()))
        })
    }

    /// One of the words of the table.
    pub(super) fn word(&mut self, key: &'static str) -> Option<&'static str> {
        if self.has(key) {
            self.fields.word(key)
        } else {
            None
        }
    }

    /// One or more words.
    pub(super) fn words(&mut self, key: &'static str) -> Vec<String> {
        let wrong = format!("`{key}` is an empty text");
        let texts = self.each(key, &wrong, |text| {
            (!text.is_empty()).then(|| text.to_owned())
        });
        let texts = texts.unwrap_or_default();
        let words = texts.iter().flat_map(|text| text.split_whitespace());
        words.map(str::to_owned).collect()
    }

    /// A port of this machine.
    pub(super) fn port(&mut self, key: &'static str) -> Option<u16> {
        self.read(key, |reader, node| {
            let port = reader.text_or_number(node)?.trim().parse().ok();
            if port.is_none() {
                let message = format!("`{key}` must be a number up to 65535");
                reader.error("OC-005", message, None);
            }
            port
        })
    }

    /// A private key.
    pub(super) fn key(
        &mut self,
        key: &'static str,
        from_pem: fn(&str) -> Result<SigningKey, KeyError>,
    ) -> Option<SigningKey> {
        self.read(key, |reader, node| {
            let text = reader.text(node)?;
            match from_pem(&text) {
                Ok(key) => Some(key),
                Err(error) => {
                    let message = format!("`{key}` cannot be used: {error}");
                    reader.error("OC-005", message, None);
                    None
                }
            }
        })
    }

    pub(super) fn url(&mut self, key: &'static str) -> Option<Url> {
        self.read(key, |reader, node| {
            let text = reader.text(node)?;
            let url = Url::parse(text.trim()).ok().filter(|url| {
                matches!(url.scheme(), "http" | "https")
                    && url.host().is_some()
                    && url.username().is_empty()
                    && url.password().is_none()
            });
            match &url {
                None => reader.error(
                    "OC-005",
                    "this is not a URL of http or https without a user name".to_owned(),
                    None,
                ),
                Some(url) if url.scheme() == "http" && !is_this_machine(url) => reader.warn(
                    "OC-009",
                    "secrets would be sent there without TLS".to_owned(),
                    Some("use `https://`".to_owned()),
                ),
                Some(_) => {}
            }
            url
        })
    }

    fn client(&mut self) -> Option<OauthClient> {
        let token_url = self.url("token_url");
        let id = self.text("client_id");
        let (has_secret, secret) = (self.has("client_secret"), self.secret("client_secret"));
        let authentication = self.word("authentication").map(|word| {
            if word == "client_secret_post" {
                ClientAuthentication::Post
            } else {
                ClientAuthentication::Basic
            }
        });
        let scope = self.read("scope", |reader, node| match node.items() {
            Some(_) => {
                let words = reader.texts(node).into_iter().map(|(word, _)| word);
                Some(words.collect::<Vec<_>>().join(" "))
            }
            None => reader.text(node),
        });
        let audience = self.text("audience");
        let mut parameters: Vec<(String, Sealed<String>)> = audience
            .map(|audience| ("audience".to_owned(), Sealed::new(audience)))
            .into_iter()
            .collect();
        parameters.extend(self.read("parameters", read_parameters).unwrap_or_default());
        Some(OauthClient {
            token_url: token_url?,
            id: id?,
            secret: match (has_secret, secret) {
                (true, None) => return None,
                (_, secret) => secret,
            },
            authentication: authentication.unwrap_or_default(),
            scope,
            parameters,
        })
    }

    fn github_app(&mut self) -> Option<GithubApp> {
        let app_id = self.text("app_id");
        let installation_id = self.read("installation_id", |reader, node| {
            let number = reader.text_or_number(node)?.trim().parse().ok();
            if number.is_none() {
                let message = "`installation_id` must be a number".to_owned();
                reader.error("OC-005", message, None);
            }
            number
        });
        let key = self.key("private_key", SigningKey::rsa_from_pem);
        let api_url = if self.has("api_url") {
            self.url("api_url")
        } else {
            Url::parse(GITHUB_API).ok()
        };
        let repositories = self.read("repositories", |reader, node| {
            Some(
                reader
                    .texts(node)
                    .into_iter()
                    .map(|(name, _)| name)
                    .collect(),
            )
        });
        let permissions = self.read("permissions", |reader, node| {
            reader.is_mapping(node).then(|| reader.value(node))
        });
        Some(GithubApp {
            api_url: api_url?,
            app_id: app_id?,
            installation_id: installation_id?,
            key: key?,
            repositories: repositories.unwrap_or_default(),
            permissions: match permissions {
                Some(Value::Object(permissions)) => permissions,
                _ => Map::new(),
            },
        })
    }
}

/// More that a request for a token says.
fn read_parameters<'s>(
    reader: &mut OperatorReader<'s, '_>,
    node: NodeRef<'s>,
) -> Option<Vec<(String, Sealed<String>)>> {
    if !reader.is_mapping(node) {
        return None;
    }
    let mut parameters = Vec::new();
    for (name, node) in node.entries().into_iter().flatten() {
        reader.within(PathSegment::Key(name), |reader| {
            if TAKEN.contains(&name) {
                let message =
                    "this parameter has a key of its own, or is not to be chosen".to_owned();
                reader.error("OC-005", message, None);
            } else if let Some(value) = reader.text_or_number(node) {
                parameters.push((name.to_owned(), Sealed::new(value)));
            }
        });
    }
    Some(parameters)
}

fn is_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
