//! Which names lead to this server, and which web pages may call it.

use std::{fmt, net::IpAddr};

use axum::http::HeaderValue;

use crate::options::Options;

/// Schemes of pages that come with an installed app; no web site can have them.
const APP_SCHEMES: &[&str] = &["app", "file", "tauri", "vscode-file", "vscode-webview"];

/// Ends of names that public DNS never gives: those of local networks (mDNS) and, reserved for
/// private use, those of containers and virtual machines, such as `host.docker.internal`.
const LOCAL_ENDS: &[&str] = &[".local", ".internal"];

/// What the owner lets in beside this machine's own, which may change while the server runs. It is
/// asked at every request, so answers come from memory.
pub trait Visitors: fmt::Debug + Send + Sync + 'static {
    /// Whether the server may be reached under a name, which is a `Host` header.
    fn allows_host(&self, host: &str) -> bool;

    /// Whether pages of an origin, which is an `Origin` header, may call client routes.
    fn allows_origin(&self, origin: &str) -> bool;
}

/// Whether a name is this machine's beyond doubt: no web site can have pointed it here.
pub(crate) fn is_own_host(host: &str, options: &Options) -> bool {
    let name = name_of(host);
    is_localhost(name)
        // An address cannot be rebound.
        || address(name).is_some()
        || options.own_names.iter().any(|own| is_named(name, own))
        || options
            .visitors
            .as_ref()
            .is_some_and(|visitors| visitors.allows_host(host))
}

/// Returns whether a name can be this machine's, too: another machine on the local network may have
/// claimed it. This is enough for client routes, where a page of such a name is refused by its
/// origin.
pub(crate) fn is_local_host(host: &str, options: &Options) -> bool {
    let name = name_of(host).to_ascii_lowercase();
    LOCAL_ENDS
        .iter()
        .any(|end| name.len() > end.len() && name.ends_with(end))
        || is_own_host(host, options)
}

/// Whether pages of an origin may call client routes of a server that was called as `host`.
pub(crate) fn is_allowed_origin(
    origin: &HeaderValue,
    host: Option<&str>,
    options: &Options,
) -> bool {
    let Ok(origin) = origin.to_str() else {
        return false;
    };
    if options
        .visitors
        .as_ref()
        .is_some_and(|visitors| visitors.allows_origin(origin))
    {
        return true;
    }
    // Sandboxed and local pages are all `null`, and so is a hostile one.
    let Some((scheme, authority)) = origin.split_once("://") else {
        return false;
    };
    if APP_SCHEMES.contains(&scheme) {
        return true;
    }
    let name = name_of(authority);
    is_localhost(name)
        || address(name).is_some_and(|address| address.is_loopback())
        // The server's own page, under a name that no other machine can have.
        || host.is_some_and(|host| host.eq_ignore_ascii_case(authority) && is_own_host(host, options))
}

/// A machine's name in full, its first label, or that label in the local network.
fn is_named(name: &str, own: &str) -> bool {
    let label = own.split('.').next().unwrap_or(own);
    let in_network = name.len() > LOCAL_ENDS[0].len()
        && name
            .split_at_checked(label.len())
            .is_some_and(|(first, end)| {
                first.eq_ignore_ascii_case(label) && end.eq_ignore_ascii_case(LOCAL_ENDS[0])
            });
    !label.is_empty()
        && (name.eq_ignore_ascii_case(own) || name.eq_ignore_ascii_case(label) || in_network)
}

fn is_localhost(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost") || name.to_ascii_lowercase().ends_with(".localhost")
}

/// An IPv4 address that is written as an IPv6 one counts as itself; a zone says only which of this
/// machine's networks the client came by.
fn address(name: &str) -> Option<IpAddr> {
    let name = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'))
        .unwrap_or(name);
    let without_zone = name.split_once('%').map_or(name, |(address, _)| address);
    let address: IpAddr = without_zone.parse().ok()?;
    Some(address.to_canonical())
}

/// The name of an authority, without port and without the dot of a full name.
fn name_of(authority: &str) -> &str {
    if let Some(end) = authority.find(']') {
        return &authority[..=end];
    }
    let name = match authority.split_once(':') {
        // More than one colon: an IPv6 address without brackets.
        Some((name, port)) if !port.contains(':') => name,
        _ => authority,
    };
    name.strip_suffix('.').unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Lets in one host and one origin.
    #[derive(Debug)]
    struct One(&'static str, &'static str);

    impl Visitors for One {
        fn allows_host(&self, host: &str) -> bool {
            host == self.0
        }

        fn allows_origin(&self, origin: &str) -> bool {
            origin == self.1
        }
    }

    fn options(own: &str) -> Options {
        Options {
            own_names: vec![own.to_owned()],
            visitors: Some(Arc::new(One("proxy.example:8000", "https://chat.example"))),
            ..Options::default()
        }
    }

    #[test]
    fn names_of_this_machine_and_addresses_are_hosts() {
        let options = options("mymac.fritz.box");
        for host in [
            "localhost",
            "LOCALHOST:8000",
            "localhost.:1",
            "app.localhost",
            "127.0.0.1:8000",
            "0.0.0.0:8000",
            "[::1]:8000",
            "[::1]",
            "::1",
            "[::ffff:127.0.0.1]:8000",
            "[fe80::1%25en0]:8000",
            "192.168.1.5:80",
            "mymac",
            "MyMac:8000",
            "mymac.local:8000",
            "mymac.fritz.box",
            "proxy.example:8000",
        ] {
            assert!(is_own_host(host, &options), "{host}");
            assert!(is_local_host(host, &options), "{host}");
        }
        for host in [
            "host.docker.internal:18631",
            "host.containers.internal",
            "gateway.docker.internal",
            "host.lima.internal",
            "HOST.Docker.Internal.",
            "other.local",
        ] {
            assert!(!is_own_host(host, &options), "{host}");
            assert!(is_local_host(host, &options), "{host}");
        }
        for host in [
            "",
            ".",
            ".local",
            ".internal",
            "local",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example:8000",
            "notlocalhost",
            "mymac.evil.example",
            "mymac.local.evil.example",
            "mymac.localx",
            "host.docker.internal.evil.example",
            "evilinternal",
            "fritz.box",
            "other",
        ] {
            assert!(!is_local_host(host, &options), "{host}");
        }
        // A machine without a name has none of these.
        for host in ["", ".local", "a"] {
            let nameless = super::Options {
                own_names: vec![String::new()],
                ..super::Options::default()
            };
            assert!(!is_own_host(host, &nameless), "{host}");
        }
    }

    #[test]
    fn pages_of_this_machine_and_apps_are_origins() {
        let options = options("mini");
        let check = |origin: &str, host: &str| {
            let origin = HeaderValue::from_str(origin).unwrap();
            is_allowed_origin(&origin, Some(host), &options)
        };
        for origin in [
            "http://localhost:5173",
            "https://127.0.0.1",
            "http://[::1]:8000",
            "http://[::ffff:7f00:1]:8000",
            "app://obsidian.md",
            "vscode-webview://abc",
            "http://mini.local:8000",
            "https://chat.example",
        ] {
            assert!(check(origin, "mini.local:8000"), "{origin}");
        }
        for origin in [
            "https://evil.example",
            "http://localhost.evil.example",
            "http://192.168.1.9",
            "http://mini.local:9000",
            "null",
        ] {
            assert!(!check(origin, "mini.local:8000"), "{origin}");
        }
        assert!(check("http://192.168.1.9:8000", "192.168.1.9:8000"));
        // A machine that claims a name in the local network can serve a page under it.
        assert!(!check("http://evil.local:8000", "evil.local:8000"));
        assert!(!check("http://evil.internal:8000", "evil.internal:8000"));
    }
}
