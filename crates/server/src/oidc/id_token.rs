//! ID tokens: signed by the provider, for this server, in answer to this sign-in, and not over.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};
use serde_json::Value;

/// The longest token.
const MAX_TOKEN: usize = 64 << 10;
/// How far the clocks of the provider and of the store may be apart, in seconds.
const LEEWAY: i64 = 60;
/// Keys of the provider that are looked at.
const MAX_KEYS: usize = 64;

/// Why a token proves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum IdTokenError {
    /// It is no token.
    #[error("it is not a signed token")]
    Malformed,
    /// The way it is signed is not taken.
    #[error("it is signed in a way that is not taken")]
    Algorithm,
    /// No key of the provider fits.
    #[error("the provider has no such key")]
    UnknownKey,
    /// The signature is wrong.
    #[error("its signature is wrong")]
    Signature,
    /// A claim says something else than it must.
    #[error("its claim `{0}` is missing or wrong")]
    Claim(&'static str),
}

/// What a token must say.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expected<'a> {
    pub(crate) issuer: &'a str,
    pub(crate) client_id: &'a str,
    pub(crate) nonce: &'a str,
    /// Seconds since 1970.
    pub(crate) now: i64,
}

/// The claims of a token that one of these keys signed and that says what it must.
pub(crate) fn verify(
    token: &str,
    keys: &Value,
    wanted: &Expected<'_>,
) -> Result<Value, IdTokenError> {
    if token.len() > MAX_TOKEN {
        return Err(IdTokenError::Malformed);
    }
    let mut parts = token.split('.');
    let (Some(head), Some(body), Some(signature), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(IdTokenError::Malformed);
    };
    let header = json(head)?;
    let algorithm = header["alg"].as_str().unwrap_or_default();
    if header.get("crit").is_some() {
        return Err(IdTokenError::Algorithm);
    }
    let signed = &token.as_bytes()[..head.len() + 1 + body.len()];
    let signature = bytes(signature)?;
    let named = header["kid"].as_str();
    let all = keys["keys"].as_array().map_or(&[][..], Vec::as_slice);
    let mut found = Err(IdTokenError::UnknownKey);
    for key in all.iter().take(MAX_KEYS) {
        let is_it = named.is_none_or(|named| key["kid"] == named);
        let is_for_signing = key["use"].as_str().is_none_or(|used| used == "sig");
        let is_for_this = key["alg"].as_str().is_none_or(|alg| alg == algorithm);
        if !(is_it && is_for_signing && is_for_this) {
            continue;
        }
        found = check(algorithm, key, signed, &signature);
        if found.is_ok() {
            break;
        }
    }
    found?;
    let claims = json(body)?;
    believe(&claims, wanted)?;
    Ok(claims)
}

fn bytes(text: &str) -> Result<Vec<u8>, IdTokenError> {
    URL_SAFE_NO_PAD
        .decode(text)
        .map_err(|_| IdTokenError::Malformed)
}

fn json(text: &str) -> Result<Value, IdTokenError> {
    serde_json::from_slice(&bytes(text)?).map_err(|_| IdTokenError::Malformed)
}

/// Checks a signature with a key; the kind of the key must fit the algorithm, so that none stands for another.
fn check(
    algorithm: &str,
    key: &Value,
    signed: &[u8],
    signature: &[u8],
) -> Result<(), IdTokenError> {
    let part = |name: &str| bytes(key[name].as_str().unwrap_or_default());
    let rsa = |parameters: &RsaParameters| {
        if key["kty"] != "RSA" {
            return Err(IdTokenError::Algorithm);
        }
        let (n, e) = (part("n")?, part("e")?);
        let public = RsaPublicKeyComponents { n: &n, e: &e };
        public
            .verify(parameters, signed, signature)
            .map_err(|_| IdTokenError::Signature)
    };
    let curve = |name: &str, algorithm: &'static dyn VerificationAlgorithm, is_point: bool| {
        if key["crv"] != name {
            return Err(IdTokenError::Algorithm);
        }
        let mut public = Vec::new();
        if is_point {
            // An uncompressed point.
            public.push(4);
        }
        public.extend(part("x")?);
        if is_point {
            public.extend(part("y")?);
        }
        UnparsedPublicKey::new(algorithm, public)
            .verify(signed, signature)
            .map_err(|_| IdTokenError::Signature)
    };
    match algorithm {
        "RS256" => rsa(&RSA_PKCS1_2048_8192_SHA256),
        "RS384" => rsa(&RSA_PKCS1_2048_8192_SHA384),
        "RS512" => rsa(&RSA_PKCS1_2048_8192_SHA512),
        "PS256" => rsa(&RSA_PSS_2048_8192_SHA256),
        "ES256" => curve("P-256", &ECDSA_P256_SHA256_FIXED, true),
        "ES384" => curve("P-384", &ECDSA_P384_SHA384_FIXED, true),
        "EdDSA" | "Ed25519" => curve("Ed25519", &ED25519, false),
        // `none` and what is signed with a shared secret are among the others.
        _ => Err(IdTokenError::Algorithm),
    }
}

fn believe(claims: &Value, wanted: &Expected<'_>) -> Result<(), IdTokenError> {
    let insist = |holds: bool, claim| {
        if holds {
            Ok(())
        } else {
            Err(IdTokenError::Claim(claim))
        }
    };
    insist(claims["iss"] == wanted.issuer, "iss")?;
    let (is_for_us, is_for_others) = match &claims["aud"] {
        Value::String(one) => (one == wanted.client_id, false),
        Value::Array(all) => (all.iter().any(|one| one == wanted.client_id), all.len() > 1),
        _ => (false, false),
    };
    insist(is_for_us, "aud")?;
    let party = claims.get("azp");
    insist(
        party.map_or(!is_for_others, |party| party == wanted.client_id),
        "azp",
    )?;
    insist(claims["nonce"] == wanted.nonce, "nonce")?;
    let time = |name: &str| claims[name].as_f64();
    #[expect(clippy::cast_precision_loss, reason = "seconds of this age are exact")]
    let (now, leeway) = (wanted.now as f64, LEEWAY as f64);
    insist(time("exp").is_some_and(|end| end + leeway > now), "exp")?;
    insist(time("iat").is_some_and(|begin| begin - leeway < now), "iat")?;
    insist(time("nbf").is_none_or(|begin| begin - leeway < now), "nbf")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::rand::SystemRandom;
    use ring::signature::{Ed25519KeyPair, KeyPair as _};
    use serde_json::json;

    struct Signer(Ed25519KeyPair);

    impl Signer {
        fn new() -> Self {
            let made = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
            Self(Ed25519KeyPair::from_pkcs8(made.as_ref()).unwrap())
        }

        fn keys(&self) -> Value {
            let x = URL_SAFE_NO_PAD.encode(self.0.public_key());
            json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "k1", "x": x}]})
        }

        fn sign(&self, header: &Value, claims: &Value) -> String {
            let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
            let signed = format!("{}.{}", part(header), part(claims));
            let signature = URL_SAFE_NO_PAD.encode(self.0.sign(signed.as_bytes()));
            format!("{signed}.{signature}")
        }
    }

    const WANTED: Expected<'_> = Expected {
        issuer: "https://id",
        client_id: "us",
        nonce: "n1",
        now: 1_000,
    };

    fn claims() -> Value {
        json!({"iss": "https://id", "aud": "us", "nonce": "n1", "exp": 1_300, "iat": 990, "sub": "u1"})
    }

    #[test]
    fn a_token_is_believed_as_it_was_signed() {
        let signer = Signer::new();
        let header = json!({"alg": "EdDSA", "kid": "k1"});
        let token = signer.sign(&header, &claims());
        let keys = signer.keys();
        assert_eq!(verify(&token, &keys, &WANTED), Ok(claims()));
        let other = Signer::new().sign(&header, &claims());
        assert_eq!(verify(&other, &keys, &WANTED), Err(IdTokenError::Signature));
        let unknown = signer.sign(&json!({"alg": "EdDSA", "kid": "k2"}), &claims());
        assert_eq!(
            verify(&unknown, &keys, &WANTED),
            Err(IdTokenError::UnknownKey)
        );
        for alg in ["none", "HS256", "RS256", "ES256"] {
            let token = signer.sign(&json!({"alg": alg, "kid": "k1"}), &claims());
            assert_eq!(
                verify(&token, &keys, &WANTED),
                Err(IdTokenError::Algorithm),
                "{alg}"
            );
        }
        for wrong in ["", "a.b", "a.b.c", "a.b.c.d", &"x".repeat(MAX_TOKEN + 1)] {
            assert_eq!(
                verify(wrong, &keys, &WANTED),
                Err(IdTokenError::Malformed),
                "{wrong:.10}"
            );
        }
    }

    #[test]
    fn every_claim_counts() {
        let signer = Signer::new();
        for (claim, value) in [
            ("iss", json!("https://evil")),
            ("aud", json!("others")),
            ("aud", json!(["others"])),
            ("azp", json!("others")),
            ("nonce", json!("n2")),
            ("exp", json!(900)),
            ("exp", json!("1300")),
            ("iat", json!(2_000)),
            ("nbf", json!(2_000)),
        ] {
            let mut changed = claims();
            changed[claim] = value.clone();
            let token = signer.sign(&json!({"alg": "EdDSA"}), &changed);
            let refused = verify(&token, &signer.keys(), &WANTED);
            assert_eq!(refused, Err(IdTokenError::Claim(claim)), "{claim} {value}");
        }
        let mut several = claims();
        several["aud"] = json!(["us", "others"]);
        let token = signer.sign(&json!({"alg": "EdDSA"}), &several);
        let refused = verify(&token, &signer.keys(), &WANTED);
        assert_eq!(refused, Err(IdTokenError::Claim("azp")));
        several["azp"] = json!("us");
        let token = signer.sign(&json!({"alg": "EdDSA"}), &several);
        verify(&token, &signer.keys(), &WANTED).unwrap();
    }
}
