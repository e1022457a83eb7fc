//! The TCP door: finding a port, serving, and closing without cutting anyone off.

use std::{
    future::Future,
    io,
    net::SocketAddr,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use axum::{Extension, Router};
use futures::{FutureExt, future::select_all};
use tokio::{
    net::{TcpListener, TcpStream, lookup_host},
    sync::{Semaphore, watch},
    task::JoinSet,
    time::timeout,
};

use crate::{
    closing::Closing,
    connections::{ConnectionLimits, serve_connection, turn_away},
    door::Door,
    options::Options,
};

/// How many ports after the wanted one are tried.
const FALLBACK_PORTS: u16 = 20;

/// How many ports the system is asked for until one is free on all addresses.
const FREE_PORT_TRIES: usize = 8;

/// How many connections are told at once that there are too many; more are closed without a word.
const FAREWELLS: usize = 32;

/// How long streams have to write their last frame.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// An open port on which requests are not answered yet.
#[derive(Debug)]
pub struct Listener {
    tcp: Accepting,
    address: SocketAddr,
    /// True if there were keys when the port was opened.
    has_asked: Arc<AtomicBool>,
    limits: ConnectionLimits,
}

impl Listener {
    /// The address that was bound, with the port that was found.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Resolves when the port is free again, which is long before the last answer has ended.
    pub fn released(&self) -> impl Future<Output = ()> + Send + 'static {
        let held = self.tcp.held.clone();
        async move { held.closed().await }
    }
}

/// A port that takes connections, on one address or several.
#[derive(Debug)]
struct Accepting {
    /// One for each address of the name that was bound; at least one.
    tcp: Vec<TcpListener>,
    held: watch::Sender<()>,
    _holding: watch::Receiver<()>,
}

impl Accepting {
    async fn accept(&mut self) -> TcpStream {
        // The trait's, which tries again after what is no failure of the port.
        let accepting = self.tcp.iter_mut();
        let accepting = accepting.map(|tcp| axum::serve::Listener::accept(tcp).boxed());
        let ((stream, _), ..) = select_all(accepting).await;
        stream
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        let first = self.tcp.first().ok_or(io::ErrorKind::AddrNotAvailable)?;
        first.local_addr()
    }
}

/// What to do when the wanted port is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfBusy {
    Fail,
    /// Try the next ones, up to 20.
    NextFree,
}

/// Why no port was opened.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    #[error(
        "{host} can be reached from other machines, so an API key is needed; \
         set one or bind to 127.0.0.1"
    )]
    NeedsKey { host: String },
    #[error("cannot find the address of `{host}`: {source}")]
    Resolve { host: String, source: io::Error },
    #[error("`{host}` has no address")]
    NoAddress { host: String },
    #[error("port {port} on {host} is taken; choose another")]
    Busy { host: String, port: u16 },
    #[error("ports {first} to {last} on {host} are all taken; choose another")]
    AllBusy { host: String, first: u16, last: u16 },
    #[error("cannot listen on {address}: {source}")]
    Listen {
        address: SocketAddr,
        source: io::Error,
    },
}

/// Opens a port, on every address that the name has: `localhost` is an IPv4 address for some clients
/// and an IPv6 one for others. Port 0 is any free one.
pub async fn bind(
    host: &str,
    port: u16,
    if_busy: IfBusy,
    options: &Options,
) -> Result<Listener, BindError> {
    let mut addresses: Vec<SocketAddr> = lookup_host((unbracketed(host), port))
        .await
        .map_err(|source| BindError::Resolve {
            host: host.to_owned(),
            source,
        })?
        .collect();
    // The first is the one that is shown.
    addresses.sort_by_key(|address| (address.is_ipv6(), *address));
    addresses.dedup();
    let is_local = addresses
        .iter()
        .all(|address| address.ip().to_canonical().is_loopback());
    if !is_local && !options.asks_for_key() {
        return Err(BindError::NeedsKey {
            host: host.to_owned(),
        });
    }
    let Some(mut first) = addresses.first().copied() else {
        return Err(BindError::NoAddress {
            host: host.to_owned(),
        });
    };
    let last_port = match if_busy {
        IfBusy::NextFree if port != 0 => port.saturating_add(FALLBACK_PORTS),
        IfBusy::NextFree | IfBusy::Fail => port,
    };
    for port in port..=last_port {
        match listen(&addresses, port, options).await {
            Ok(listener) => return Ok(listener),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            Err(source) => {
                first.set_port(port);
                return Err(BindError::Listen {
                    address: first,
                    source,
                });
            }
        }
    }
    let host = host.to_owned();
    Err(if last_port == port {
        BindError::Busy { host, port }
    } else {
        BindError::AllBusy {
            host,
            first: port,
            last: last_port,
        }
    })
}

async fn listen(addresses: &[SocketAddr], port: u16, options: &Options) -> io::Result<Listener> {
    let mut tries = FREE_PORT_TRIES;
    let tcp = loop {
        match listen_on_all(addresses, port).await {
            // Free for one address and taken for the other.
            Err(error) if port == 0 && tries > 0 && error.kind() == io::ErrorKind::AddrInUse => {
                tries -= 1;
            }
            result => break result?,
        }
    };
    let (held, holding) = watch::channel(());
    let tcp = Accepting {
        tcp,
        held,
        _holding: holding,
    };
    Ok(Listener {
        address: tcp.local_addr()?,
        tcp,
        has_asked: Arc::new(AtomicBool::new(options.asks_for_key())),
        limits: options.connections,
    })
}

/// One port on all addresses. An address that this machine does not have, because it was set up
/// without IPv6 for example, is left out while there are others.
async fn listen_on_all(addresses: &[SocketAddr], mut port: u16) -> io::Result<Vec<TcpListener>> {
    let mut listening = Vec::new();
    let mut missing = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for mut address in addresses.iter().copied() {
        address.set_port(port);
        match TcpListener::bind(address).await {
            Ok(tcp) => {
                port = tcp.local_addr()?.port();
                listening.push(tcp);
            }
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Err(error),
            Err(error) => missing = error,
        }
    }
    if listening.is_empty() {
        return Err(missing);
    }
    Ok(listening)
}

/// `[::1]` as URLs write it is `::1` for a resolver.
fn unbracketed(host: &str) -> &str {
    host.strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host)
}

/// Answers until `shutdown` resolves. Then no connection is taken any more; answers under way have
/// `grace` to finish, after which streams end with an error frame and others with 503.
pub async fn serve(
    listener: Listener,
    router: Router,
    shutdown: impl Future<Output = ()> + Send + 'static,
    grace: Duration,
) -> io::Result<()> {
    let (close, closing) = Closing::pair();
    let door = Door::Port {
        has_asked: listener.has_asked,
    };
    // Built once, so that connections share it.
    let router = router
        .layer(Extension(closing))
        .layer(Extension(door))
        .with_state(());
    let (stop, stopping) = watch::channel(false);
    let mut connections = JoinSet::new();
    let accepting = accept_all(
        listener.tcp,
        router,
        listener.limits,
        &stopping,
        &mut connections,
    );
    tokio::select! {
        () = accepting => {}
        () = shutdown => {}
    }
    stop.send_replace(true);
    if timeout(grace, join(&mut connections)).await.is_err() {
        close.send_replace(true);
        // What does not end in time ends with the set.
        let _ = timeout(LAST_WORDS, join(&mut connections)).await;
    }
    Ok(())
}

/// Resolves when the last connection has ended.
async fn join(connections: &mut JoinSet<()>) {
    while connections.join_next().await.is_some() {}
}

/// Takes connections for ever.
async fn accept_all(
    mut tcp: Accepting,
    router: Router,
    limits: ConnectionLimits,
    stopping: &watch::Receiver<bool>,
    connections: &mut JoinSet<()>,
) {
    let places = Arc::new(Semaphore::new(limits.count));
    let farewells = Arc::new(Semaphore::new(FAREWELLS));
    loop {
        let stream = tokio::select! {
            stream = tcp.accept() => stream,
            Some(_) = connections.join_next() => continue,
        };
        send_at_once(&stream);
        if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
            let (router, stopping) = (router.clone(), stopping.clone());
            connections.spawn(serve_connection(stream, router, limits, stopping, place));
        } else if let Ok(place) = Arc::clone(&farewells).try_acquire_owned() {
            connections.spawn(turn_away(stream, limits, place));
        }
    }
}

/// A token is a small packet that must not wait for the next one.
fn send_at_once(stream: &TcpStream) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
}
