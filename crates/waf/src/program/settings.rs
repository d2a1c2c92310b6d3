//! The engine's settings, as a rule set's directives leave them.

use crate::body::Options;
use crate::inspection::Mode;
use crate::pattern::{Caches, Match, Pattern, PatternId};
use crate::seclang::setting::{AuditFormat, AuditMode, AuditParts, LimitAction, Switch};

/// What directives other than rules say. Defaults are ModSecurity 3's where it has one.
#[derive(Debug)]
pub struct Settings {
    /// `SecRuleEngine`; a site's or route's own mode goes before it.
    pub mode: Mode,
    /// `SecRequestBodyAccess`.
    pub request_body_access: Switch,
    /// `SecRequestBodyLimit`: bytes of a request body that are accepted for inspection.
    pub request_body_bytes_max: u64,
    /// `SecRequestBodyLimitAction`.
    pub request_body_limit_action: LimitAction,
    /// How bodies are read, and what they may hold.
    pub body: Options,
    /// `SecResponseBodyAccess`.
    pub response_body_access: Switch,
    /// `SecResponseBodyLimit`: bytes of a response body that are inspected.
    pub response_body_bytes_max: u64,
    /// `SecResponseBodyLimitAction`.
    pub response_body_limit_action: LimitAction,
    /// `SecResponseBodyMimeType`: the media types of responses whose bodies are inspected.
    pub response_body_types: Vec<Box<str>>,
    /// `SecCollectionTimeout`: seconds.
    pub collection_timeout_s: u64,
    /// `SecAuditEngine`.
    pub audit_engine: AuditMode,
    /// `SecAuditLogParts`.
    pub audit_parts: AuditParts,
    /// `SecAuditLogRelevantStatus`.
    pub audit_relevant_statuses: Statuses,
    /// `SecAuditLogFormat`.
    pub audit_log_format: AuditFormat,
    /// `SecTmpDir`.
    pub tmp_dir: Option<Box<str>>,
    /// `SecWebAppId`.
    pub web_app_id: Box<str>,
    /// `SecSensorId`.
    pub sensor_id: Box<str>,
    /// `SecHttpBlKey`.
    pub http_bl_key: Option<Box<str>>,
    /// `SecComponentSignature`, in order.
    pub components: Vec<String>,
}

/// A set of status codes: a pattern over them, asked of each beforehand.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Statuses(Vec<u16>);

impl Statuses {
    /// Those among 100 to 599 that a pattern matches.
    pub(crate) fn matching(pattern: &Pattern) -> Self {
        let mut caches = Caches::new();
        let mut is_match = |status: &u16| {
            let text = status.to_string();
            pattern.is_match(&mut caches, PatternId(0), text.as_bytes()) == Match::Yes
        };
        Self((100..600).filter(|status| is_match(status)).collect())
    }

    /// Whether a status code is one of them.
    pub fn contains(&self, status: u16) -> bool {
        self.0.binary_search(&status).is_ok()
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            mode: Mode::Off,
            request_body_access: Switch::Off,
            request_body_bytes_max: 131_072 * 1024,
            request_body_limit_action: LimitAction::Reject,
            body: Options::default(),
            response_body_access: Switch::Off,
            response_body_bytes_max: 512 << 10,
            response_body_limit_action: LimitAction::ProcessPartial,
            response_body_types: ["text/plain", "text/html", "text/xml"].map(Into::into).into(),
            collection_timeout_s: 3600,
            audit_engine: AuditMode::Off,
            audit_parts: AuditParts::lettered(b"ABCFHZ").unwrap_or_default(),
            audit_relevant_statuses: Statuses::default(),
            audit_log_format: AuditFormat::Json,
            tmp_dir: None,
            web_app_id: "default".into(),
            sensor_id: "".into(),
            http_bl_key: None,
            components: Vec::new(),
        }
    }
}
