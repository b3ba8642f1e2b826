//! The `sign_in` block: the identity provider that people sign in to the dashboard with, and what their groups allow.

use proofhouse_source::NodeRef;
use proofhouse_source::format::FormatReader;
use proofhouse_wire::{Url, is_this_machine};

use super::fields::{GRANT, SIGN_IN};
use super::reader::OperatorReader;
use proofhouse_manifest::interpolate::Sealed;

/// The claim that groups are read from without another word.
const GROUPS: &str = "groups";

/// An identity provider, and what its groups allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignInConfig {
    /// Where the provider is; its configuration is at `/.well-known/openid-configuration` below.
    pub issuer: Url,
    /// What the provider calls this server.
    pub client_id: String,
    /// What this server proves that with; none for a public client.
    pub client_secret: Option<Sealed<String>>,
    /// Where browsers reach this server.
    pub public_url: Url,
    /// Scopes that are asked for beside `openid`.
    pub scopes: Vec<String>,
    /// The claim with the groups of a person.
    pub groups_claim: String,
    /// What groups allow. Whoever is in none of them is not let in.
    pub grants: Vec<GroupGrant>,
}

/// What a group allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupGrant {
    /// The group.
    pub group: String,
    /// The role: one of [`super::ACCESS_ROLES`].
    pub role: String,
    /// The namespaces it holds in; all if there is no list.
    pub namespaces: Option<Vec<String>>,
}

/// Reads the block; nothing if it has an error.
pub(super) fn read<'s>(
    node: NodeRef<'s>,
    reader: &mut OperatorReader<'s, '_>,
) -> Option<SignInConfig> {
    let before = reader.findings();
    let mut fields = reader.fields(node, &SIGN_IN)?;
    let issuer = fields.read("issuer", |reader, node| address(node, reader));
    let client_id = fields.text("client_id");
    let client_secret = fields.text("client_secret").map(Sealed::new);
    let public_url = fields.read("public_url", |reader, node| address(node, reader));
    let scopes = fields.texts("scopes");
    let groups_claim = fields.text("groups_claim");
    let grants = fields.list("grants", grant);
    if reader.findings() != before {
        return None;
    }
    Some(SignInConfig {
        issuer: issuer?,
        client_id: client_id?,
        client_secret,
        public_url: public_url?,
        scopes: scopes.unwrap_or_else(|| vec!["profile".to_owned(), "email".to_owned()]),
        groups_claim: groups_claim.unwrap_or_else(|| GROUPS.to_owned()),
        grants: grants?,
    })
}

/// An address that is spoken to over TLS, or is this machine.
fn address<'s>(node: NodeRef<'s>, reader: &mut OperatorReader<'s, '_>) -> Option<Url> {
    let text = reader.text(node)?;
    let found = Url::parse(&text).ok().filter(|url| {
        let is_safe = url.scheme() == "https"
            || url.scheme() == "http" && url.host_str().is_some_and(is_this_machine);
        let is_plain = url.query().is_none() && url.fragment().is_none();
        is_safe && is_plain && url.username().is_empty() && url.password().is_none()
    });
    if found.is_none() {
        let message = "this is not an address that begins with https://".to_owned();
        let help = "write for example `https://id.example.com`".to_owned();
        reader.error("OC-005", message, Some(help));
    }
    found
}

fn grant<'s>(reader: &mut OperatorReader<'s, '_>, node: NodeRef<'s>) -> Option<GroupGrant> {
    let mut fields = reader.fields(node, &GRANT)?;
    let group = fields.text("group");
    let role = fields.word("role").map(str::to_owned);
    let namespaces = fields.texts("namespaces");
    Some(GroupGrant {
        group: group?,
        role: role?,
        namespaces,
    })
}
