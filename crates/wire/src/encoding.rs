//! Content codings: bodies that a server compressed, taken apart with an end to how large they grow.

use std::io::Read;

use bytes::Bytes;
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

use crate::HttpResponse;

/// A server that codes a body more often than this means harm.
const MAX_CODINGS: usize = 3;

/// Why a body cannot be taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecodeError {
    /// It is larger than it may be, once decompressed.
    TooLarge,
    /// It is not what the header says.
    Broken(&'static str),
}

/// Takes the codings off a body. Those that are not known stay, with the header that names them.
///
/// A body without codings is handed on as it is.
///
/// # Errors
///
/// Returns an error when it is larger than it may be or not what the header says.
pub fn decode(answer: &mut HttpResponse, max_bytes: usize) -> Result<(), DecodeError> {
    let Some(named) = answer.header("content-encoding") else {
        return Ok(());
    };
    let codings: Vec<Coding> = match named.split(',').map(Coding::named).collect() {
        Some(codings) => codings,
        None => return Ok(()),
    };
    let codings: Vec<Coding> = codings
        .into_iter()
        .filter(|coding| *coding != Coding::Identity)
        .collect();
    if codings.len() > MAX_CODINGS {
        return Err(DecodeError::Broken("it is coded too often"));
    }
    // The last one was applied last.
    for coding in codings.into_iter().rev() {
        if !answer.body.is_empty() {
            answer.body = coding.take_off(&answer.body, max_bytes)?;
        }
    }
    answer.headers.remove("content-encoding");
    answer.headers.remove("content-length");
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coding {
    Identity,
    Gzip,
    Deflate,
}

impl Coding {
    fn named(name: &str) -> Option<Self> {
        match name.trim().to_ascii_lowercase().as_str() {
            "identity" | "" => Some(Self::Identity),
            "gzip" | "x-gzip" => Some(Self::Gzip),
            "deflate" => Some(Self::Deflate),
            _ => None,
        }
    }

    fn take_off(self, body: &[u8], max_bytes: usize) -> Result<Bytes, DecodeError> {
        match self {
            Self::Identity => Ok(Bytes::copy_from_slice(body)),
            Self::Gzip => read(MultiGzDecoder::new(body), max_bytes, "it is not gzip"),
            // The standard means zlib by it, and some servers send what is inside of that.
            Self::Deflate if is_zlib(body) => {
                read(ZlibDecoder::new(body), max_bytes, "it is not deflate")
            }
            Self::Deflate => read(DeflateDecoder::new(body), max_bytes, "it is not deflate"),
        }
    }
}

/// Whether the two bytes of a zlib header are there (RFC 1950, section 2.2).
fn is_zlib(body: &[u8]) -> bool {
    match body {
        [method, flags, ..] => {
            method & 0x0f == 8 && (u16::from(*method) << 8 | u16::from(*flags)) % 31 == 0
        }
        _ => false,
    }
}

fn read(decoder: impl Read, max_bytes: usize, broken: &'static str) -> Result<Bytes, DecodeError> {
    let mut whole = Vec::new();
    let one_more = u64::try_from(max_bytes)
        .unwrap_or(u64::MAX)
        .saturating_add(1);
    #[expect(clippy::disallowed_methods, reason = "`take` ends it")]
    let read = decoder.take(one_more).read_to_end(&mut whole);
    read.map_err(|_| DecodeError::Broken(broken))?;
    if whole.len() > max_bytes {
        return Err(DecodeError::TooLarge);
    }
    Ok(whole.into())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use http::{HeaderMap, HeaderValue, StatusCode};

    use super::*;

    fn gzip(body: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(body).unwrap();
        encoder.finish().unwrap()
    }

    fn answer(coding: &'static str, body: Vec<u8>) -> HttpResponse {
        let mut headers = HeaderMap::new();
        headers.insert("content-encoding", HeaderValue::from_static(coding));
        HttpResponse {
            status: StatusCode::OK,
            headers,
            body: body.into(),
        }
    }

    fn decoded(mut answer: HttpResponse, max_bytes: usize) -> Result<HttpResponse, DecodeError> {
        decode(&mut answer, max_bytes).map(|()| answer)
    }

    #[test]
    fn codings_come_off_in_reverse() {
        let zlib = |body: &[u8]| {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
            encoder.write_all(body).unwrap();
            encoder.finish().unwrap()
        };
        let raw = |body: &[u8]| {
            let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
            encoder.write_all(body).unwrap();
            encoder.finish().unwrap()
        };
        let two_members = [gzip(b"he"), gzip(b"llo")].concat();
        for (coding, body) in [
            ("gzip", gzip(b"hello")),
            ("X-GZIP", gzip(b"hello")),
            ("gzip", two_members),
            ("deflate", zlib(b"hello")),
            ("deflate", raw(b"hello")),
            ("identity", b"hello".to_vec()),
            ("deflate, identity, gzip", gzip(&zlib(b"hello"))),
        ] {
            let plain = decoded(answer(coding, body), 20).unwrap();
            assert_eq!(&*plain.body, b"hello", "{coding}");
            assert_eq!(plain.header("content-encoding"), None, "{coding}");
        }
        let unknown = decoded(answer("br", b"hello".to_vec()), 5).unwrap();
        assert_eq!(unknown.header("content-encoding"), Some("br"));
        assert!(
            decoded(answer("gzip", Vec::new()), 5)
                .unwrap()
                .body
                .is_empty()
        );
    }

    #[test]
    fn bombs_and_rubbish_end() {
        let bomb = gzip(&vec![0; 1_000_000]);
        assert!(bomb.len() < 10_000);
        let doubled = gzip(&gzip(&vec![0; 1_000_000]));
        let cut = gzip(b"hello")[..12].to_vec();
        let broken = |result: Result<HttpResponse, DecodeError>| {
            matches!(result.unwrap_err(), DecodeError::Broken(_))
        };
        assert_eq!(
            decoded(answer("gzip", bomb), 100_000).unwrap_err(),
            DecodeError::TooLarge
        );
        assert_eq!(
            decoded(answer("gzip, gzip", doubled), 100_000).unwrap_err(),
            DecodeError::TooLarge
        );
        assert!(broken(decoded(answer("gzip", cut), 100)));
        assert!(broken(decoded(answer("gzip", b"x".to_vec()), 100)));
        assert!(broken(decoded(answer("deflate", vec![0xff; 9]), 100)));
        let often = "gzip,gzip,gzip,gzip";
        assert!(broken(decoded(answer(often, gzip(b"x")), 100)));
    }
}
