//! What is wrong with a configuration, said so that it can be mended at three in the morning.
//!
//! Nothing here stops at the first mistake: whoever reads reports into [`Diagnostics`] and goes on
//! with a stand-in. Values that came from the environment or a secret file never enter a message;
//! the reader sees to that, and what is rendered is the source line, which holds their name only.

use std::collections::{HashMap, HashSet};

use super::source::{Sources, Span};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    /// The configuration cannot be used.
    Error,
    /// It can be used, and somebody may regret it.
    Warning,
    /// It can be used, and there is something to know about it.
    Note,
}

/// A kind of mistake, with a number and a name that stay.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Code {
    /// `E011`; those of warnings begin with `W`.
    pub(crate) number: &'static str,
    /// `unknown-option`.
    pub(crate) name: &'static str,
    /// Error or warning.
    pub(crate) severity: Severity,
    /// What it means, for the reference.
    pub(crate) doc: &'static str,
}

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $constant:ident = $severity:ident $number:literal $name:literal;)*) => {
        $($(#[doc = $doc])+ pub(crate) static $constant: Code = Code {
            number: $number,
            name: $name,
            severity: Severity::$severity,
            doc: concat!($($doc,)+),
        };)*

        /// All kinds of mistakes, in the order of their numbers.
        pub(crate) static ALL: &[&Code] = &[$(&$constant,)*];
    };
}

/// Every kind of mistake there is.
pub(crate) mod code {
    use super::{Code, Severity};

    codes! {
        /// The file is not TOML.
        SYNTAX = Error "E001" "syntax";
        /// A file cannot be read, is not UTF-8, or is too large.
        UNREADABLE_FILE = Error "E002" "unreadable-file";
        /// A file includes itself, directly or through others.
        INCLUDE_CYCLE = Error "E003" "include-cycle";
        /// Files include each other too deeply, or there are too many.
        INCLUDE_LIMIT = Error "E004" "include-limit";
        /// An include names a file that does not exist, or is not a valid pattern.
        INCLUDE_MISSING = Error "E005" "include-missing";
        /// The same option or section is set in two files.
        SET_TWICE = Error "E006" "set-twice";
        /// A section has no such option, or there is no such section.
        UNKNOWN_OPTION = Error "E011" "unknown-option";
        /// A value is of another type than the option's.
        WRONG_TYPE = Error "E012" "wrong-type";
        /// A section is written in the wrong shape, such as `[site]` for `[[site]]`.
        WRONG_SHAPE = Error "E013" "wrong-shape";
        /// A value is smaller or larger than the option allows.
        OUT_OF_RANGE = Error "E014" "out-of-range";
        /// An option that has no default is not there.
        MISSING_OPTION = Error "E015" "missing-option";
        /// A value is none of those the option knows.
        UNKNOWN_CHOICE = Error "E016" "unknown-choice";
        /// A text is not a duration, size, share or whatever the option wants.
        INVALID_VALUE = Error "E017" "invalid-value";
        /// Two options say the same thing, or exclude each other.
        CONTRADICTION = Error "E018" "contradiction";
        /// An environment variable is not set, or is not UTF-8.
        ENVIRONMENT = Error "E020" "environment";
        /// A secret's file cannot be read, or is empty.
        SECRET_FILE = Error "E021" "secret-file";
        /// A route names a group that does not exist.
        UNKNOWN_GROUP = Error "E030" "unknown-group";
        /// A site names a log that does not exist.
        UNKNOWN_LOG = Error "E031" "unknown-log";
        /// Two things of one kind have the same name.
        DUPLICATE_NAME = Error "E032" "duplicate-name";
        /// A text is not an address and a port.
        INVALID_ADDRESS = Error "E040" "invalid-address";
        /// A text is not a network or an address.
        INVALID_NETWORK = Error "E041" "invalid-network";
        /// Two listeners want the same address.
        DUPLICATE_LISTENER = Error "E042" "duplicate-listener";
        /// A text is not a host name, or its wildcard stands in the wrong place.
        INVALID_HOST = Error "E050" "invalid-host";
        /// Two sites want the same host.
        DUPLICATE_HOST = Error "E051" "duplicate-host";
        /// The canonical host is not a host of its site.
        CANONICAL_HOST = Error "E053" "canonical-host";
        /// A route, or a site without routes, does not say what to do.
        NO_ACTION = Error "E060" "no-action";
        /// A route says more than one thing to do.
        SEVERAL_ACTIONS = Error "E061" "several-actions";
        /// Two routes of a site want the same requests.
        ROUTE_CONFLICT = Error "E062" "route-conflict";
        /// No request can reach the route.
        UNREACHABLE_ROUTE = Error "E063" "unreachable-route";
        /// A text is not a path.
        INVALID_PATH = Error "E064" "invalid-path";
        /// A text is not a method, or one that is never passed on.
        INVALID_METHOD = Error "E065" "invalid-method";
        /// `strip_prefix` is not a prefix of the route's path.
        STRIP_PREFIX = Error "E066" "strip-prefix";
        /// A status is none that an answer or a redirect can have.
        INVALID_STATUS = Error "E067" "invalid-status";
        /// A redirect leads to itself.
        REDIRECT_LOOP = Error "E068" "redirect-loop";
        /// A text holds a placeholder that does not exist.
        UNKNOWN_PLACEHOLDER = Error "E069" "unknown-placeholder";
        /// A text is not a field name (RFC 9110, section 5.1).
        INVALID_HEADER_NAME = Error "E070" "invalid-header-name";
        /// A text is not a field value (RFC 9110, section 5.5).
        INVALID_HEADER_VALUE = Error "E071" "invalid-header-value";
        /// A field belongs to the gate: changing it would break framing or forge an address.
        PROTECTED_HEADER = Error "E072" "protected-header";
        /// A group has no server.
        NO_SERVERS = Error "E080" "no-servers";
        /// All servers of a group are backups.
        ONLY_BACKUPS = Error "E081" "only-backups";
        /// `balance = "hash"` does not say what to hash.
        HASH_WITHOUT_KEY = Error "E082" "hash-without-key";
        /// An upstream is not an address or URL that can be used.
        INVALID_UPSTREAM = Error "E084" "invalid-upstream";
        /// A server of a group is a listener of this gate.
        UPSTREAM_LOOP = Error "E086" "upstream-loop";
        /// A certificate, key or CA file cannot be read.
        CERTIFICATE_FILE = Error "E090" "certificate-file";
        /// A certificate, key or CA file does not hold what it should.
        CERTIFICATE_CONTENT = Error "E091" "certificate-content";
        /// The private key is not that of the certificate.
        KEY_MISMATCH = Error "E092" "key-mismatch";
        /// Client certificates are wanted, and no CA to verify them is given.
        CLIENT_CA_MISSING = Error "E093" "client-ca-missing";
        /// The admin listener is reachable from elsewhere and has no token.
        ADMIN_EXPOSED = Error "E100" "admin-exposed";
        /// A log template does not parse.
        LOG_FORMAT = Error "E110" "log-format";
        /// A log hashes addresses and has no key, or one that is too short.
        LOG_HASH_KEY = Error "E111" "log-hash-key";
        /// A rule of the WAF, or something else in its rule files, is not right.
        WAF_RULES = Error "E120" "waf-rules";
        /// A folder does not hold the Core Rule Set.
        WAF_CRS = Error "E121" "waf-crs";
        /// A text does not say which rules of the WAF are left out.
        WAF_EXCLUSION = Error "E122" "waf-exclusion";

        /// A limit is turned off.
        NO_LIMIT = Warning "W201" "no-limit";
        /// A timeout is turned off.
        NO_TIMEOUT = Warning "W202" "no-timeout";
        /// The certificate of the servers is not verified.
        NOT_VERIFIED = Warning "W203" "not-verified";
        /// Everybody is trusted to say who the client is.
        TRUSTS_EVERYBODY = Warning "W204" "trusts-everybody";
        /// A site speaks of https, and no listener has TLS.
        NO_TLS = Warning "W205" "no-tls";
        /// There is nothing to serve.
        NO_SITES = Warning "W206" "no-sites";
        /// A certificate has expired, or is not valid yet.
        CERTIFICATE_TIME = Warning "W207" "certificate-time";
        /// No certificate is made out to a host of a site.
        UNCOVERED_HOST = Warning "W208" "uncovered-host";
        /// A group, log or site is never used.
        UNUSED = Warning "W209" "unused";
        /// An option has no effect here.
        NO_EFFECT = Warning "W210" "no-effect";
        /// A secret stands in a file that everybody on this machine may read.
        READABLE_SECRET = Warning "W211" "readable-secret";
        /// An include pattern matches no file.
        EMPTY_INCLUDE = Warning "W212" "empty-include";
        /// A server is listed twice in a group.
        DUPLICATE_SERVER = Warning "W213" "duplicate-server";
        /// A timeout ends before another one that stands within it can.
        TIMEOUT_ORDER = Warning "W214" "timeout-order";
        /// The admin listener is reachable from elsewhere, with a token and without TLS.
        ADMIN_REACHABLE = Warning "W215" "admin-reachable";
        /// Whoever can connect can pretend to be any client.
        OPEN_PROXY_PROTOCOL = Warning "W216" "open-proxy-protocol";
        /// A listener speaks only HTTP/2, and no TLS.
        PLAIN_HTTP2 = Warning "W217" "plain-http2";
        /// The directory of a log is not there.
        LOG_DIRECTORY = Warning "W218" "log-directory";

        /// Something in the rule files of the WAF is worth knowing.
        WAF_NOTE = Note "N301" "waf-note";
    }
}

/// One mistake.
#[derive(Debug)]
pub(crate) struct Diagnostic {
    /// Its kind.
    pub(crate) code: &'static Code,
    /// What is wrong and what was expected, in one sentence without a full stop.
    pub(crate) message: String,
    /// Where; `None` when it is about something that is nowhere, such as a file that is not there.
    pub(crate) place: Option<Span>,
    /// What stands beside the underlined place.
    pub(crate) label: String,
    /// Other places that belong to it.
    pub(crate) others: Vec<(Span, String)>,
    /// How to mend it.
    pub(crate) hint: Option<String>,
}

impl Diagnostic {
    /// A mistake at a place.
    pub(crate) fn new(code: &'static Code, place: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic { place: Some(place), ..Diagnostic::nowhere(code, message) }
    }

    /// A mistake without a place in a file.
    pub(crate) fn nowhere(code: &'static Code, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            code,
            message: message.into(),
            place: None,
            label: String::new(),
            others: Vec::new(),
            hint: None,
        }
    }

    /// Says something beside the underlined place.
    pub(crate) fn label(mut self, label: impl Into<String>) -> Diagnostic {
        self.label = label.into();
        self
    }

    /// Shows another place.
    pub(crate) fn beside(mut self, place: Span, label: impl Into<String>) -> Diagnostic {
        self.others.push((place, label.into()));
        self
    }

    /// Says how to mend it.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Diagnostic {
        self.hint = Some(hint.into());
        self
    }

    /// Says how to mend it, if that is known.
    pub(crate) fn hint_if(mut self, hint: Option<String>) -> Diagnostic {
        self.hint = hint.or(self.hint);
        self
    }
}

/// All mistakes of one configuration, with the texts they point into.
#[derive(Debug, Default)]
pub(crate) struct Diagnostics {
    /// The texts.
    pub(crate) sources: Sources,
    /// The mistakes, sorted by place once [`Diagnostics::sort`] has run.
    pub(crate) list: Vec<Diagnostic>,
    /// Secrets that stand in the texts; they are not shown.
    pub(crate) secrets: Vec<Span>,
}

impl Diagnostics {
    /// How many there are of one severity.
    pub(crate) fn count(&self, severity: Severity) -> usize {
        self.list.iter().filter(|diagnostic| diagnostic.code.severity == severity).count()
    }

    /// Forgets what was found behind the first syntax error of a file, or another on its line: the
    /// parser may have taken it for something else. Wants them sorted.
    pub(crate) fn drop_what_follows_from_syntax(&mut self) {
        let mut first: HashMap<u32, u32> = HashMap::new();
        let mut lines: HashSet<(u32, usize)> = HashSet::new();
        let sources = &self.sources;
        for found in self.list.iter().filter(|found| *found.code == code::SYNTAX) {
            if let Some(place) = found.place {
                let start = first.entry(place.file).or_insert(place.start);
                *start = place.start.min(*start);
            }
        }
        self.list.retain(|found| match found.place {
            Some(place) if *found.code == code::SYNTAX => {
                lines.insert((place.file, sources.of(place).position(place.start).line))
            }
            Some(place) => first.get(&place.file).is_none_or(|start| place.start < *start),
            None => true,
        });
    }

    /// Errors first, then by file and place: whoever reads from the top meets what stops the gate. A
    /// value that many sections inherit is read many times, and its mistake is told once.
    pub(crate) fn sort(&mut self) {
        self.list.sort_by(|a, b| {
            let key = |d: &Diagnostic| (d.code.severity, d.place, d.code.number);
            key(a).cmp(&key(b)).then_with(|| a.message.cmp(&b.message))
        });
        self.list.dedup_by(|a, b| {
            a.place.is_some() && a.code == b.code && a.place == b.place && a.message == b.message
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_ordered_unique_and_true_to_their_severity() {
        for pair in code::ALL.windows(2) {
            let key = |code: &Code| (code.severity, code.number);
            assert!(key(pair[0]) < key(pair[1]), "{} {}", pair[0].number, pair[1].number);
        }
        let mut names: Vec<_> = code::ALL.iter().map(|code| code.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), code::ALL.len());
        for code in code::ALL {
            let letter = match code.severity {
                Severity::Error => 'E',
                Severity::Warning => 'W',
                Severity::Note => 'N',
            };
            assert!(code.number.starts_with(letter), "{}", code.number);
            assert!(code.doc.ends_with('.'), "{}", code.number);
        }
    }
}
