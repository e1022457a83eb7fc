//! Where the values of a body came from, for errors in the client's own words.

use crate::{Error, Translation};

/// Where values were moved from, so that errors name what the client wrote.
#[derive(Debug, Clone, Default)]
pub(crate) struct Renamed(pub(super) Vec<Renaming>);

#[derive(Debug, Clone)]
pub(super) struct Renaming {
    pub(super) place: &'static str,
    pub(super) source: String,
    /// The value has another form than the client gave it.
    pub(super) is_rewritten: bool,
}

impl Renamed {
    pub(super) fn source<'a>(&'a self, place: &'a str) -> &'a str {
        let renaming = self.0.iter().find(|renaming| renaming.place == place);
        renaming.map_or(place, |renaming| &renaming.source)
    }

    /// Whether the value at `place` is what the client wrote as `source`.
    pub(crate) fn is_from(&self, place: &str, source: &str) -> bool {
        let mut renamings = self.0.iter();
        renamings.any(|renaming| renaming.place == place && renaming.source == source)
    }

    /// An outcome in the client's own words.
    pub(crate) fn name<T>(&self, outcome: Result<T, Error>) -> Result<T, Error> {
        outcome.map_err(|error| match error {
            Error::Invalid {
                param: Some(param),
                message,
            } => match self.written(&param) {
                Some(written) => Error::Invalid {
                    message: message.replacen(&param, &written, 1),
                    param: Some(written),
                },
                None => Error::Invalid {
                    param: Some(param),
                    message,
                },
            },
            Error::Unsupported { param, reason } => Error::Unsupported {
                param: self.written(&param).unwrap_or(param),
                reason,
            },
            error => error,
        })
    }

    /// Does the same as [`Self::name`]; grammars, too, are named for what the client wrote.
    pub(crate) fn translation<E>(
        &self,
        outcome: Result<Translation<E>, Error>,
    ) -> Result<Translation<E>, Error> {
        let mut translation = self.name(outcome)?;
        for request in &mut translation.requests {
            if let Some(grammar) = &mut request.grammar
                && let Some(written) = self.written(&grammar.param)
            {
                grammar.param = written;
            }
        }
        Ok(translation)
    }

    fn written(&self, param: &str) -> Option<String> {
        self.0.iter().find_map(|renaming| {
            let rest = param.strip_prefix(renaming.place)?;
            match rest.chars().next() {
                None => Some(renaming.source.clone()),
                Some('.' | '[') if renaming.is_rewritten => Some(renaming.source.clone()),
                Some('.' | '[') => Some(format!("{}{rest}", renaming.source)),
                Some(_) => None,
            }
        })
    }
}
