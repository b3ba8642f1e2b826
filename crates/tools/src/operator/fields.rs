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
            "Where tools may connect to beside the public internet.",
        ),
        field(
            "kubernetes",
            Kind::Type(&KUBERNETES),
            "Which cluster runs Jobs; the one that kubectl would use when absent.",
        ),
        field(
            "mcp",
            Kind::Type(&MCP),
            "What MCP servers get: variables for commands, authorization for URLs.",
        ),
        field(
            "webhooks",
            Kind::map(&Kind::Type(&WEBHOOK)),
            "How deliveries are signed, by the tool or source they are posted to.",
        ),
        field(
            "sign_in",
            Kind::Type(&SIGN_IN),
            "The identity provider that people sign in to the dashboard with.",
        ),
        field(
            "retention",
            Kind::Type(&RETENTION),
            "How long a server keeps things; the flags of serve win.",
        ),
        field(
            "prices",
            Kind::Type(&PRICES),
            "What the tokens of models cost; without it, costs are not shown.",
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
            "The provider, such as https://id.example.com.",
        ),
        needed(
            "client_id",
            Kind::Text,
            "What the provider calls this server.",
        ),
        field(
            "client_secret",
            Kind::Text,
            "What this server proves that with; absent for a public client.",
        ),
        needed(
            "public_url",
            Kind::Text,
            "Where browsers reach this server; /dashboard/oidc/callback below it is what the provider sends them back to.",
        ),
        field(
            "scopes",
            TEXTS,
            "What is asked for beside openid; profile and email when absent.",
        ),
        field(
            "groups_claim",
            Kind::Text,
            "The claim of the ID token with the groups of a person; groups when absent.",
        ),
        needed(
            "grants",
            Kind::list(&Kind::Type(&GRANT)),
            "What groups allow; whoever is in none of them is not let in.",
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
            "What its people may do.",
        ),
        field(
            "namespaces",
            TEXTS,
            "The namespaces it holds in; all when absent.",
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
            "Tasks that are finished, until they end.",
        ),
        field("events", Kind::Text, "Events that everybody has got."),
        field("tasks", Kind::Text, "Tasks that have ended."),
        field("turns", Kind::Text, "Turns of tasks that have ended."),
        field("traces", Kind::Text, "Traces of tasks."),
        field(
            "keys",
            Kind::Text,
            "Keys of the API that were revoked or have expired.",
        ),
        field(
            "audit",
            Kind::Text,
            "Entries of the audit log; a checkpoint that the key of --audit-key signs takes their place.",
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
            "Prices by the name that a model has in its replies; one that ends with * is for all that begin so.",
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
            "A million tokens of questions, such as 1.25.",
        ),
        needed("output", PRICE, "A million tokens of replies, such as 10."),
    ],
    extensions: false,
    exactly_one: None,
};

pub(super) static EGRESS: TypeSpec = TypeSpec {
    name: "Egress",
    doc: "Where tools may connect to beside the public internet.",
    fields: &[
        field(
            "allow",
            TEXTS,
            "Networks such as 10.1.0.0/16 or fd00::/8, or addresses.",
        ),
        field(
            "hosts",
            Kind::map(&Kind::Text),
            "Addresses of names, such as api.example.com: 10.1.0.7 or 10.1.0.7:8443, whatever a name server says.",
        ),
        field(
            "certificates",
            Kind::Text,
            "Certificates of authorities that are believed beside the public ones, as PEM.",
        ),
    ],
    extensions: false,
    exactly_one: None,
};

pub(super) static KUBERNETES: TypeSpec = TypeSpec {
    name: "Kubernetes",
    doc: "Which cluster runs Jobs, and in which namespaces.",
    fields: &[
        field(
            "kubeconfig",
            Kind::SomeText,
            "The file that names clusters and holds the credentials.",
        ),
        field(
            "context",
            Kind::SomeText,
            "The context of the file, if not its current one.",
        ),
        field(
            "namespaces",
            Kind::List {
                of: &Kind::Text,
                min: 1,
                unique: false,
            },
            "The only namespaces that may be used; those that manifests name when absent.",
        ),
        field(
            "in_cluster",
            Kind::Flag,
            "Whether it is the cluster around this program.",
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
            "Variables that are added to the environment of commands.",
        ),
        field(
            "oauth",
            Kind::map(&Kind::Type(&MCP_OAUTH)),
            "How tools get tokens for their MCP servers, by tool, such as demo/tracker: {}.",
        ),
        field(
            "tokens",
            Kind::SomeText,
            "The directory in which these tokens are kept, sealed; in memory only when absent.",
        ),
        field(
            "token_key_file",
            Kind::SomeText,
            "The file with the key they are sealed with, 32 bytes in base64; PROOFHOUSE_TOKEN_KEY when absent.",
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
            "How tokens are got; authorization_code, for which a person agrees, when absent.",
        ),
        field(
            "client_id",
            TEXT_OR_NUMBER,
            "The id of a client that is registered; the tool registers by itself when absent.",
        ),
        field("client_secret", TEXT_OR_NUMBER, "Its secret."),
        field(
            "private_key",
            Kind::Text,
            "The key it signs with instead of a secret, as PEM: RSA or P-256.",
        ),
        field(
            "client_metadata_url",
            Kind::Text,
            "Where a document about the client is, which authorization servers may take for its id.",
        ),
        field(
            "client_name",
            Kind::SomeText,
            "What people read when they are asked to agree.",
        ),
        field(
            "issuer",
            Kind::Text,
            "The one authorization server that may be used, whatever the MCP server names.",
        ),
        field(
            "scope",
            Kind::OneOrMore(&Kind::Text),
            "The scopes to ask for; those that the server names when absent.",
        ),
        field(
            "consent",
            Kind::AnyOf(&[Kind::Choice(CONSENTS), VARIABLE]),
            "login, with `proofhouse tool login`, or automatic, where the server asks nobody; login when absent.",
        ),
        field(
            "redirect_port",
            TEXT_OR_NUMBER,
            "The port of this machine that people are sent back to; any when absent.",
        ),
        field(
            "assertion",
            Kind::Text,
            "What is said of the client, for jwt_bearer.",
        ),
        field(
            "idp_token_endpoint",
            Kind::Text,
            "Where the identity provider exchanges tokens, for cross_app.",
        ),
        field(
            "idp_client_id",
            TEXT_OR_NUMBER,
            "Which client the identity provider knows, for cross_app.",
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
        needed("type", Kind::Choice(&["static"]), "Which provider."),
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
        needed("type", Kind::Choice(&["env"]), "Which provider."),
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
    "Where its tokens may be sent: api.example.com, *.example.com or *, which commands and Jobs need.",
);
const TOKEN_URL: FieldSpec = needed("token_url", Kind::Text, "Where tokens are asked for.");
const CLIENT_ID: FieldSpec = needed("client_id", TEXT_OR_NUMBER, "The id of the client.");
const AUTHENTICATION: FieldSpec = field(
    "authentication",
    Kind::AnyOf(&[
        Kind::Choice(&["client_secret_basic", "client_secret_post"]),
        VARIABLE,
    ]),
    "How the client says who it is; client_secret_basic when absent.",
);
const SCOPE: FieldSpec = field(
    "scope",
    Kind::OneOrMore(&Kind::Text),
    "The scopes to ask for.",
);
const AUDIENCE: FieldSpec = field("audience", TEXT_OR_NUMBER, "Whom the token is for.");
const PARAMETERS: FieldSpec = field(
    "parameters",
    Kind::map(&TEXT_OR_NUMBER),
    "What a request for a token says beside that.",
);

pub(super) static CLIENT_CREDENTIALS: TypeSpec = TypeSpec {
    name: "ClientCredentials",
    doc: "Tokens of a client of OAuth 2.0 that speaks for itself.",
    fields: &[
        needed(
            "type",
            Kind::Choice(&["client_credentials"]),
            "Which provider.",
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
        needed("type", Kind::Choice(&["refresh_token"]), "Which provider."),
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
            "The secret of the client, if it has one.",
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
        needed("type", Kind::Choice(&["github_app"]), "Which provider."),
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
            "Where the API is; that of github.com when absent.",
        ),
        field(
            "repositories",
            TEXTS,
            "The only repositories that tokens are for.",
        ),
        field(
            "permissions",
            Kind::Object,
            "The only permissions that tokens have.",
        ),
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
            "By what a repeat is noticed; as the signature allows when absent.",
        ),
        field("dedupe_window", Kind::Text, "For how long, such as 10m."),
        field(
            "header",
            Kind::Text,
            "The header with the signature; the schemes hmac and token need it.",
        ),
        field(
            "hash",
            Kind::AnyOf(&[Kind::Choice(HASHES), VARIABLE]),
            "The hash.",
        ),
        field(
            "encoding",
            Kind::AnyOf(&[Kind::Choice(ENCODINGS), VARIABLE]),
            "How the signature is written.",
        ),
        field("prefix", Kind::Text, "What stands before the signature."),
        field(
            "signed",
            Kind::Text,
            "What is signed, such as {timestamp}.{body}.",
        ),
        field(
            "timestamp_header",
            Kind::Text,
            "The header with the time of the delivery.",
        ),
        field(
            "id_header",
            Kind::Text,
            "The header with the id of the delivery.",
        ),
        field(
            "separator",
            Kind::Text,
            "What stands between several signatures of one header, one character.",
        ),
        field(
            "timestamp_key",
            Kind::Text,
            "What stands before the time, where that is a part of the header with the signature.",
        ),
        field(
            "timestamp_format",
            Kind::AnyOf(&[Kind::Choice(FORMATS), VARIABLE]),
            "How the time is written; seconds when absent.",
        ),
        field(
            "tolerance",
            Kind::Text,
            "How far the time may be from ours; 5m when absent.",
        ),
        field(
            "url",
            Kind::Text,
            "The address that the platform posts to; the scheme twilio needs it.",
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
