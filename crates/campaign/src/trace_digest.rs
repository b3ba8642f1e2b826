//! The digest of a recording: made while it is written, and checked when it is replayed, so that one that was changed
//! since is not taken for what happened.

use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex};

use data_encoding::HEXLOWER;
use proofhouse_wire::sync::lock;
use ring::digest::{Context, SHA256};

/// The digest of what goes through, in one direction or the other.
#[derive(Clone)]
pub(crate) struct TraceDigest(Arc<Mutex<Context>>);

/// Bytes on their way, all of which are digested.
pub(crate) struct Digested<T> {
    inner: T,
    digest: TraceDigest,
}

impl TraceDigest {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Context::new(&SHA256))))
    }

    /// Digests what is written to or read from `inner`.
    pub(crate) fn of<T>(&self, inner: T) -> Digested<T> {
        Digested {
            inner,
            digest: self.clone(),
        }
    }

    fn update(&self, bytes: &[u8]) {
        lock(&self.0).update(bytes);
    }

    /// The SHA-256 of all bytes so far, as letters and digits.
    pub(crate) fn hex(&self) -> String {
        let digest = lock(&self.0).clone().finish();
        HEXLOWER.encode(digest.as_ref())
    }
}

impl<W: Write> Write for Digested<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.digest.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<R: Read> Read for Digested<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.digest.update(&buffer[..read]);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_and_what_is_read_have_one_digest() {
        let (written, read, other) = (TraceDigest::new(), TraceDigest::new(), TraceDigest::new());
        let mut file = Vec::new();
        written.of(&mut file).write_all(b"{\"seq\":1}\n").unwrap();
        io::copy(&mut read.of(&*file), &mut io::sink()).unwrap();
        assert_eq!(written.hex(), read.hex());
        io::copy(&mut other.of(&b"{\"seq\":2}\n"[..]), &mut io::sink()).unwrap();
        assert_ne!(written.hex(), other.hex());
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(TraceDigest::new().hex(), empty);
    }
}
