//! From the tree to the typed settings of the proxy.
//!
//! Each file here reads the sections it is named after and checks what can be checked within them;
//! [`cross`] checks what only shows when all of them are there. A mistake never ends the resolving: a
//! stand-in takes its place, and the settings are only handed out if there was no error.

mod cache;
mod context;
mod cross;
pub(crate) mod group;
mod listen;
pub(crate) mod log;
mod process;
mod route;
pub(crate) mod site;
mod tls;
mod waf;

use std::collections::HashMap;
use std::sync::Arc;

use tidegate_proxy::settings::{Address, Admin, Settings};
use tidegate_proxy::tls::TicketKeys;

use super::environment::Environment;
use super::node::{Node, Table, Value};
use super::options;
use super::reader::{Owner, Reading, Scope};
use super::source::Span;

/// What resolving needs besides the files.
#[derive(Clone, Copy)]
pub(crate) struct Outside<'a> {
    /// Where `${NAME}` looks.
    pub(crate) environment: &'a dyn Environment,
    /// The process's TLS ticket keys, which outlive a reload.
    pub(crate) tickets: &'a Arc<TicketKeys>,
}

/// What a tree resolves to.
pub(super) struct Resolved {
    /// What a plan is built from.
    pub(super) settings: Settings,
    /// What rules remember between requests.
    pub(super) context: crate::context::Settings,
    /// Whom rules ask beyond their request.
    pub(super) beyond: crate::outside::Settings,
}

/// Resolves a tree whose names have been checked.
pub(super) fn settings(table: Table, outside: &Outside<'_>, reading: &mut Reading<'_>) -> Resolved {
    let node = Node { span: Span::new(0, &(0..0)), value: Value::Table(table) };
    let root = Scope::new(&options::root::SECTION, Owner::Process, Some(&node), None);
    let defaults = root.child(&options::defaults::SECTION);

    let process = process::process(&root.child(&options::process::SECTION), reading);
    let admin = process::admin(&root.child(&options::admin::SECTION), reading);
    let trusted_proxies = process::trust(&root.child(&options::trust::SECTION), reading);
    let mut logs = log::Logs::resolve(&root, reading);
    let listeners = listen::resolve(&root, &defaults, outside, reading);
    let mut groups = group::Groups::resolve(&root, &defaults, reading);
    let mut firewall = waf::Firewall::new(root.child(&options::waf::SECTION), reading);
    let waf = firewall.settings(&process, reading);
    let cache = root.child(&options::cache::SECTION);
    let mut shared = site::Shared {
        cache,
        groups: &mut groups,
        firewall: &mut firewall,
        logs: &mut logs,
        https_port: https_port(&listeners),
        hosts: HashMap::new(),
        names: HashMap::new(),
    };
    let sites = site::resolve(&root, &defaults, &mut shared, reading);

    let context = root.child(&options::context::SECTION);
    let context = context::context(&context, firewall.collection_timeout_s(), reading);

    let beyond = firewall.outside(reading);

    let everything = cross::Everything {
        listeners: &listeners,
        groups: groups.list(),
        sites: &sites,
        logs: &logs,
    };
    cross::check(&everything, reading);
    let settings = Settings {
        process,
        listeners: listeners.into_iter().map(|found| found.listener).collect(),
        sites: sites.into_iter().map(|found| found.site).collect(),
        groups: groups.into_settings(),
        trusted_proxies,
        logs: logs.into_settings(),
        admin,
        waf,
        cache: cache::settings(&cache, reading),
    };
    Resolved { settings, context, beyond }
}

/// Resolves the admin listener of a tree, and nothing else.
pub(super) fn admin(table: Table, reading: &mut Reading<'_>) -> Admin {
    let node = Node { span: Span::new(0, &(0..0)), value: Value::Table(table) };
    let root = Scope::new(&options::root::SECTION, Owner::Process, Some(&node), None);
    process::admin(&root.child(&options::admin::SECTION), reading)
}

/// Where `https_redirect = true` leads: to the port of the first TLS listener.
fn https_port(listeners: &[listen::Found]) -> u16 {
    let mut tls = listeners.iter().filter(|found| found.security == listen::Security::Tls);
    let port = tls.find_map(|found| match &found.listener.address {
        Address::Tcp(address) => Some(address.port()),
        Address::Unix(_) => None,
    });
    port.unwrap_or(443)
}
