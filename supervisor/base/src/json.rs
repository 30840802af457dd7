//! JSON text of requests and replies. All of them are written through one type of writer, so that the code that
//! serialises a type is compiled once.

use std::io;

use serde::Serialize;

/// Buffer for JSON text, with a limit.
#[derive(Debug)]
pub struct Buffer {
    bytes: Vec<u8>,
    /// Length beyond which it accepts no more, in bytes.
    limit: usize,
}

impl Buffer {
    /// Makes an empty buffer that accepts up to `limit` bytes and fails beyond.
    pub fn of(limit: usize) -> Self {
        Buffer { bytes: Vec::new(), limit }
    }

    /// Writes a value.
    ///
    /// # Errors
    /// The value has no JSON form; or, with [`serde_json::Error::is_io`], the text is longer than the limit.
    pub fn write<T: Serialize + ?Sized>(&mut self, value: &T) -> serde_json::Result<()> {
        serde_json::to_writer(self, value)
    }

    /// Returns the text as bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Returns the text.
    ///
    /// # Errors
    /// A value has written bytes that are no text.
    pub fn into_text(self) -> serde_json::Result<String> {
        String::from_utf8(self.bytes).map_err(|error| serde::ser::Error::custom(error.utf8_error()))
    }
}

impl io::Write for Buffer {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.write_all(piece).map(|()| piece.len())
    }

    fn write_all(&mut self, piece: &[u8]) -> io::Result<()> {
        if piece.len() > self.limit - self.bytes.len() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(piece);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns a value as JSON.
///
/// # Errors
/// The value has no JSON form.
pub fn bytes<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<Vec<u8>> {
    written(value).map(Buffer::into_bytes)
}

/// Returns a value as JSON.
///
/// # Errors
/// The value has no JSON form.
pub fn text<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<String> {
    written(value)?.into_text()
}

fn written<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<Buffer> {
    let mut buffer = Buffer::of(usize::MAX);
    buffer.write(value)?;
    Ok(buffer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_takes_what_its_limit_permits_and_no_more() {
        for (limit, fits) in [(4, false), (5, true), (6, true)] {
            let mut buffer = Buffer::of(limit);
            let written = buffer.write("abc");
            assert_eq!(written.is_ok(), fits, "{limit}");
            match written {
                Ok(()) => assert_eq!(buffer.into_bytes(), b"\"abc\""),
                Err(error) => assert!(error.is_io()),
            }
        }
    }
}
