//! The hosts and origins that are let in beside this machine's own programs and pages.

use std::sync::Arc;

use macmlx_server::Visitors;
use macmlx_settings::{HostPattern, LiveSettings, OriginPattern};

/// The lists of the settings and of the command. Changes of the settings count from the next request
/// on.
#[derive(Debug)]
pub(crate) struct LiveVisitors {
    pub(crate) settings: Arc<LiveSettings>,
    pub(crate) hosts: Vec<HostPattern>,
    pub(crate) origins: Vec<OriginPattern>,
}

impl Visitors for LiveVisitors {
    fn allows_host(&self, host: &str) -> bool {
        let settings = self.settings.get();
        let mut patterns = self.hosts.iter().chain(&settings.allowed_hosts);
        patterns.any(|pattern| pattern.matches(host))
    }

    fn allows_origin(&self, origin: &str) -> bool {
        let settings = self.settings.get();
        let mut patterns = self.origins.iter().chain(&settings.allowed_origins);
        patterns.any(|pattern| pattern.matches(origin))
    }
}

/// The name that this machine gives itself, with or without a domain.
pub(crate) fn own_name() -> Option<String> {
    let system = rustix::system::uname();
    let name = system.nodename().to_str().ok()?;
    (!name.is_empty()).then(|| name.to_owned())
}
