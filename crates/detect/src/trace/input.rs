//! Bytes in, bytes out: undoes gzip and zstd, told by their first bytes, and counts what comes out.

use std::error::Error;
use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::item::{TraceReadErrorKind, TraceReadLimits};

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// The input with the bytes that were looked at put back.
type BufferedInput<R> = BufReader<Chain<Cursor<Vec<u8>>, R>>;

/// The plain bytes of an input.
pub(crate) struct TraceInput<R: Read> {
    decoder: Decompressor<R>,
    left: u64,
    capped: bool,
}

enum Decompressor<R: Read> {
    /// Not looked at yet, so that opening reads nothing and cannot fail.
    Unopened(Option<R>, u64),
    Plain(Chain<Cursor<Vec<u8>>, R>),
    Gzip(Box<MultiGzDecoder<BufferedInput<R>>>),
    Zstd(Box<Frames<BufferedInput<R>>>),
}

impl<R: Read> TraceInput<R> {
    pub(crate) fn new(inner: R, limits: &TraceReadLimits) -> Self {
        Self {
            decoder: Decompressor::Unopened(Some(inner), limits.max_zstd_window_bytes),
            left: limits.max_bytes.unwrap_or(u64::MAX),
            capped: limits.max_bytes.is_some(),
        }
    }

    /// Reads some bytes; none at the end.
    pub(crate) fn read(
        &mut self,
        buffer: &mut [u8],
    ) -> Result<usize, (TraceReadErrorKind, io::Error)> {
        loop {
            match self.decoder.read(buffer) {
                Ok(count) if count as u64 > self.left => {
                    let error = io::Error::other("there is more than the limit allows");
                    return Err((TraceReadErrorKind::TooLarge, error));
                }
                Ok(count) => {
                    if self.capped {
                        self.left -= count as u64;
                    }
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let kind = match self.decoder {
                        Decompressor::Gzip(_) | Decompressor::Zstd(_) => {
                            TraceReadErrorKind::Compression
                        }
                        Decompressor::Unopened(..) | Decompressor::Plain(_) => {
                            TraceReadErrorKind::Io
                        }
                    };
                    return Err((kind, error));
                }
            }
        }
    }
}

impl<R: Read> Read for Decompressor<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self {
                Self::Unopened(inner, window) => {
                    let window = *window;
                    let Some(mut inner) = inner.take() else {
                        return Ok(0);
                    };
                    let start = first_bytes(&mut inner)?;
                    *self = Self::open(start, inner, window);
                }
                Self::Plain(inner) => return inner.read(buffer),
                Self::Gzip(inner) => return inner.read(buffer),
                Self::Zstd(inner) => return inner.read(buffer),
            }
        }
    }
}

impl<R: Read> Decompressor<R> {
    fn open(start: Vec<u8>, inner: R, window: u64) -> Self {
        let gzip = start.starts_with(GZIP);
        let zstd = start.starts_with(ZSTD);
        let whole = Cursor::new(start).chain(inner);
        if gzip {
            Self::Gzip(Box::new(MultiGzDecoder::new(BufReader::new(whole))))
        } else if zstd {
            Self::Zstd(Box::new(Frames::new(BufReader::new(whole), window)))
        } else {
            Self::Plain(whole)
        }
    }
}

/// Enough bytes to tell the compression, or all there are.
fn first_bytes(inner: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut start = vec![0; ZSTD.len()];
    let mut filled = 0;
    while filled < start.len() {
        match inner.read(&mut start[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    start.truncate(filled);
    Ok(start)
}

/// All frames of a zstd stream, one after the other, with their checksums compared.
struct Frames<R> {
    source: R,
    decoder: FrameDecoder,
    open: bool,
}

impl<R: BufRead> Frames<R> {
    fn new(source: R, window: u64) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(window);
        Self {
            source,
            decoder,
            open: false,
        }
    }

    /// Goes to the next frame; `false` at the end of the input.
    fn next_frame(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.source) {
                Ok(()) => {
                    self.open = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let skipped =
                        io::copy(&mut (&mut self.source).take(length.into()), &mut io::sink())?;
                    if skipped < u64::from(length) {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(FrameDecoderError::WindowSizeTooBig { requested, max }) => {
                    return Err(io::Error::other(format!(
                        "the zstd frame asks for a window of {requested} bytes, more than {max}"
                    )));
                }
                Err(error) => return Err(damaged(&error)),
            }
        }
        Ok(false)
    }
}

/// What is wrong in words: the decoder's own are for those who wrote it.
fn damaged(error: &FrameDecoderError) -> io::Error {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            return match io.kind() {
                io::ErrorKind::UnexpectedEof => io::Error::other("the zstd stream is cut off"),
                kind => io::Error::new(kind, io.to_string()),
            };
        }
        cause = error.source();
    }
    io::Error::other("the zstd stream is damaged")
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.open && !self.next_frame()? {
                return Ok(0);
            }
            if self.decoder.can_collect() > 0 {
                return self.decoder.read(buffer);
            }
            if self.decoder.is_finished() {
                let stored = self.decoder.get_checksum_from_data();
                if stored.is_some() && stored != self.decoder.get_calculated_checksum() {
                    return Err(io::Error::other("the checksum of the zstd frame is wrong"));
                }
                self.open = false;
                continue;
            }
            self.decoder
                .decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBlocks(1))
                .map_err(|error| damaged(&error))?;
        }
    }
}
