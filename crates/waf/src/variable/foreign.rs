//! Variables of other engines that this one does not have, with the reason.

/// A variable that another engine knows.
#[derive(Debug)]
pub struct Foreign {
    /// Its name, in capitals.
    pub name: &'static str,
    /// Why it is not here, and what serves instead: a sentence.
    pub reason: &'static str,
}

const PERFORMANCE: &str = "the gate's metrics tell the time per rule and phase";
const SCRIPT: &str = "a gate runs no scripts and sees no files of the server behind it";
const STREAM: &str = "bodies are inspected as `REQUEST_BODY` and `RESPONSE_BODY`";

/// Every variable that is refused with a reason, in alphabetical order.
static FOREIGN: [Foreign; 30] = [
    Foreign { name: "MODSEC_VERSION", reason: "`MODSEC_BUILD` tells the version of the language" },
    Foreign { name: "PERF_ALL", reason: PERFORMANCE },
    Foreign { name: "PERF_COMBINED", reason: PERFORMANCE },
    Foreign { name: "PERF_GC", reason: PERFORMANCE },
    Foreign { name: "PERF_LOGGING", reason: PERFORMANCE },
    Foreign { name: "PERF_PHASE1", reason: PERFORMANCE },
    Foreign { name: "PERF_PHASE2", reason: PERFORMANCE },
    Foreign { name: "PERF_PHASE3", reason: PERFORMANCE },
    Foreign { name: "PERF_PHASE4", reason: PERFORMANCE },
    Foreign { name: "PERF_PHASE5", reason: PERFORMANCE },
    Foreign { name: "PERF_RULES", reason: PERFORMANCE },
    Foreign { name: "PERF_SREAD", reason: PERFORMANCE },
    Foreign { name: "PERF_SWRITE", reason: PERFORMANCE },
    Foreign {
        name: "RESPONSE_ARGS",
        reason: "responses are inspected as text, in `RESPONSE_BODY`",
    },
    Foreign { name: "RESPONSE_XML", reason: "responses are inspected as text, in `RESPONSE_BODY`" },
    Foreign { name: "SCRIPT_BASENAME", reason: SCRIPT },
    Foreign { name: "SCRIPT_FILENAME", reason: SCRIPT },
    Foreign { name: "SCRIPT_GID", reason: SCRIPT },
    Foreign { name: "SCRIPT_GROUPNAME", reason: SCRIPT },
    Foreign { name: "SCRIPT_MODE", reason: SCRIPT },
    Foreign { name: "SCRIPT_UID", reason: SCRIPT },
    Foreign { name: "SCRIPT_USERNAME", reason: SCRIPT },
    Foreign { name: "SDBM_DELETE_ERROR", reason: "collections are not kept in SDBM files" },
    Foreign { name: "SERVER_SOFTWARE", reason: "the server behind the gate is not known" },
    Foreign { name: "STREAM_INPUT_BODY", reason: STREAM },
    Foreign { name: "STREAM_OUTPUT_BODY", reason: STREAM },
    Foreign { name: "URLENCODED_PARSED", reason: "`REQBODY_PROCESSOR` tells how a body is read" },
    Foreign {
        name: "USERAGENT_IP",
        reason: "`REMOTE_ADDR` is the client's address already, behind trusted proxies too",
    },
    Foreign { name: "WEBSERVER_ERROR_LOG", reason: "there is no web server's error log here" },
    Foreign { name: "XML_EXTERNAL_ENTITY", reason: "external entities are never followed" },
];

/// The refused variables, for the reference.
pub fn foreign() -> &'static [Foreign] {
    &FOREIGN
}

impl Foreign {
    /// The refused variable of this name, in any case.
    pub fn named(name: &[u8]) -> Option<&'static Self> {
        FOREIGN.iter().find(|foreign| foreign.name.as_bytes().eq_ignore_ascii_case(name))
    }
}
