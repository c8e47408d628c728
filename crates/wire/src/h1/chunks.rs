//! The chunked transfer coding (RFC 9112 7.1) up to its last chunk; the trailer section after it is the decoder's.

use super::DecodeError;
use super::limits::CHUNK_LINE_BYTES_MAX;

/// Where in a chunked body the next byte belongs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chunks {
    /// Within a size: its value so far. Within data: bytes left.
    size: u64,
    /// Bytes of the chunk-size line so far.
    line_bytes: u16,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the first digit of a size.
    SizeStart,
    Size,
    /// After whitespace that follows a size.
    SizeEnd,
    Extension,
    /// After the CR that ends a chunk-size line.
    LineFeed,
    Data,
    /// After the last byte of data.
    DataEnd,
    /// After the CR that ends data.
    DataLineFeed,
    /// After the line of the last chunk.
    Last,
}

/// What a piece of input was.
pub(super) enum Piece<'a> {
    /// Sizes, extensions, line ends.
    Framing,
    Data(&'a [u8]),
    /// The end of the last chunk's line. The trailer section follows.
    Last,
}

impl Chunks {
    pub(super) const fn new() -> Self {
        Self { size: 0, line_bytes: 0, state: State::SizeStart }
    }

    /// Takes the next piece off a non-empty `input`: its length and what it was.
    pub(super) fn decode<'a>(&mut self, input: &'a [u8]) -> Result<(usize, Piece<'a>), DecodeError> {
        if self.state == State::Data {
            let data = self.take_data(input);
            return Ok((data.len(), Piece::Data(data)));
        }
        for (index, &byte) in input.iter().enumerate() {
            self.read_framing(byte)?;
            match self.state {
                State::Data => return Ok((index + 1, Piece::Framing)),
                State::Last => return Ok((index + 1, Piece::Last)),
                _ => {}
            }
        }
        Ok((input.len(), Piece::Framing))
    }

    fn take_data<'a>(&mut self, input: &'a [u8]) -> &'a [u8] {
        let bytes = usize::try_from(self.size).map_or(input.len(), |left| left.min(input.len()));
        self.size -= bytes as u64;
        if self.size == 0 {
            self.state = State::DataEnd;
        }
        &input[..bytes]
    }

    fn read_framing(&mut self, byte: u8) -> Result<(), DecodeError> {
        match self.state {
            State::DataEnd | State::DataLineFeed => self.read_data_end(byte),
            _ => {
                self.count_line_byte()?;
                self.read_line(byte)
            }
        }
    }

    fn count_line_byte(&mut self) -> Result<(), DecodeError> {
        if usize::from(self.line_bytes) == CHUNK_LINE_BYTES_MAX {
            return Err(DecodeError::ChunkLineTooLong { bytes_max: CHUNK_LINE_BYTES_MAX });
        }
        self.line_bytes += 1;
        Ok(())
    }

    fn read_line(&mut self, byte: u8) -> Result<(), DecodeError> {
        self.state = match (self.state, byte) {
            (State::SizeStart | State::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                self.size = push_digit(self.size, byte)?;
                State::Size
            }
            // RFC 9112 7.1.1 allows whitespace before an extension; some servers pad sizes with it.
            (State::Size | State::SizeEnd, b' ' | b'\t') => State::SizeEnd,
            (State::Size | State::SizeEnd, b';') => State::Extension,
            (State::Size | State::SizeEnd | State::Extension, b'\r') => State::LineFeed,
            (State::Size | State::SizeEnd | State::Extension, b'\n') => {
                return Err(DecodeError::ChunkLineEndInvalid { byte });
            }
            // RFC 9112 7.1.1: extensions that are not understood are ignored, and none is understood here.
            (State::Extension, b'\t' | b' '..=b'~' | 0x80..) => State::Extension,
            (State::Extension, _) => return Err(DecodeError::ChunkExtensionInvalid { byte }),
            (State::LineFeed, b'\n') => self.start_of_data(),
            (State::LineFeed, _) => return Err(DecodeError::ChunkLineEndInvalid { byte }),
            _ => return Err(DecodeError::ChunkSizeInvalid { byte }),
        };
        Ok(())
    }

    fn start_of_data(&mut self) -> State {
        self.line_bytes = 0;
        if self.size == 0 { State::Last } else { State::Data }
    }

    fn read_data_end(&mut self, byte: u8) -> Result<(), DecodeError> {
        self.state = match (self.state, byte) {
            (State::DataEnd, b'\r') => State::DataLineFeed,
            (State::DataLineFeed, b'\n') => State::SizeStart,
            _ => return Err(DecodeError::ChunkDataEndInvalid { byte }),
        };
        Ok(())
    }
}

fn push_digit(size: u64, digit: u8) -> Result<u64, DecodeError> {
    let value = match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    };
    size.checked_mul(16).map(|size| size | u64::from(value)).ok_or(DecodeError::ChunkSizeOverflow)
}
