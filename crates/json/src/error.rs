//! What is wrong with a value, in JSON's words.

use std::fmt::{self, Display, Formatter};

use serde::de::{self, Expected, Unexpected};

/// A value that is not what it should be, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    path: String,
    problem: Problem,
}

impl Error {
    /// `path` is where reading ended: a missing field is below it.
    pub(crate) fn new(mut path: String, problem: Problem) -> Self {
        if path == "." {
            path.clear();
        }
        if let Problem::Missing(field) = problem {
            path = join_path(&path, field);
        }
        Self { path, problem }
    }

    /// A document that cannot be taken apart.
    pub(crate) fn syntax(error: &serde_json::Error) -> Self {
        Self {
            path: String::new(),
            problem: Problem::Wrong(format!("not valid JSON: {error}")),
        }
    }

    /// The same error in a value that is itself at `path` of another.
    #[must_use]
    pub fn below(mut self, path: &str) -> Self {
        self.path = join_path(path, &self.path);
        self
    }

    /// The same error as it is told by those who name `path` themselves.
    #[must_use]
    pub fn within(mut self, path: &str) -> Self {
        if let Some(rest) = self.path.strip_prefix(path)
            && (rest.is_empty() || rest.starts_with(['.', '[']))
        {
            self.path = rest.trim_start_matches('.').to_owned();
        }
        self
    }

    /// Where the value is, such as `messages[0].role`. Empty: the value that was read.
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl std::error::Error for Error {}

impl Display for Error {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match (&self.problem, self.path.as_str()) {
            (Problem::Wrong(problem), "") => formatter.write_str(problem),
            (Problem::Wrong(problem), path) => write!(formatter, "{path}: {problem}"),
            (Problem::Missing(_), path) => write!(formatter, "`{path}` is missing"),
        }
    }
}

/// A path and what follows it.
fn join_path(path: &str, rest: &str) -> String {
    match (path, rest) {
        (_, "") => path.to_owned(),
        ("", _) => rest.to_owned(),
        (_, rest) if rest.starts_with('[') => format!("{path}{rest}"),
        _ => format!("{path}.{rest}"),
    }
}

/// What types say of a value while they are read. They know Rust's names; what is kept are JSON's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Problem {
    Wrong(String),
    Missing(&'static str),
}

impl Problem {
    /// The words for a value that is of another kind than the one that is wanted.
    pub(crate) fn expected(wanted: impl Display, got: impl Display) -> Self {
        Self::Wrong(format!("expected {wanted}, got {got}"))
    }
}

impl std::error::Error for Problem {}

impl Display for Problem {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wrong(problem) => formatter.write_str(problem),
            Self::Missing(field) => write!(formatter, "`{field}` is missing"),
        }
    }
}

impl de::Error for Problem {
    fn custom<T: Display>(message: T) -> Self {
        Self::Wrong(message.to_string())
    }

    fn invalid_type(got: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        let wanted = wanted.to_string();
        match got {
            // The range is not what is wrong with a fraction.
            Unexpected::Float(number) if number.fract() != 0.0 && is_integer(&wanted) => {
                Self::expected("an integer", number)
            }
            got => Self::expected(name_kind(&wanted), kind(got)),
        }
    }

    fn invalid_value(got: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        Self::expected(name_kind(&wanted.to_string()), kind(got))
    }

    fn invalid_length(length: usize, wanted: &dyn Expected) -> Self {
        Self::expected(
            name_kind(&wanted.to_string()),
            format_args!("a list of {length}"),
        )
    }

    fn unknown_variant(variant: &str, wanted: &'static [&'static str]) -> Self {
        Self::expected(one_of(wanted), format_args!("`{variant}`"))
    }

    fn unknown_field(_: &str, known: &'static [&'static str]) -> Self {
        Self::Wrong(format!(
            "there is no such field; expected {}",
            one_of(known)
        ))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::Missing(field)
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::Wrong(format!("`{field}` is there twice"))
    }
}

fn one_of(names: &[&str]) -> String {
    match names {
        [] => "nothing".to_owned(),
        [only] => format!("`{only}`"),
        names => format!("one of `{}`", names.join("`, `")),
    }
}

/// What there is, where its kind is what is wrong with it, and the number where that is.
fn kind(got: Unexpected<'_>) -> String {
    match got {
        Unexpected::Bool(_) => "a boolean".to_owned(),
        Unexpected::Unsigned(number) => number.to_string(),
        Unexpected::Signed(number) => number.to_string(),
        Unexpected::Float(number) => format!("{number:?}"),
        Unexpected::Char(_) | Unexpected::Str(_) | Unexpected::Bytes(_) => "a string".to_owned(),
        Unexpected::Unit | Unexpected::Option => "null".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map
        | Unexpected::NewtypeStruct
        | Unexpected::Enum
        | Unexpected::UnitVariant
        | Unexpected::NewtypeVariant
        | Unexpected::TupleVariant
        | Unexpected::StructVariant => "an object".to_owned(),
        Unexpected::Other(other) => other.to_owned(),
    }
}

/// What Rust's types call themselves, in JSON's words. Other words are a type's own.
fn name_kind(wanted: &str) -> String {
    if let Some((least, most)) = integer_range(wanted) {
        return format!("an integer between {least} and {most}");
    }
    if is_integer(wanted) {
        return "an integer".to_owned();
    }
    let is_any_of = |heads: &[&str]| heads.iter().any(|head| wanted.starts_with(head));
    let kind = if is_any_of(&["f32", "f64"]) {
        "a number"
    } else if is_any_of(&["a sequence", "tuple", "a tuple", "an array"]) {
        "a list"
    } else if is_any_of(&["a map", "struct", "internally tagged", "adjacently tagged"]) {
        "an object"
    } else if is_any_of(&[
        "enum",
        "variant",
        "field",
        "a character",
        "a borrowed",
        "string",
    ]) {
        "a string"
    } else if is_any_of(&["unit", "option"]) {
        "null"
    } else {
        wanted
    };
    kind.to_owned()
}

fn is_integer(wanted: &str) -> bool {
    integer_range(wanted).is_some() || matches!(wanted, "i128" | "u128")
}

/// What an integer type of at most 64 bits holds, by its name.
fn integer_range(wanted: &str) -> Option<(i128, i128)> {
    Some(match wanted {
        "u8" => (0, u8::MAX.into()),
        "u16" => (0, u16::MAX.into()),
        "u32" => (0, u32::MAX.into()),
        "u64" | "usize" => (0, u64::MAX.into()),
        "i8" => (i8::MIN.into(), i8::MAX.into()),
        "i16" => (i16::MIN.into(), i16::MAX.into()),
        "i32" => (i32::MIN.into(), i32::MAX.into()),
        "i64" | "isize" => (i64::MIN.into(), i64::MAX.into()),
        _ => return None,
    })
}
