//! TLS to PostgreSQL: who the server has to be, and the connection that is encrypted.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use ring::digest;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream as Stream;

use super::address::{RootCertificates, TlsMode};
use crate::error::{Result, StoreError};

/// The largest file of certificates.
const MAX_PEM: u64 = 1 << 20;
/// What the server is told that is spoken; newer ones want to hear it.
const PROTOCOL: &[u8] = b"postgresql";

/// Makes encrypted connections.
#[derive(Clone)]
pub(super) struct PostgresTls {
    config: Arc<ClientConfig>,
}

impl PostgresTls {
    /// # Errors
    ///
    /// When the certificates of those who are trusted cannot be read.
    pub(super) fn new(protection: TlsMode, roots: Option<&RootCertificates>) -> Result<Self> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let trusted = match roots {
            None => None,
            Some(RootCertificates::Public) => Some(TrustedRoots {
                roots: webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect(),
                named: Vec::new(),
            }),
            Some(RootCertificates::File(path)) => Some(TrustedRoots::read(path)?),
        };
        let judge = CertificateVerifier {
            trusted,
            looks_at_names: protection == TlsMode::VerifyFull,
            algorithms: provider.signature_verification_algorithms,
        };
        let mut config =
            ClientConfig::builder_with_provider(Arc::<CryptoProvider>::clone(&provider))
                .with_safe_default_protocol_versions()
                .map_err(|error| StoreError::Invalid(format!("TLS: {error}")))?
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(judge))
                .with_no_client_auth();
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        Ok(Self {
            config: Arc::new(config),
        })
    }
}

/// Whose certificates are good.
#[derive(Debug)]
struct TrustedRoots {
    roots: RootCertStore,
    /// The same as they are written: a server may show one of them itself.
    named: Vec<CertificateDer<'static>>,
}

impl TrustedRoots {
    fn read(path: &Path) -> Result<Self> {
        let failed =
            |why: &str| StoreError::Invalid(format!("`sslrootcert`: {}: {why}", path.display()));
        let file = File::open(path).map_err(|error| failed(&error.to_string()))?;
        let mut text = Vec::new();
        #[expect(clippy::disallowed_methods, reason = "`take` caps it")]
        let read = file.take(MAX_PEM + 1).read_to_end(&mut text);
        read.map_err(|error| failed(&error.to_string()))?;
        if text.len() as u64 > MAX_PEM {
            return Err(failed("this is too large for certificates"));
        }
        let named: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&text)
            .collect::<std::result::Result<_, _>>()
            .map_err(|error| failed(&error.to_string()))?;
        let mut roots = RootCertStore::empty();
        for certificate in &named {
            let added = roots.add(certificate.clone());
            added.map_err(|error| failed(&error.to_string()))?;
        }
        if named.is_empty() {
            return Err(failed("there is no certificate in it"));
        }
        Ok(Self { roots, named })
    }
}

/// Says whether a server is the right one, as far as it was asked to.
#[derive(Debug)]
struct CertificateVerifier {
    trusted: Option<TrustedRoots>,
    looks_at_names: bool,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for CertificateVerifier {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        let Some(trusted) = &self.trusted else {
            return Ok(ServerCertVerified::assertion());
        };
        let certificate = ParsedCertificate::try_from(shown)?;
        // The usual certificate that somebody made for one server alone says that it may sign others, which is not what a
        // server shows otherwise; but this very one was named.
        if !trusted.named.iter().any(|named| named == shown) {
            let (roots, known) = (&trusted.roots, self.algorithms.all);
            verify_server_cert_signed_by_trust_anchor(
                &certificate,
                roots,
                intermediates,
                now,
                known,
            )?;
        }
        if self.looks_at_names {
            verify_server_name(&certificate, name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

impl<S> MakeTlsConnect<S> for PostgresTls
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = EncryptedStream<S>;
    type TlsConnect = TlsHandshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<TlsHandshake> {
        Ok(TlsHandshake {
            connector: TlsConnector::from(Arc::clone(&self.config)),
            host: host.to_owned(),
        })
    }
}

/// Greets one server.
pub(super) struct TlsHandshake {
    connector: TlsConnector,
    host: String,
}

impl<S> TlsConnect<S> for TlsHandshake
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = EncryptedStream<S>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<EncryptedStream<S>>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            // Here and not earlier: a socket of this machine has no name, and needs none.
            let name = ServerName::try_from(self.host).map_err(io::Error::other)?;
            Ok(EncryptedStream(self.connector.connect(name, stream).await?))
        })
    }
}

/// An encrypted connection.
pub(super) struct EncryptedStream<S>(Stream<S>);

impl<S> TlsStream for EncryptedStream<S>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    /// Ties the password to this very certificate, so that nobody in between can pass it on.
    fn channel_binding(&self) -> ChannelBinding {
        let shown = self.0.get_ref().1.peer_certificates();
        let shown = shown.and_then(<[CertificateDer<'_>]>::first);
        match shown.and_then(|shown| Some((shown, hash_of(shown)?))) {
            Some((shown, hash)) => {
                let print = digest::digest(hash, shown);
                ChannelBinding::tls_server_end_point(print.as_ref().to_vec())
            }
            None => ChannelBinding::none(),
        }
    }
}

/// The hash that binds to a certificate: that of its signature, and SHA-256 in place of what is weaker (RFC 5929).
fn hash_of(certificate: &[u8]) -> Option<&'static digest::Algorithm> {
    const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
    const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03];
    let (whole, _) = value(certificate)?;
    let (_, after) = value(whole)?;
    let (algorithm, _) = value(after)?;
    let (name, _) = value(algorithm)?;
    let (last, family) = name.split_last()?;
    match (family, *last) {
        (RSA, 4 | 5 | 11) | (ECDSA, 2) => Some(&digest::SHA256),
        (RSA, 12) | (ECDSA, 3) => Some(&digest::SHA384),
        (RSA, 13) | (ECDSA, 4) => Some(&digest::SHA512),
        _ => None,
    }
}

/// The first value of a text in DER, and what comes after.
fn value(der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (_, rest) = der.split_first()?;
    let (&first, mut rest) = rest.split_first()?;
    let mut length = usize::from(first);
    if first & 0x80 != 0 {
        length = 0;
        for _ in 0..(first & 0x7f).min(5) {
            let (&digit, after) = rest.split_first()?;
            length = length.checked_mul(256)? + usize::from(digit);
            rest = after;
        }
    }
    rest.split_at_checked(length)
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for EncryptedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, into)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for EncryptedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_has_no_hash() {
        for nonsense in [
            &b""[..],
            b"\x30",
            b"\x30\x84\xff\xff\xff\xff",
            b"\x30\x02\x30\x00",
        ] {
            assert!(hash_of(nonsense).is_none());
        }
    }
}
