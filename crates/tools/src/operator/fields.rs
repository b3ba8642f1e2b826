//! The keys of what the operator configures: one table that the reader, the JSON Schema and the reference share.

use proofhouse_source::format::{FieldKind as Kind, FieldSpec, TypeSpec};

/// A text, or a number as it is written.
const TEXT_OR_NUMBER: Kind = Kind::Called("text", &Kind::Scalar(&["string", "integer"]));
/// A text that is a variable, or holds one.
const VARIABLE: Kind = Kind::Called("a variable such as `${NAME}`", &Kind::Matching(r"\$\{"));
const TEXTS: Kind = Kind::list(&Kind::Text);

const fn field(key: &'static str, kind: Kind, doc: &'static str) -> FieldSpec {
    FieldSpec::optional(key, kind, doc)
}

const fn needed(key: &'static str, kind: Kind, doc: &'static str) -> FieldSpec {
    FieldSpec::required(key, kind, "OC-004", doc)
}

pub(super) static OPERATOR: TypeSpec = TypeSpec {
    name: "Operator",
    doc: "What the operator configures. A file with none of these keys is all settings, by tool.",
    fields: &[
        field(
            "settings",
            Kind::map(&Kind::Object),
            "Settings by tool, such as demo/weather: {api_key: …}.",
        ),
        field(
            "auth",
            Kind::map(&Kind::AnyOf(&[
                Kind::Type(&STATIC),
                Kind::Type(&ENV),
                Kind::Type(&CLIENT_CREDENTIALS),
                Kind::Type(&REFRESH_TOKEN),
                Kind::Type(&GITHUB_APP),
            ])),
            "Providers of {auth.name()} by name, told apart by their type.",
        ),
        field(
            "egress",
            Kind::Type(&EGRESS),
            "Where tools may connect to besides the public internet.",
        ),
        field(
            "kubernetes",
            Kind::Type(&KUBERNETES),
            "The cluster that runs Jobs. Default: the one that kubectl uses.",
        ),
        field(
            "mcp",
            Kind::Type(&MCP),
            "Settings for MCP servers: variables for commands, authorization for URLs.",
        ),
        field(
            "webhooks",
            Kind::map(&Kind::Type(&WEBHOOK)),
            "How webhook deliveries are signed, by tool or source.",
        ),
        field(
            "sign_in",
            Kind::Type(&SIGN_IN),
            "The identity provider for the dashboard.",
        ),
        field(
            "trusted_proxies",
            TEXTS,
            "Networks or addresses of the proxies before the server, whose X-Forwarded-For or Forwarded is believed. Those of --trusted-proxy count too.",
        ),
        field(
            "retention",
            Kind::Type(&RETENTION),
            "How long the server keeps data. Flags of `serve` override it.",
        ),
        field(
            "prices",
            Kind::Type(&PRICES),
            "Model prices. Without them, costs are not shown.",
        ),
    ],
    extensions: false,
    exactly_one: None,
};

/// What a group may be granted: the roles of the API.
pub(super) const ROLES: &[&str] = &[
    "reader", "starter", "approver", "operator", "auditor", "admin",
];

pub(super) static SIGN_IN: TypeSpec = TypeSpec {
    name: "SignIn",
    doc: "An identity provider that speaks OpenID Connect, and what its groups allow.",
    fields: &[
        needed(
            "issuer",
            Kind::Text,
            "The URL of the provider, such as https://id.example.com.",
        ),
        needed("client_id", Kind::Text, "The client id of this server."),
        field(
            "client_secret",
            Kind::Text,
            "The client secret. Leave it out for a public client.",
        ),
        needed(
            "public_url",
            Kind::Text,
            "The public URL of this server. The redirect URL is /dashboard/oidc/callback below it.",
        ),
        field(
            "scopes",
            TEXTS,
            "The scopes to request besides openid. Default: profile and email.",
        ),
        field(
            "groups_claim",
            Kind::Text,
            "The claim of the ID token that lists a person's groups. Default: groups.",
        ),
        needed(
            "grants",
            Kind::list(&Kind::Type(&GRANT)),
            "The rights of each group. People in none of them cannot sign in.",
        ),
    ],
    extensions: false,
    exactly_one: None,
};

pub(super) static GRANT: TypeSpec = TypeSpec {
    name: "Grant",
    doc: "What a group allows.",
    fields: &[
        needed("group", Kind::Text, "The group."),
        needed(
            "role",
            Kind::AnyOf(&[Kind::Choice(ROLES), VARIABLE]),
            "The role of its members.",
        ),
        field(
            "namespaces",
            TEXTS,
            "The namespaces it applies to. Default: all.",
        ),
    ],
    extensions: false,
    exactly_one: None,
};

pub(super) static RETENTION: TypeSpec = TypeSpec {
    name: "Retention",
    doc: "How long a server keeps each kind of thing: a duration such as 30d, or forever.",
    fields: &[
        field(
            "idle_tasks",
            Kind::Text,
            "How long finished tasks are kept.",
        ),
        field("events", Kind::Text, "Events that everybody has got."),
        field("tasks", Kind::Text, "Tasks that have ended."),
        field("turns", Kind::Text, "Turns of tasks that have ended."),
        field("traces", Kind::Text, "Traces of tasks."),
        field(
            "keys",
            Kind::Text,
            "How long revoked and expired API keys are kept.",
        ),
        field(
            "audit",
            Kind::Text,
            "How long entries of the audit log are kept; a checkpoint that the key of --audit-key signs takes their place.",
        ),
    ],
    extensions: false,
    exactly_one: None,
};

/// A price, as a number or as text.
const PRICE: Kind = Kind::Scalar(&["number", "string"]);

pub(super) static PRICES: TypeSpec = TypeSpec {
    name: "Prices",
    doc: "What the tokens of models cost.",
    fields: &[
        needed(
            "currency",
            Kind::Text,
            "The currency of the prices, such as USD.",
        ),
        needed(
            "models",
            Kind::map(&Kind::Type(&MODEL_PRICE)),
            "Prices by model name, as models report it. A name that ends with * matches all names with this prefix.",
        ),
    ],
    extensions: false,
    exactly_one: None,
};

pub(super) static MODEL_PRICE: TypeSpec = TypeSpec {
    name: "ModelPrice",
    doc: "What a million tokens of a model cost.",
    fields: &[
        needed(
            "input",
            PRICE,
            "Price of a million input tokens, such as 1.25.",
        ),
        needed("output", PRICE, "A million tokens of replies, such as 10."),
    ],
    extensions: false,
    exactly_one: None,
};

pub(super) static EGRESS: TypeSpec = TypeSpec {
    name: "Egress",
    doc: "Where tools may connect to besides the public internet.",
    fields: &[
        field(
            "allow",
            TEXTS,
            "Networks such as 10.1.0.0/16 or fd00::/8, or addresses.",
        ),
        field(
            "hosts",
            Kind::map(&Kind::Text),
            "Fixed addresses of host names, such as api.example.com: 10.1.0.7 or 10.1.0.7:8443, instead of DNS.",
        ),
        field(
            "certificates",
            Kind::Text,
            "CA certificates to trust besides the public ones, as PEM.",
        ),
    ],
    extensions: false,
    exactly_one: None,
};

pub(super) static KUBERNETES: TypeSpec = TypeSpec {
    name: "Kubernetes",
    doc: "Which cluster runs Jobs, and in which namespaces.",
    fields: &[
        field("kubeconfig", Kind::SomeText, "The kubeconfig file."),
        field(
            "context",
            Kind::SomeText,
            "The context of the kubeconfig. Default: its current context.",
        ),
        field(
            "namespaces",
            Kind::List {
                of: &Kind::Text,
                min: 1,
                unique: false,
            },
            "The namespaces that may be used. Default: those that manifests name.",
        ),
        field(
            "in_cluster",
            Kind::Flag,
            "Whether to use the cluster that this program runs in.",
        ),
    ],
    extensions: false,
    exactly_one: None,
};

pub(super) static MCP: TypeSpec = TypeSpec {
    name: "Mcp",
    doc: "What MCP servers that are commands get, and how those at URLs are authorized with.",
    fields: &[
        field(
            "environment",
            Kind::Map {
                names: Some("^[A-Za-z_][A-Za-z0-9_]{0,199}$"),
                values: &TEXT_OR_NUMBER,
            },
            "Environment variables to add for commands.",
        ),
        field(
            "oauth",
            Kind::map(&Kind::Type(&MCP_OAUTH)),
            "How tools get tokens for their MCP servers, by tool, such as demo/tracker: {}.",
        ),
        field(
            "tokens",
            Kind::SomeText,
            "The directory for the encrypted tokens. Default: tokens are kept in memory only.",
        ),
        field(
            "token_key_file",
            Kind::SomeText,
            "The file with the encryption key, 32 bytes in base64. Default: the variable PROOFHOUSE_TOKEN_KEY.",
        ),
    ],
    extensions: false,
    exactly_one: None,
};

pub(super) static MCP_OAUTH: TypeSpec = TypeSpec {
    name: "McpOauth",
    doc: "How a tool gets tokens for its MCP server.",
    fields: &[
        field(
            "grant",
            Kind::AnyOf(&[Kind::Choice(GRANTS), VARIABLE]),
            "How to get tokens. Default: authorization_code, which needs a person's consent.",
        ),
        field(
            "client_id",
            TEXT_OR_NUMBER,
            "The id of a registered client. Default: the tool registers itself.",
        ),
        field("client_secret", TEXT_OR_NUMBER, "Its secret."),
        field(
            "private_key",
            Kind::Text,
            "The private key that replaces the client secret, as PEM: RSA or P-256.",
        ),
        field(
            "client_metadata_url",
            Kind::Text,
            "The URL of a client metadata document, used as the client id by servers that support it.",
        ),
        field(
            "client_name",
            Kind::SomeText,
            "The client name that people see on the consent page.",
        ),
        field(
            "issuer",
            Kind::Text,
            "The only authorization server to use, whatever the MCP server names.",
        ),
        field(
            "scope",
            Kind::OneOrMore(&Kind::Text),
            "The scopes to request. Default: those that the server names.",
        ),
        field(
            "consent",
            Kind::AnyOf(&[Kind::Choice(CONSENTS), VARIABLE]),
            "login, with `proofhouse tool login`, or automatic, if the server needs no consent. Default: login.",
        ),
        field(
            "redirect_port",
            TEXT_OR_NUMBER,
            "The port of the redirect URL on this machine. Default: any free port.",
        ),
        field(
            "assertion",
            Kind::Text,
            "Claims about the client, for jwt_bearer.",
        ),
        field(
            "idp_token_endpoint",
            Kind::Text,
            "The URL where the identity provider exchanges tokens, for cross_app.",
        ),
        field(
            "idp_client_id",
            TEXT_OR_NUMBER,
            "The client id at the identity provider, for cross_app.",
        ),
        field(
            "id_token",
            Kind::Text,
            "The identity token of the person, for cross_app.",
        ),
    ],
    extensions: false,
    exactly_one: None,
};

pub(super) const GRANTS: &[&str] = &[
    "authorization_code",
    "client_credentials",
    "jwt_bearer",
    "cross_app",
];
pub(super) const CONSENTS: &[&str] = &["login", "automatic"];

/// What a provider has before it is known which one it is.
pub(super) static PROVIDER: TypeSpec = TypeSpec {
    name: "Provider",
    doc: "A provider of tokens.",
    fields: &[needed("type", Kind::Text, "Which one.")],
    extensions: false,
    exactly_one: None,
};

pub(super) static STATIC: TypeSpec = TypeSpec {
    name: "Static",
    doc: "A token as it is.",
    fields: &[
        needed("type", Kind::Choice(&["static"]), "The provider."),
        needed(
            "token",
            TEXT_OR_NUMBER,
            "The token, best as a variable such as ${TOKEN}.",
        ),
        TOOLS,
        HOSTS,
    ],
    extensions: false,
    exactly_one: None,
};

pub(super) static ENV: TypeSpec = TypeSpec {
    name: "Env",
    doc: "A token from a variable of the environment.",
    fields: &[
        needed("type", Kind::Choice(&["env"]), "The provider."),
        needed("variable", Kind::Text, "The name of the variable."),
        TOOLS,
        HOSTS,
    ],
    extensions: false,
    exactly_one: None,
};

const TOOLS: FieldSpec = needed(
    "tools",
    Kind::OneOrMore(&Kind::Text),
    "The tools that may use its tokens: namespace/name, namespace/* or *.",
);
const HOSTS: FieldSpec = needed(
    "hosts",
    Kind::OneOrMore(&Kind::Text),
    "Hosts its tokens may be sent to: api.example.com, *.example.com, or *, which commands and Jobs need.",
);
const TOKEN_URL: FieldSpec = needed("token_url", Kind::Text, "Where tokens are asked for.");
const CLIENT_ID: FieldSpec = needed("client_id", TEXT_OR_NUMBER, "The id of the client.");
const AUTHENTICATION: FieldSpec = field(
    "authentication",
    Kind::AnyOf(&[
        Kind::Choice(&["client_secret_basic", "client_secret_post"]),
        VARIABLE,
    ]),
    "How the client authenticates. Default: client_secret_basic.",
);
const SCOPE: FieldSpec = field(
    "scope",
    Kind::OneOrMore(&Kind::Text),
    "The scopes to request.",
);
const AUDIENCE: FieldSpec = field("audience", TEXT_OR_NUMBER, "Whom the token is for.");
const PARAMETERS: FieldSpec = field(
    "parameters",
    Kind::map(&TEXT_OR_NUMBER),
    "Additional parameters of token requests.",
);

pub(super) static CLIENT_CREDENTIALS: TypeSpec = TypeSpec {
    name: "ClientCredentials",
    doc: "Tokens of a client of OAuth 2.0 that speaks for itself.",
    fields: &[
        needed(
            "type",
            Kind::Choice(&["client_credentials"]),
            "The provider.",
        ),
        TOKEN_URL,
        CLIENT_ID,
        needed("client_secret", TEXT_OR_NUMBER, "The secret of the client."),
        AUTHENTICATION,
        SCOPE,
        AUDIENCE,
        PARAMETERS,
        TOOLS,
        HOSTS,
    ],
    extensions: false,
    exactly_one: None,
};

pub(super) static REFRESH_TOKEN: TypeSpec = TypeSpec {
    name: "RefreshToken",
    doc: "Tokens of OAuth 2.0 for a refresh token.",
    fields: &[
        needed("type", Kind::Choice(&["refresh_token"]), "The provider."),
        TOKEN_URL,
        CLIENT_ID,
        needed("refresh_token", TEXT_OR_NUMBER, "The refresh token."),
        AUTHENTICATION,
        SCOPE,
        AUDIENCE,
        PARAMETERS,
        field(
            "client_secret",
            TEXT_OR_NUMBER,
            "The client secret, if there is one.",
        ),
        TOOLS,
        HOSTS,
    ],
    extensions: false,
    exactly_one: None,
};

pub(super) static GITHUB_APP: TypeSpec = TypeSpec {
    name: "GithubApp",
    doc: "Tokens of an installation of a GitHub App.",
    fields: &[
        needed("type", Kind::Choice(&["github_app"]), "The provider."),
        needed(
            "app_id",
            TEXT_OR_NUMBER,
            "The id of the app, or its client id.",
        ),
        needed("installation_id", TEXT_OR_NUMBER, "The installation."),
        needed(
            "private_key",
            Kind::Text,
            "The private key of the app, as PEM.",
        ),
        field(
            "api_url",
            Kind::Text,
            "The URL of the API. Default: github.com.",
        ),
        field(
            "repositories",
            TEXTS,
            "The repositories that tokens give access to.",
        ),
        field("permissions", Kind::Object, "The permissions of tokens."),
        TOOLS,
        HOSTS,
    ],
    extensions: false,
    exactly_one: None,
};

pub(super) static WEBHOOK: TypeSpec = TypeSpec {
    name: "Webhook",
    doc: "How a source signs what it posts, and what counts as the same again. Keys after dedupe_window are of schemes that need them.",
    fields: &[
        needed(
            "scheme",
            Kind::Called("the name of a scheme", &Kind::Text),
            "How a signature is made, such as github or hmac.",
        ),
        field("secret", Kind::Text, "The secret."),
        field("secrets", TEXTS, "Several secrets, any of which will do."),
        field(
            "dedupe",
            Kind::AnyOf(&[Kind::Choice(REPEATS), VARIABLE]),
            "How to detect repeated deliveries. Default: as the signature allows.",
        ),
        field("dedupe_window", Kind::Text, "For how long, such as 10m."),
        field(
            "header",
            Kind::Text,
            "The header with the signature. Required for the schemes hmac and token.",
        ),
        field(
            "hash",
            Kind::AnyOf(&[Kind::Choice(HASHES), VARIABLE]),
            "The hash function.",
        ),
        field(
            "encoding",
            Kind::AnyOf(&[Kind::Choice(ENCODINGS), VARIABLE]),
            "The encoding of the signature.",
        ),
        field("prefix", Kind::Text, "What stands before the signature."),
        field(
            "signed",
            Kind::Text,
            "The text that is signed, such as {timestamp}.{body}.",
        ),
        field(
            "timestamp_header",
            Kind::Text,
            "The header with the delivery time.",
        ),
        field("id_header", Kind::Text, "The header with the delivery id."),
        field(
            "separator",
            Kind::Text,
            "The character between several signatures in one header.",
        ),
        field(
            "timestamp_key",
            Kind::Text,
            "The key before the time, if the time is in the signature header.",
        ),
        field(
            "timestamp_format",
            Kind::AnyOf(&[Kind::Choice(FORMATS), VARIABLE]),
            "The format of the time. Default: seconds.",
        ),
        field(
            "tolerance",
            Kind::Text,
            "The largest accepted time difference. Default: 5m.",
        ),
        field(
            "url",
            Kind::Text,
            "The URL that the platform posts to. Required for the scheme twilio.",
        ),
    ],
    extensions: false,
    exactly_one: None,
};

/// How many keys of a webhook are of every scheme.
pub(super) const OF_EVERY_SCHEME: usize = 5;
const REPEATS: &[&str] = &["id", "body", "none"];
const FORMATS: &[&str] = &["seconds", "milliseconds", "rfc3339"];
pub(super) const HASHES: &[&str] = &["sha1", "sha256", "sha384", "sha512"];
pub(super) const ENCODINGS: &[&str] = &["hex", "base64"];

/// Every mapping below the file, for the schema and the reference.
pub(super) static ALL: [&TypeSpec; 15] = [
    &EGRESS,
    &KUBERNETES,
    &MCP,
    &MCP_OAUTH,
    &STATIC,
    &ENV,
    &CLIENT_CREDENTIALS,
    &REFRESH_TOKEN,
    &GITHUB_APP,
    &WEBHOOK,
    &SIGN_IN,
    &GRANT,
    &RETENTION,
    &PRICES,
    &MODEL_PRICE,
];
