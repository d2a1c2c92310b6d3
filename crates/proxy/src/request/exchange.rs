//! What belongs to one request, in one recycled piece of memory.

use std::net::IpAddr;
use std::sync::Arc;

use tidegate_cache::status::Member;
use tidegate_http::target::{PathForm, Scheme};
use tidegate_http::{Request, Response};
use tidegate_telemetry::Record;

use super::Inspecting;
use crate::inspection::held::Held;
use crate::upstream::Server;

/// The request, its response and its record.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) request: Request,
    pub(crate) response: Response,
    pub(crate) record: Record,
    /// The path in normal form, where that differs from the path received.
    pub(crate) normal_path: Vec<u8>,
    pub(crate) path_form: Option<PathForm>,
    /// The client's address: the peer's, or what trusted proxies say.
    pub(crate) client_addr: Option<IpAddr>,
    /// The scheme the client used: the connection's, or what trusted proxies say.
    pub(crate) scheme: Scheme,
    /// The server of the last attempt.
    pub(crate) server: Option<Arc<Server>>,
    /// What the WAF makes of it, if it looks.
    pub(crate) inspecting: Option<Box<Inspecting>>,
    /// What the cache says of it, if it was asked.
    pub(crate) cached: Option<Member>,
    /// What of its body was read before it was sent on.
    pub(crate) held: Option<Held>,
    /// What does not fit elsewhere for the length of one call.
    pub(crate) scratch: Vec<u8>,
}

impl Default for Exchange {
    fn default() -> Self {
        Self {
            request: Request::new(),
            response: Response::new(),
            record: Record::default(),
            normal_path: Vec::new(),
            path_form: None,
            client_addr: None,
            scheme: Scheme::Http,
            server: None,
            inspecting: None,
            cached: None,
            held: None,
            scratch: Vec::new(),
        }
    }
}

impl Exchange {
    /// Forgets the request and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.request.clear();
        self.response.clear();
        self.record = Record::default();
        self.normal_path.clear();
        self.path_form = None;
        self.client_addr = None;
        self.scheme = Scheme::Http;
        self.server = None;
        self.inspecting = None;
        self.cached = None;
        self.held = None;
        self.scratch.clear();
    }

    /// The path in normal form.
    pub(crate) fn path(&self) -> &[u8] {
        match self.path_form {
            Some(PathForm::Rewritten) => &self.normal_path,
            Some(PathForm::Normal) | None => self.request.path(),
        }
    }
}
