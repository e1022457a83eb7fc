//! Text that a template has made, at the cost that the engine asks for its own.

use std::{
    fmt,
    io::{self, Write},
};

use minijinja::{Error, State};

/// Bytes that cost one unit of fuel.
pub(super) const BYTES_OF_FUEL: usize = 64;

/// Bytes that one more piece costs beside its own, however small it is: time, that is.
const BYTES_OF_PIECE: usize = 32;

/// Text that grows as long as the fuel of its rendering lasts: a value may hold itself many times
/// over, so that its text is far longer than what it takes in memory.
pub(super) struct Metered<'a> {
    state: &'a State<'a, 'a>,
    bytes: Vec<u8>,
    /// What has been written, in bytes and what each piece takes.
    owed: usize,
    paid: usize,
    failure: Option<Error>,
}

impl<'a> Metered<'a> {
    pub(super) fn new(state: &'a State<'a, 'a>) -> Self {
        Self {
            state,
            bytes: Vec::new(),
            owed: 0,
            paid: 0,
            failure: None,
        }
    }

    /// The text.
    ///
    /// # Errors
    ///
    /// The fuel did not last.
    pub(super) fn finish(self) -> Result<String, Error> {
        match self.failure {
            Some(error) => Err(error),
            None => Ok(String::from_utf8_lossy(&self.bytes).into_owned()),
        }
    }
}

impl Write for Metered<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.owed += bytes.len() + BYTES_OF_PIECE;
        if self.owed > self.paid {
            let units = (self.owed - self.paid).div_ceil(BYTES_OF_FUEL);
            if let Err(error) = self.state.consume_fuel(units as u64) {
                self.failure = Some(error);
                return Err(io::ErrorKind::QuotaExceeded.into());
            }
            self.paid += units * BYTES_OF_FUEL;
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Write for Metered<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.write_all(text.as_bytes()).map_err(|_| fmt::Error)
    }
}
