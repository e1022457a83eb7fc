//! Patterns of host names and web origins that are let in beside those of this machine.
//!
//! A pattern is read once, into a type that only says yes or no; what is not understood is an error
//! that names it.

use std::{fmt, net::IpAddr, str::FromStr};

use serde::{Deserialize, Serialize};

/// Why a pattern cannot be honoured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{pattern}` is not understood: {reason}")]
pub struct PatternError {
    pattern: String,
    reason: &'static str,
}

/// A name, or names, under which the server may be reached: `mini.example.org`, `*.example.org`,
/// `mini.example.org:8000`, or `*` for any.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostPattern {
    text: String,
    host: Host,
    port: Port,
}

/// Web pages that may call client routes: `https://chat.example.org`, `https://*.example.org`,
/// `http://192.168.1.*`, `http://localhost:*`, `chrome-extension://*`, `null`, or `*` for any.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct OriginPattern {
    text: String,
    origins: Origins,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Origins {
    Any,
    /// `null`, the origin of local files and sandboxed frames.
    Null,
    Of {
        scheme: String,
        host: Host,
        port: Port,
    },
}

/// Names in small letters.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Host {
    Any,
    /// What stands behind the `*`, with its dot.
    Below(String),
    /// What stands before the `*` of an IPv4 address, with its dot.
    Network(String),
    Named(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Port {
    Any,
    /// The scheme's own, which is not written.
    Default,
    Is(u16),
}

impl HostPattern {
    /// Whether a name, as the `Host` header has it, is one of these.
    pub fn matches(&self, authority: &str) -> bool {
        let (host, port) = split_authority(authority);
        let is_port = match self.port {
            Port::Is(wanted) => port.parse() == Ok(wanted),
            Port::Any | Port::Default => true,
        };
        is_port && self.host.matches(host)
    }
}

impl OriginPattern {
    /// Whether an origin, as the `Origin` header has it, is one of these.
    pub fn matches(&self, origin: &str) -> bool {
        match &self.origins {
            Origins::Any => true,
            Origins::Null => origin == "null",
            Origins::Of { scheme, host, port } => {
                let Some((of_scheme, authority)) = origin.split_once("://") else {
                    return false;
                };
                let (of_host, of_port) = split_authority(authority);
                let of_port = Port::read(of_scheme, of_port);
                of_scheme.eq_ignore_ascii_case(scheme)
                    && host.matches(of_host)
                    && (*port == Port::Any || of_port == Some(*port))
            }
        }
    }
}

impl Host {
    fn matches(&self, host: &str) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        match self {
            Self::Any => true,
            Self::Below(suffix) => host.len() > suffix.len() && host.ends_with(suffix.as_str()),
            Self::Network(prefix) => {
                host.starts_with(prefix.as_str()) && matches!(host.parse(), Ok(IpAddr::V4(_)))
            }
            Self::Named(name) => {
                *name == host
                    || address(name).is_some_and(|address_| address(&host) == Some(address_))
            }
        }
    }

    /// `None`: it is neither a name nor a pattern of names.
    fn read(host: &str) -> Option<Self> {
        let host = host.to_ascii_lowercase();
        if host == "*" {
            return Some(Self::Any);
        }
        if let Some(suffix) = host.strip_prefix('*') {
            let name = suffix.strip_prefix('.')?;
            return is_name(name).then(|| Self::Below(suffix.to_owned()));
        }
        if let Some(prefix) = host.strip_suffix('*') {
            let numbers: Vec<&str> = prefix.strip_suffix('.')?.split('.').collect();
            let are_bytes = numbers.iter().all(|number| number.parse::<u8>().is_ok());
            return (are_bytes && numbers.len() < 4).then(|| Self::Network(prefix.to_owned()));
        }
        (is_name(&host) || address(&host).is_some()).then_some(Self::Named(host))
    }

    /// Whether it ends in a `*`, which then stands for the port as well.
    fn is_open_ended(&self) -> bool {
        matches!(self, Self::Any | Self::Network(_))
    }
}

impl Port {
    /// `None`: it is no port.
    fn read(scheme: &str, port: &str) -> Option<Self> {
        match (scheme.to_ascii_lowercase().as_str(), port) {
            (_, "") | ("http", "80") | ("https", "443") => Some(Self::Default),
            (_, "*") => Some(Self::Any),
            (_, port) => port.parse().ok().map(Self::Is),
        }
    }
}

impl FromStr for HostPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let refused = |reason| {
            Err(PatternError {
                pattern: text.to_owned(),
                reason,
            })
        };
        let pattern = text.trim();
        if pattern.contains("://") || pattern.contains('/') {
            return refused("a host is a name without scheme and path, such as `mini.example.org`");
        }
        let (host, port) = split_authority(pattern);
        let (Some(host), Some(port)) = (Host::read(host), Port::read("", port)) else {
            return refused(
                "a host is a name, `*.` and the end of names, or `*`, and may end in a port",
            );
        };
        Ok(Self {
            text: pattern.to_owned(),
            host,
            port,
        })
    }
}

impl FromStr for OriginPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let pattern = text.trim();
        let origins = match pattern {
            "*" => Some(Origins::Any),
            "null" => Some(Origins::Null),
            _ => origins_of(pattern.strip_suffix('/').unwrap_or(pattern)),
        };
        match origins {
            Some(origins) => Ok(Self {
                text: pattern.to_owned(),
                origins,
            }),
            None => Err(PatternError {
                pattern: text.to_owned(),
                reason: "an origin is a scheme and a host without a path, such as \
                         `https://chat.example.org`, `https://*.example.org`, `http://192.168.1.*`, \
                         `http://localhost:*` or `chrome-extension://*`, or it is `*`",
            }),
        }
    }
}

fn origins_of(pattern: &str) -> Option<Origins> {
    let (scheme, authority) = pattern.split_once("://")?;
    let mut letters = scheme.chars();
    let is_scheme = letters
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic())
        && letters.all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter));
    let (host, port) = split_authority(authority);
    let host = Host::read(host)?;
    let port = match Port::read(scheme, port)? {
        Port::Default if port.is_empty() && host.is_open_ended() => Port::Any,
        port => port,
    };
    is_scheme.then(|| Origins::Of {
        scheme: scheme.to_ascii_lowercase(),
        host,
        port,
    })
}

/// Host and port of an authority; an IPv6 address may stand without brackets where no port follows.
fn split_authority(authority: &str) -> (&str, &str) {
    let begin_of_port = authority.rfind(']').map_or(0, |end| end + 1);
    match authority[begin_of_port..].rsplit_once(':') {
        Some((rest, port)) if !rest.contains(':') => {
            (&authority[..begin_of_port + rest.len()], port)
        }
        _ => (authority, ""),
    }
}

fn address(host: &str) -> Option<IpAddr> {
    let host = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    host.parse().ok()
}

/// A host as browsers write it; ids of extensions are such names, too.
fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.split('.').all(|label| {
            !label.is_empty()
                && label
                    .chars()
                    .all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter))
        })
}

/// Texts that hold a pattern.
macro_rules! texts {
    ($($pattern:ident),*) => {$(
        impl fmt::Display for $pattern {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.text)
            }
        }

        impl TryFrom<String> for $pattern {
            type Error = PatternError;

            fn try_from(text: String) -> Result<Self, PatternError> {
                text.parse()
            }
        }

        impl From<$pattern> for String {
            fn from(pattern: $pattern) -> Self {
                pattern.text
            }
        }
    )*};
}

texts!(HostPattern, OriginPattern);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_match_by_name_end_and_port() {
        for (pattern, matching, others) in [
            (
                "mini.example.org",
                &[
                    "mini.example.org",
                    "MINI.example.org:8000",
                    "mini.example.org.",
                ][..],
                &[
                    "example.org",
                    "a.mini.example.org",
                    "mini.example.org.evil.example",
                    "",
                ][..],
            ),
            (
                "*.Example.org",
                &["a.example.org", "a.b.example.org:1"],
                &[
                    "example.org",
                    ".example.org",
                    "evilexample.org",
                    "a.example.org.evil.example",
                ],
            ),
            ("mini:8000", &["mini:8000"], &["mini", "mini:80"]),
            ("mini:*", &["mini", "mini:1"], &["maxi:1"]),
            ("*", &["anything.example", "[::1]:1", ""], &[]),
            (
                "[fd00::1]",
                &["[fd00::1]:8000", "fd00::1"],
                &["[fd00::2]:8000"],
            ),
            (
                "10.0.*",
                &["10.0.3.4:1"],
                &["10.0.evil.example", "10.0.3", "10.1.0.1"],
            ),
        ] {
            let read: HostPattern = pattern.parse().unwrap();
            for host in matching {
                assert!(read.matches(host), "{pattern} {host}");
            }
            for host in others {
                assert!(!read.matches(host), "{pattern} {host}");
            }
        }
    }

    #[test]
    fn origins_match_by_scheme_host_and_port() {
        for (pattern, matching, others) in [
            (
                "https://chat.example.org/",
                &[
                    "https://chat.example.org",
                    "HTTPS://Chat.example.org",
                    "https://chat.example.org:443",
                ][..],
                &[
                    "http://chat.example.org",
                    "https://chat.example.org:8443",
                    "null",
                    "https://example.org",
                ][..],
            ),
            (
                "https://*.example.org",
                &["https://a.example.org", "https://a.b.example.org"],
                &[
                    "https://example.org",
                    "https://evilexample.org",
                    "https://a.example.org:1",
                ],
            ),
            (
                "http://192.168.1.*",
                &["http://192.168.1.9", "http://192.168.1.9:3000"],
                &[
                    "http://192.168.1.evil.example",
                    "http://192.168.10.9",
                    "https://192.168.1.9",
                    "http://192.168.1.9.evil.example",
                ],
            ),
            (
                "http://localhost:*",
                &["http://localhost", "http://localhost:5173"],
                &[
                    "http://localhost.evil.example:5173",
                    "https://localhost:5173",
                ],
            ),
            (
                "chrome-extension://*",
                &["chrome-extension://abcdefghijklmnop"],
                &["moz-extension://1b2c-3d", "https://chrome-extension"],
            ),
            (
                "moz-extension://*",
                &["moz-extension://b0a1c2d3-0000-4000-8000-1234567890ab"],
                &["chrome-extension://abc"],
            ),
            (
                "http://*",
                &["http://a.example:81", "http://[::1]:2"],
                &["https://a.example"],
            ),
            (
                "http://[::1]:8000",
                &["http://[::1]:8000"],
                &["http://[::1]", "http://[::2]:8000"],
            ),
            ("null", &["null"], &["http://null"]),
            ("*", &["null", "https://anything.example"], &[]),
        ] {
            let read: OriginPattern = pattern.parse().unwrap();
            for origin in matching {
                assert!(read.matches(origin), "{pattern} {origin}");
            }
            for origin in others {
                assert!(!read.matches(origin), "{pattern} {origin}");
            }
        }
    }

    #[test]
    fn what_is_not_understood_is_refused_by_name() {
        for pattern in [
            "",
            " ",
            "http://mini",
            "mini/path",
            "a*b",
            "mini.*",
            "*example.org",
            "*.",
            "**",
            "*.*.org",
            "192.168.*.1",
            "300.1.*",
            "mini:port",
            "mini:70000",
            "bücher.example",
            "a..b",
            "[::1",
        ] {
            let error = pattern.parse::<HostPattern>().unwrap_err();
            assert!(
                error.to_string().contains(&format!("`{pattern}`")),
                "{error}"
            );
        }
        for pattern in [
            "",
            "chat.example.org",
            "https://",
            "https://a.example/path",
            "https://a*b.example",
            "https://mini.*",
            "://a",
            "1x://a",
            "*://a",
            "https://a:b",
            "https://*.*",
            "http://1.2.3.4.*",
            "https:/a",
            "https://a,https://b",
        ] {
            let error = pattern.parse::<OriginPattern>().unwrap_err();
            assert!(
                error.to_string().contains(&format!("`{pattern}`")),
                "{error}"
            );
        }
    }

    #[test]
    fn a_pattern_is_kept_as_it_was_written() {
        let pattern: OriginPattern = serde_json::from_str("\"https://Chat.example.org/\"").unwrap();
        assert_eq!(
            serde_json::to_string(&pattern).unwrap(),
            "\"https://Chat.example.org/\""
        );
        assert!(serde_json::from_str::<HostPattern>("\"a/b\"").is_err());
    }
}
