//! Requests to token and registration endpoints, and what they answer.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proofhouse_wire::client::{Client, ClientError};
use proofhouse_wire::{Bytes, HeaderMap, HeaderValue, Method};
use serde_json::Value;
use tokio::time::Instant;
use url::{Url, form_urlencoded};

use crate::error::{AuthorizationError, EndpointReached};
use crate::scopes;
use crate::secret::SecretText;

/// The grant of an assertion (RFC 7523).
pub(crate) const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/// A token travels in a header, and most servers take headers of 8 to 64 KiB.
const MAX_TOKEN_BYTES: usize = 32 << 10;
/// No token is believed to live longer than ten years, so that times stay within their range.
const MAX_LIFE: u64 = 10 * 365 * 24 * 3600;
/// How much is told of what an endpoint says.
const MAX_SAID: usize = 200;
/// What is hidden among what an endpoint says.
const HIDDEN: &str = "[redacted]";

/// Whether a text can be a token: printable and on one line (RFC 6749, appendix A.12).
#[must_use]
pub fn is_token(text: &str) -> bool {
    (1..=MAX_TOKEN_BYTES).contains(&text.len()) && text.bytes().all(|byte| matches!(byte, 33..=126))
}

/// When a token ends that lives for the seconds of `expires_in`, which some servers write as a text. `Err` if it is
/// neither.
///
/// # Errors
///
/// Returns an error when `expires_in` is not a number of seconds.
pub fn expires_at(answer: &Value, now: u64) -> Result<Option<u64>, NotSeconds> {
    let seconds = match answer.get("expires_in") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Number(number)) => number.as_f64(),
        Some(Value::String(text)) => text.trim().parse::<f64>().ok(),
        Some(_) => None,
    };
    match seconds {
        Some(seconds) if seconds.is_finite() && seconds >= 0.0 => {
            // The cast cuts at the ends of the range.
            Ok(Some(now.saturating_add((seconds as u64).min(MAX_LIFE))))
        }
        _ => Err(NotSeconds),
    }
}

/// `expires_in` is not a number of seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("`expires_in` is not a number of seconds")]
pub struct NotSeconds;

/// What stands behind `Basic`: both words are encoded as in a form before they are joined (RFC 6749, section 2.3.1).
#[must_use]
pub fn basic_credentials(id: &str, secret: &str) -> String {
    let encode = |word: &str| form_urlencoded::byte_serialize(word.as_bytes()).collect::<String>();
    STANDARD.encode(format!("{}:{}", encode(id), encode(secret)))
}

/// A form on its way to a token endpoint.
#[derive(Debug, Default)]
pub(crate) struct TokenForm {
    fields: Vec<(&'static str, String)>,
    /// What must not come back in an error.
    secrets: Vec<SecretText>,
    pub(crate) basic: Option<(String, SecretText)>,
}

impl TokenForm {
    pub(crate) fn grant(kind: &str) -> Self {
        let mut form = Self::default();
        form.add("grant_type", kind);
        form
    }

    pub(crate) fn add(&mut self, name: &'static str, value: &str) {
        self.fields.push((name, value.to_owned()));
    }

    pub(crate) fn add_secret(&mut self, name: &'static str, value: &SecretText) {
        self.secrets.push(value.clone());
        self.add(name, value.expose());
    }

    pub(crate) fn add_scopes(&mut self, scopes: &[String]) {
        if !scopes.is_empty() {
            self.add("scope", &scopes.join(" "));
        }
    }
}

/// What a token endpoint gave.
#[derive(Debug)]
pub(crate) struct GrantedToken {
    pub(crate) token: SecretText,
    pub(crate) refresh_token: Option<SecretText>,
    pub(crate) expires_at: Option<u64>,
    /// The scopes it is for, if the answer says.
    pub(crate) scopes: Option<Vec<String>>,
}

/// Speaks to endpoints through the client that the caller gave.
#[derive(Debug, Clone)]
pub(crate) struct TokenHttp {
    pub(crate) client: Client,
    /// How long a server is waited for that cannot be connected to.
    pub(crate) outage: Duration,
}

impl TokenHttp {
    /// A document, or nothing if the server has none there.
    pub(crate) async fn get_json(&self, url: &Url) -> Result<Option<Value>, AuthorizationError> {
        let mut headers = HeaderMap::new();
        headers.insert("accept", HeaderValue::from_static("application/json"));
        let (status, body) = self.send(Method::GET, url, headers, Bytes::new()).await?;
        match status {
            200 => match serde_json::from_slice(&body) {
                Ok(json @ Value::Object(_)) => Ok(Some(json)),
                _ => Ok(None),
            },
            400..=499 => Ok(None),
            status => Err(AuthorizationError::Refused {
                host: host(url),
                status,
                error: None,
                description: None,
            }),
        }
    }

    /// Posts JSON; what comes back is an object.
    pub(crate) async fn post_json(
        &self,
        url: &Url,
        body: &Value,
    ) -> Result<Value, AuthorizationError> {
        let mut headers = HeaderMap::new();
        headers.insert("accept", HeaderValue::from_static("application/json"));
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        let body = Bytes::from(body.to_string());
        let answered = self.send(Method::POST, url, headers, body).await?;
        understood(url, answered, &[])
    }

    /// Asks a token endpoint.
    pub(crate) async fn ask(
        &self,
        url: &Url,
        form: TokenForm,
    ) -> Result<Value, AuthorizationError> {
        let mut headers = HeaderMap::new();
        headers.insert("accept", HeaderValue::from_static("application/json"));
        headers.insert(
            "content-type",
            HeaderValue::from_static("application/x-www-form-urlencoded"),
        );
        let mut secrets = form.secrets;
        if let Some((id, secret)) = &form.basic {
            let text = format!("Basic {}", basic_credentials(id, secret.expose()));
            let value = HeaderValue::from_str(&text);
            let mut value =
                value.map_err(|_| self.unusable(url, "no header can hold the secret"))?;
            value.set_sensitive(true);
            headers.insert("authorization", value);
            secrets.push(secret.clone());
        }
        let body = Bytes::from(encoded(&form.fields));
        let answered = self.send(Method::POST, url, headers, body).await?;
        understood(url, answered, &secrets)
    }

    /// The token of an answer.
    pub(crate) fn granted(
        &self,
        url: &Url,
        answer: &Value,
        now: u64,
    ) -> Result<GrantedToken, AuthorizationError> {
        let unusable = |reason| self.unusable(url, reason);
        // A client must not use a token whose type it does not know (RFC 6749, section 7.1).
        match answer.get("token_type") {
            None | Some(Value::Null) => {}
            Some(Value::String(kind)) if kind.eq_ignore_ascii_case("bearer") => {}
            Some(_) => return Err(unusable("the type of the token is not `bearer`")),
        }
        let text = |key: &str| answer.get(key).and_then(Value::as_str);
        let token = text("access_token").filter(|token| is_token(token));
        let token = token.ok_or_else(|| unusable("it holds no token"))?;
        let refresh_token = text("refresh_token").filter(|token| is_token(token));
        Ok(GrantedToken {
            token: SecretText::new(token),
            refresh_token: refresh_token.map(SecretText::new),
            expires_at: expires_at(answer, now)
                .map_err(|_| unusable("`expires_in` is not a number of seconds"))?,
            scopes: text("scope").map(scopes::read),
        })
    }

    pub(crate) fn unusable(&self, url: &Url, reason: &'static str) -> AuthorizationError {
        AuthorizationError::Answer {
            host: host(url),
            reason,
        }
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<(u16, Bytes), AuthorizationError> {
        let failed = |error| AuthorizationError::of_request(&host(url), &error);
        let patience = Instant::now() + self.outage;
        let response = loop {
            // Where there is no connection nothing was sent, so it can be sent again; the circuit says when.
            let pass = self.client.circuits().enter(url, patience).await;
            let pass = pass.map_err(|open| AuthorizationError::Unavailable {
                host: host(url),
                reason: open.reason,
                reached: EndpointReached::Never,
            })?;
            let sent =
                self.client
                    .send(method.clone(), url.as_str(), headers.clone(), body.clone());
            let sent = sent.await;
            pass.note(&sent);
            match sent {
                Err(ClientError::Connect { .. }) if Instant::now() < patience => {}
                other => break other.map_err(failed)?,
            }
        };
        let status = response.status.as_u16();
        let body = response.bytes().await.map_err(failed)?;
        Ok((status, body))
    }
}

fn encoded(fields: &[(&str, String)]) -> String {
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.extend_pairs(fields);
    form.finish()
}

fn understood(
    url: &Url,
    (status, body): (u16, Bytes),
    secrets: &[SecretText],
) -> Result<Value, AuthorizationError> {
    let json: Option<Value> = serde_json::from_slice(&body).ok();
    let said = |key: &str| {
        let text = json.as_ref()?.get(key)?.as_str()?;
        let mut text: String = text.chars().take(4 * MAX_SAID).collect();
        for secret in secrets {
            text = text.replace(secret.expose(), HIDDEN);
        }
        let clean = text
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .take(MAX_SAID);
        Some(clean.collect::<String>()).filter(|clean| !clean.trim().is_empty())
    };
    let is_refusal = !(200..300).contains(&status) || said("error").is_some();
    if is_refusal {
        return Err(AuthorizationError::Refused {
            host: host(url),
            status,
            error: said("error"),
            description: said("error_description"),
        });
    }
    match json {
        Some(json @ Value::Object(_)) => Ok(json),
        _ => Err(AuthorizationError::Answer {
            host: host(url),
            reason: "it is not a JSON object",
        }),
    }
}

/// The host of a URL, for people.
pub(crate) fn host(url: &Url) -> String {
    url.host_str().unwrap_or("the server").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proofhouse_wire::WireLimits;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    /// Nothing was sent to a server that could not be connected to, so it is waited for.
    #[tokio::test]
    async fn a_server_that_comes_back_is_found_by_the_request_that_waits_for_it() {
        let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let url = Url::parse(&format!("http://{address}/")).unwrap();
        let http = |outage| TokenHttp {
            client: Client::new(WireLimits::default()).unwrap(),
            outage,
        };
        let error = http(Duration::ZERO).get_json(&url).await.unwrap_err();
        assert!(matches!(
            error,
            AuthorizationError::Unavailable {
                reached: EndpointReached::Never,
                ..
            }
        ));
        let back = async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            let listener = TcpListener::bind(address).await.unwrap();
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await.unwrap();
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
            stream.write_all(answer).await.unwrap();
        };
        let patient = http(Duration::from_secs(60));
        let (answer, ()) = tokio::join!(patient.get_json(&url), back);
        assert_eq!(answer, Ok(Some(serde_json::json!({}))));
    }
}
