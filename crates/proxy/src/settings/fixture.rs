//! Settings for tests: everything at a usual value, to be changed where a test looks.

use std::time::Duration;

use super::{Action, PathRule, Retry, RetryWhen, Route, RouteTimeouts, Trace, UpstreamHost};

/// A route that passes everything to the first group.
pub(crate) fn route(path: PathRule) -> Route {
    Route {
        name: "test".into(),
        path,
        methods: Vec::new(),
        action: Action::Group(0),
        strip_prefix: None,
        add_prefix: None,
        upstream_host: UpstreamHost::Client,
        request_headers: Vec::new(),
        response_headers: Vec::new(),
        timeouts: RouteTimeouts {
            first_byte: Duration::from_mins(1),
            between_bytes: Duration::from_mins(1),
            whole: None,
            tunnel_idle: Duration::from_mins(10),
        },
        body_bytes_max: None,
        retry: Retry { when: RetryWhen::Unseen, attempts_max: 2 },
        upgrades: vec!["websocket".into()],
        trace: Trace::Refuse,
        inspect: None,
        caching: None,
    }
}
