//! TLS to PostgreSQL: `sslmode` and `sslrootcert` mean what they mean to libpq.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use proofhouse_store::{PostgresOptions, Store};
use proofhouse_test_support::postgres::{self, NoPostgres, Postgres};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

use crate::contract::support::refused;

/// What comes of an address.
enum Outcome {
    Encrypted,
    Plain,
    /// Nobody is talked to, for a reason with these words.
    Refused(&'static str, &'static str),
}

use Outcome::{Encrypted, Plain, Refused};

/// Certificates, and servers that show them.
struct Servers {
    directory: PathBuf,
    /// Shows one that `ca.pem` has signed for `localhost`.
    signed: Postgres,
    /// Shows one that it has signed itself, for `localhost`, and that may sign others; `self.pem` has it.
    alone: Postgres,
}

static SERVERS: OnceLock<Result<Servers, NoPostgres>> = OnceLock::new();

fn servers(test: &str) -> Option<&'static Servers> {
    match SERVERS.get_or_init(Servers::start) {
        Ok(servers) => Some(servers),
        Err(error) => {
            postgres::skipped(test, &error.to_string());
            None
        }
    }
}

fn authority(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

impl Servers {
    fn start() -> Result<Self, NoPostgres> {
        // It is small, and lives as long as the servers.
        let directory = tempfile::tempdir().unwrap().keep();
        let write = |name: &str, text: String| {
            let path = directory.join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let key = || KeyPair::generate().unwrap();
        let (ca, ca_key) = (authority("those we trust"), key());
        write("ca.pem", ca.self_signed(&ca_key).unwrap().pem());
        write(
            "other.pem",
            authority("others").self_signed(&key()).unwrap().pem(),
        );
        let server = CertificateParams::new(["localhost".to_owned()]).unwrap();
        let server_key = key();
        let certificate = server.signed_by(&server_key, &Issuer::new(ca, ca_key));
        let certificate = write("server.pem", certificate.unwrap().pem());
        let private = write("server.key", server_key.serialize_pem());
        let signed = Postgres::start(&[Path::new("--tls"), &certificate, &private])?;
        let own_key = key();
        let own = authority("itself").self_signed(&own_key).unwrap();
        let certificate = write("self.pem", own.pem());
        let private = write("self.key", own_key.serialize_pem());
        let alone = Postgres::start(&[Path::new("--tls"), &certificate, &private])?;
        Ok(Self {
            directory,
            signed,
            alone,
        })
    }
}

/// Opens a store at an address with these settings, and looks from outside how it is connected.
async fn check(url: &str, host: &str, settings: &str, outcome: Outcome) {
    let about = format!("{host}?{settings}");
    let own = url.replace("@127.0.0.1:", &format!("@{host}:"));
    let name = format!("tls {}", settings.len());
    let mut options = PostgresOptions::url(format!(
        "{own}?application_name={}&{settings}",
        name.replace(' ', "%20")
    ));
    options.connections = 1;
    options.schema = Some(format!("tls_{}", std::process::id()));
    let opened = Store::open_postgres(options).await;
    let expected = match outcome {
        Refused(kind, why) => {
            let error = refused(opened, kind).to_string();
            assert!(error.contains(why), "{about}: {error}");
            return;
        }
        Encrypted => true,
        Plain => false,
    };
    let store = opened.unwrap_or_else(|error| panic!("{about}: {error}"));
    store.health().await.unwrap();
    let (client, connection) =
        tokio_postgres::connect(&format!("{url}?sslmode=disable"), tokio_postgres::NoTls)
            .await
            .unwrap();
    tokio::spawn(connection);
    let seen = client
        .query(
            "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = $1",
            &[&name],
        )
        .await
        .unwrap();
    assert!(!seen.is_empty(), "{about}: nobody is connected");
    for row in seen {
        assert_eq!(row.get::<_, bool>(0), expected, "{about}");
    }
    store.close().await;
}

fn block_on(future: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(future);
}

#[test]
fn an_address_says_who_the_server_has_to_be() {
    let Some(servers) = servers("an_address_says_who_the_server_has_to_be") else {
        return;
    };
    let file = |name: &str| servers.directory.join(name).display().to_string();
    let (ca, other, missing) = (file("ca.pem"), file("other.pem"), file("missing.pem"));
    let (ip, name) = ("127.0.0.1", "localhost");
    let unknown = || Refused("unavailable", "UnknownIssuer");
    block_on(async {
        for (host, settings, outcome) in [
            (ip, String::new(), Encrypted),
            (ip, "sslmode=disable".to_owned(), Plain),
            (ip, "sslmode=prefer".to_owned(), Encrypted),
            (ip, "sslmode=require".to_owned(), Encrypted),
            // The password is tied to the certificate.
            (
                ip,
                "sslmode=require&channel_binding=require".to_owned(),
                Encrypted,
            ),
            (ip, format!("sslmode=require&sslrootcert={ca}"), Encrypted),
            (
                ip,
                format!("sslmode=require&sslrootcert={other}"),
                unknown(),
            ),
            (ip, format!("sslmode=verify-ca&sslrootcert={ca}"), Encrypted),
            (
                ip,
                format!("sslmode=verify-ca&sslrootcert={other}"),
                unknown(),
            ),
            (
                name,
                format!("sslmode=verify-full&sslrootcert={ca}"),
                Encrypted,
            ),
            (
                ip,
                format!("sslmode=verify-full&sslrootcert={ca}"),
                Refused("unavailable", "not valid for name"),
            ),
            (
                name,
                format!("sslmode=verify-full&sslrootcert={other}"),
                unknown(),
            ),
            (
                name,
                "sslmode=verify-full&sslrootcert=system".to_owned(),
                unknown(),
            ),
            (
                name,
                format!("sslmode=verify-full&sslrootcert={missing}"),
                Refused("invalid", "missing.pem"),
            ),
            (
                name,
                format!("sslmode=verify-full&sslrootcert={}", file("server.key")),
                Refused("invalid", "no certificate"),
            ),
        ] {
            check(servers.signed.url(), host, &settings, outcome).await;
        }
    });
}

#[test]
fn a_server_may_be_trusted_by_its_own_certificate() {
    let Some(servers) = servers("a_server_may_be_trusted_by_its_own_certificate") else {
        return;
    };
    let file = |name: &str| servers.directory.join(name).display().to_string();
    let (own, ca) = (file("self.pem"), file("ca.pem"));
    block_on(async {
        for (host, settings, outcome) in [
            (
                "localhost",
                format!("sslmode=verify-full&sslrootcert={own}"),
                Encrypted,
            ),
            (
                "127.0.0.1",
                format!("sslmode=verify-full&sslrootcert={own}"),
                Refused("unavailable", "not valid for name"),
            ),
            (
                "localhost",
                format!("sslmode=verify-ca&sslrootcert={ca}"),
                Refused("unavailable", "invalid peer certificate"),
            ),
        ] {
            check(servers.alone.url(), host, &settings, outcome).await;
        }
    });
}

#[test]
fn a_server_without_tls_is_refused_where_it_is_required() {
    let Some(url) = Postgres::shared("a_server_without_tls_is_refused_where_it_is_required") else {
        return;
    };
    block_on(async {
        check(&url, "127.0.0.1", "sslmode=prefer", Plain).await;
        let without = Refused("unavailable", "does not support TLS");
        check(&url, "127.0.0.1", "sslmode=require", without).await;
    });
}
