//! A request's body as it came, with what its head says of it.

/// What an endpoint reads. Those that take JSON do not look at its type, since clients send any.
#[derive(Debug, Clone, Copy)]
pub struct Body<'a> {
    /// `Content-Type` as the client wrote it, with its parameters (the boundary of a form); `None`:
    /// the client sent none.
    pub content_type: Option<&'a str>,
    pub bytes: &'a [u8],
}

impl<'a> Body<'a> {
    /// A body of JSON.
    pub fn json(bytes: &'a [u8]) -> Self {
        Self {
            content_type: Some("application/json"),
            bytes,
        }
    }
}
