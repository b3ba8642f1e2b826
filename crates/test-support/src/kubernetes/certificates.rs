//! Certificates made on the spot: an authority, and what it vouches for.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData as _,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use serde_json::{Value, json};

/// The authority of one cluster.
pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    der: CertificateDer<'static>,
}

/// A certificate with its key.
pub(super) struct ClusterIdentity {
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
}

impl Authority {
    pub(super) fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let name = &mut params.distinguished_name;
        name.push(DnType::CommonName, "proofhouse tests");
        let der = params.self_signed(&key).unwrap().der().clone();
        Self {
            issuer: Issuer::new(params, key),
            der,
        }
    }

    /// Vouches for a server on the loopback address, or for a user in a group.
    pub(super) fn vouch(&self, name: &str, group: Option<&str>) -> ClusterIdentity {
        let key = KeyPair::generate().unwrap();
        let names = ["127.0.0.1".to_owned(), "localhost".to_owned()];
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        if let Some(group) = group {
            let organization = DnType::OrganizationName;
            params.distinguished_name.push(organization, group);
        }
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        ClusterIdentity {
            certificate: certificate.der().clone(),
            key: key.serialize_der(),
        }
    }

    /// Its certificate in a file.
    pub(super) fn write(&self, directory: &Path) -> PathBuf {
        let file = directory.join("ca.crt");
        std::fs::write(&file, pem("CERTIFICATE", &self.der)).unwrap();
        file
    }

    /// A kubeconfig for a user at an address.
    pub(super) fn kubeconfig(&self, server: &str, user: &Value) -> Value {
        let authority = STANDARD.encode(pem("CERTIFICATE", &self.der));
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": server, "certificate-authority-data": authority}}],
            "users": [{"name": "test", "user": user}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        })
    }

    /// What a server needs that only speaks with clients of this authority.
    pub(super) fn server(&self) -> Arc<ServerConfig> {
        let identity = self.vouch("node", None);
        let mut roots = RootCertStore::empty();
        roots.add(self.der.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let clients =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(clients.build().unwrap())
            .with_single_cert(
                vec![identity.certificate],
                PrivateKeyDer::Pkcs8(identity.key.into()),
            );
        Arc::new(config.unwrap())
    }
}

impl ClusterIdentity {
    /// The certificate and the key in files.
    pub(super) fn write(&self, directory: &Path, name: &str) -> [PathBuf; 2] {
        let [certificate, key] = self.pem();
        let files = ["crt", "key"].map(|ending| directory.join(format!("{name}.{ending}")));
        std::fs::write(&files[0], certificate).unwrap();
        std::fs::write(&files[1], key).unwrap();
        files
    }

    /// The user of a kubeconfig.
    pub(super) fn user(&self) -> Value {
        let [certificate, key] = self.pem().map(|text| STANDARD.encode(text));
        json!({"client-certificate-data": certificate, "client-key-data": key})
    }

    fn pem(&self) -> [String; 2] {
        [
            pem("CERTIFICATE", &self.certificate),
            pem("PRIVATE KEY", &self.key),
        ]
    }
}

/// The keys of service accounts: what signs their tokens, and what checks them.
pub(super) fn token_keys(directory: &Path) -> [PathBuf; 2] {
    let key = KeyPair::generate().unwrap();
    let files = ["sa.key", "sa.pub"].map(|name| directory.join(name));
    std::fs::write(&files[0], pem("PRIVATE KEY", &key.serialize_der())).unwrap();
    std::fs::write(&files[1], pem("PUBLIC KEY", &key.subject_public_key_info())).unwrap();
    files
}

fn pem(kind: &str, der: &[u8]) -> String {
    let encoded = STANDARD.encode(der);
    let mut text = format!("-----BEGIN {kind}-----\n");
    for line in encoded.as_bytes().chunks(64) {
        text.push_str(&String::from_utf8_lossy(line));
        text.push('\n');
    }
    text.push_str(&format!("-----END {kind}-----\n"));
    text
}
