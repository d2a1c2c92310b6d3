//! The table of variables: names, shapes, and the phase from which each is known.
//!
//! The table is the only place that lists variables: the enum, the look-up by name, the checks of
//! the language and its reference come from it. What a variable's value is, the inspection decides.

mod foreign;
mod phase;

pub use foreign::{Foreign, foreign};
pub use phase::Phase;

/// Whether a variable holds one value or many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One value without a name; it takes no selector.
    Scalar,
    /// Named values of this transaction; a selector picks some.
    Collection,
    /// Named values kept between transactions, opened by `initcol`, `setsid`, `setuid` or `setrsc`.
    Kept,
}

impl Shape {
    /// The word of the reference.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Collection => "collection",
            Self::Kept => "kept collection",
        }
    }
}

/// What the table says about a variable.
#[derive(Debug)]
pub struct Description {
    /// The canonical name, in capitals.
    pub name: &'static str,
    /// Other spellings that mean the same.
    pub aliases: &'static [&'static str],
    /// One value or many.
    pub shape: Shape,
    /// The first phase in which the value can be there.
    pub known_from: Phase,
    /// A sentence for the reference.
    pub doc: &'static str,
}

macro_rules! variables {
    ($($variant:ident $name:literal $(| $alias:literal)* $shape:ident $phase:ident $doc:literal;)*) => {
        /// A variable of the language. As a number (`index`) it is dense from 0, in the table's order.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Variable {
            $(#[doc = concat!("`", $name, "`. ", $doc)] $variant,)*
        }

        impl Variable {
            /// Every variable, in the table's order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];
        }

        static TABLE: [Description; Variable::COUNT] = [
            $(Description {
                name: $name,
                aliases: &[$($alias,)*],
                shape: Shape::$shape,
                known_from: Phase::$phase,
                doc: $doc,
            },)*
        ];
    };
}

variables! {
    Args "ARGS" Collection RequestHeaders "All arguments: the query string's, and from phase 2 on the body's too.";
    ArgsCombinedSize "ARGS_COMBINED_SIZE" Scalar RequestHeaders "The length of all argument names and values together, without files.";
    ArgsGet "ARGS_GET" Collection RequestHeaders "The query string's arguments.";
    ArgsGetNames "ARGS_GET_NAMES" Collection RequestHeaders "The names of the query string's arguments.";
    ArgsNames "ARGS_NAMES" Collection RequestHeaders "The names of all arguments.";
    ArgsPost "ARGS_POST" Collection RequestBody "The body's arguments.";
    ArgsPostNames "ARGS_POST_NAMES" Collection RequestBody "The names of the body's arguments.";
    AuthType "AUTH_TYPE" Scalar RequestHeaders "The scheme of the request's `Authorization` field.";
    Duration "DURATION" Scalar RequestHeaders "Microseconds since the transaction began.";
    Env "ENV" Collection RequestHeaders "Values set with `setenv` in this transaction; the process environment is not shown.";
    Files "FILES" Collection RequestBody "The clients' names of uploaded files, by form field.";
    FilesCombinedSize "FILES_COMBINED_SIZE" Scalar RequestBody "The size of all uploaded files together.";
    FilesNames "FILES_NAMES" Collection RequestBody "The form fields that carried files.";
    FilesSizes "FILES_SIZES" Collection RequestBody "The size of each uploaded file, by form field.";
    FilesTmpContent "FILES_TMP_CONTENT" Collection RequestBody "The content of each uploaded file, by form field, up to the limit of inspection.";
    FilesTmpNames "FILES_TMPNAMES" Collection RequestBody "The spooled files' paths, by form field.";
    FullRequest "FULL_REQUEST" Scalar RequestHeaders "Request line, fields and body as they came.";
    FullRequestLength "FULL_REQUEST_LENGTH" Scalar RequestHeaders "The length of `FULL_REQUEST`.";
    Geo "GEO" Collection RequestHeaders "What the last `@geoLookup` found.";
    Global "GLOBAL" Kept RequestHeaders "The collection shared by all transactions.";
    HighestSeverity "HIGHEST_SEVERITY" Scalar RequestHeaders "The severest severity of the rules that matched so far; 255 if none.";
    InboundDataError "INBOUND_DATA_ERROR" Scalar RequestHeaders "1 if the request's body exceeds its limit.";
    Ip "IP" Kept RequestHeaders "The collection of this client's address.";
    Json "JSON" Collection RequestBody "The members of a JSON body, as `ARGS_POST` has them.";
    MatchedVar "MATCHED_VAR" Scalar RequestHeaders "The value that matched last.";
    MatchedVarName "MATCHED_VAR_NAME" Scalar RequestHeaders "The full name of the value that matched last.";
    MatchedVars "MATCHED_VARS" Collection RequestHeaders "All values that matched in the last rule.";
    MatchedVarsNames "MATCHED_VARS_NAMES" Collection RequestHeaders "The full names of all values that matched in the last rule.";
    ModsecBuild "MODSEC_BUILD" Scalar RequestHeaders "The ModSecurity version whose language this is, as nine digits.";
    MscPcreError "MSC_PCRE_ERROR" Scalar RequestHeaders "1 if a pattern failed in this transaction.";
    MscPcreLimitsExceeded "MSC_PCRE_LIMITS_EXCEEDED" Scalar RequestHeaders "1 if a pattern reached its step limit in this transaction.";
    MultipartBoundaryQuoted "MULTIPART_BOUNDARY_QUOTED" Scalar RequestBody "1 if the boundary was quoted.";
    MultipartBoundaryWhitespace "MULTIPART_BOUNDARY_WHITESPACE" Scalar RequestBody "1 if white space stood in the boundary.";
    MultipartCrlfLfLines "MULTIPART_CRLF_LF_LINES" Scalar RequestBody "1 if line ends were mixed.";
    MultipartDataAfter "MULTIPART_DATA_AFTER" Scalar RequestBody "1 if data followed the last boundary.";
    MultipartDataBefore "MULTIPART_DATA_BEFORE" Scalar RequestBody "1 if data preceded the first boundary.";
    MultipartFileLimitExceeded "MULTIPART_FILE_LIMIT_EXCEEDED" Scalar RequestBody "1 if there were more files than allowed.";
    MultipartFilename "MULTIPART_FILENAME" Collection RequestBody "The `filename` parameter of each part, by form field.";
    MultipartHeaderFolding "MULTIPART_HEADER_FOLDING" Scalar RequestBody "1 if a part's field was folded over lines.";
    MultipartInvalidHeaderFolding "MULTIPART_INVALID_HEADER_FOLDING" Scalar RequestBody "1 if a part's field was folded wrongly.";
    MultipartInvalidPart "MULTIPART_INVALID_PART" Scalar RequestBody "1 if a part was malformed.";
    MultipartInvalidQuoting "MULTIPART_INVALID_QUOTING" Scalar RequestBody "1 if a parameter was quoted wrongly.";
    MultipartLfLine "MULTIPART_LF_LINE" Scalar RequestBody "1 if a line ended in a bare LF.";
    MultipartMissingSemicolon "MULTIPART_MISSING_SEMICOLON" | "MULTIPART_SEMICOLON_MISSING" Scalar RequestBody "1 if a semicolon was missing between parameters.";
    MultipartName "MULTIPART_NAME" Collection RequestBody "The `name` parameter of each part.";
    MultipartPartHeaders "MULTIPART_PART_HEADERS" Collection RequestBody "The fields of each part, whole lines, by form field.";
    MultipartStrictError "MULTIPART_STRICT_ERROR" Scalar RequestBody "1 if any of the strict checks of a multipart body failed.";
    MultipartUnmatchedBoundary "MULTIPART_UNMATCHED_BOUNDARY" Scalar RequestBody "1 if a line looked like a boundary that was not one, 2 if a truncated body may be the reason.";
    OutboundDataError "OUTBOUND_DATA_ERROR" Scalar ResponseHeaders "1 if the response's body exceeds its limit.";
    PathInfo "PATH_INFO" Scalar RequestHeaders "Always empty: a gate knows no scripts.";
    QueryString "QUERY_STRING" Scalar RequestHeaders "The query string as it came.";
    RemoteAddr "REMOTE_ADDR" Scalar RequestHeaders "The client's address.";
    RemoteHost "REMOTE_HOST" Scalar RequestHeaders "The client's address: names are not looked up.";
    RemotePort "REMOTE_PORT" Scalar RequestHeaders "The client's port.";
    RemoteUser "REMOTE_USER" Scalar RequestHeaders "The user of the request's Basic credentials.";
    ReqbodyError "REQBODY_ERROR" Scalar RequestBody "1 if the request's body could not be read as what it claims to be.";
    ReqbodyErrorMsg "REQBODY_ERROR_MSG" Scalar RequestBody "What was wrong with the request's body.";
    ReqbodyProcessor "REQBODY_PROCESSOR" Scalar RequestHeaders "How the request's body is read: `URLENCODED`, `MULTIPART`, `JSON`, `XML` or empty.";
    ReqbodyProcessorError "REQBODY_PROCESSOR_ERROR" Scalar RequestBody "Same as `REQBODY_ERROR`.";
    ReqbodyProcessorErrorMsg "REQBODY_PROCESSOR_ERROR_MSG" Scalar RequestBody "Same as `REQBODY_ERROR_MSG`, without the processor's name.";
    RequestBasename "REQUEST_BASENAME" Scalar RequestHeaders "The path's last segment.";
    RequestBody "REQUEST_BODY" Scalar RequestBody "The request's body as it came, for form bodies or where `forceRequestBodyVariable` is on.";
    RequestBodyLength "REQUEST_BODY_LENGTH" Scalar RequestBody "The length of the request's body.";
    RequestCookies "REQUEST_COOKIES" Collection RequestHeaders "The request's cookies.";
    RequestCookiesNames "REQUEST_COOKIES_NAMES" Collection RequestHeaders "The names of the request's cookies.";
    RequestFilename "REQUEST_FILENAME" Scalar RequestHeaders "The path without the query string.";
    RequestHeaders "REQUEST_HEADERS" Collection RequestHeaders "The request's fields.";
    RequestHeadersNames "REQUEST_HEADERS_NAMES" Collection RequestHeaders "The names of the request's fields.";
    RequestLine "REQUEST_LINE" Scalar RequestHeaders "The request line: method, target, protocol.";
    RequestMethod "REQUEST_METHOD" Scalar RequestHeaders "The method.";
    RequestProtocol "REQUEST_PROTOCOL" Scalar RequestHeaders "The protocol with its version.";
    RequestUri "REQUEST_URI" Scalar RequestHeaders "Path and query string, without scheme and host.";
    RequestUriRaw "REQUEST_URI_RAW" Scalar RequestHeaders "The request's target as it came.";
    ResBodyError "RES_BODY_ERROR" Scalar ResponseBody "1 if the response's body could not be read.";
    ResBodyErrorMsg "RES_BODY_ERROR_MSG" Scalar ResponseBody "What was wrong with the response's body.";
    ResBodyProcessor "RES_BODY_PROCESSOR" Scalar ResponseHeaders "How the response's body is read; empty for plain text.";
    ResBodyProcessorError "RES_BODY_PROCESSOR_ERROR" Scalar ResponseBody "Same as `RES_BODY_ERROR`.";
    ResBodyProcessorErrorMsg "RES_BODY_PROCESSOR_ERROR_MSG" Scalar ResponseBody "Same as `RES_BODY_ERROR_MSG`, without the processor's name.";
    Resource "RESOURCE" Kept RequestHeaders "The collection opened by `setrsc`.";
    ResponseBody "RESPONSE_BODY" Scalar ResponseBody "The response's body, decompressed, up to its limit.";
    ResponseContentLength "RESPONSE_CONTENT_LENGTH" Scalar ResponseHeaders "The length of the response's body.";
    ResponseContentType "RESPONSE_CONTENT_TYPE" Scalar ResponseHeaders "The response's media type without parameters.";
    ResponseHeaders "RESPONSE_HEADERS" Collection ResponseHeaders "The response's fields.";
    ResponseHeadersNames "RESPONSE_HEADERS_NAMES" Collection ResponseHeaders "The names of the response's fields.";
    ResponseProtocol "RESPONSE_PROTOCOL" Scalar ResponseHeaders "The response's protocol with its version.";
    ResponseStatus "RESPONSE_STATUS" | "STATUS" Scalar ResponseHeaders "The response's status code.";
    Rule "RULE" Collection RequestHeaders "The matching rule's own `id`, `rev`, `severity`, `logdata` and `msg`.";
    ServerAddr "SERVER_ADDR" Scalar RequestHeaders "The gate's address on this connection.";
    ServerName "SERVER_NAME" Scalar RequestHeaders "The host that the request asks for.";
    ServerPort "SERVER_PORT" Scalar RequestHeaders "The gate's port on this connection.";
    Session "SESSION" Kept RequestHeaders "The collection opened by `setsid`.";
    SessionId "SESSIONID" Scalar RequestHeaders "The value given to `setsid`.";
    StatusLine "STATUS_LINE" Scalar ResponseHeaders "The response's status line.";
    Time "TIME" Scalar RequestHeaders "The time of day, `hour:minute:second`.";
    TimeDay "TIME_DAY" Scalar RequestHeaders "The day of the month, 1 to 31.";
    TimeEpoch "TIME_EPOCH" Scalar RequestHeaders "Seconds since 1970.";
    TimeHour "TIME_HOUR" Scalar RequestHeaders "The hour, 0 to 23.";
    TimeMin "TIME_MIN" Scalar RequestHeaders "The minute, 0 to 59.";
    TimeMon "TIME_MON" Scalar RequestHeaders "The month, 0 to 11.";
    TimeSec "TIME_SEC" Scalar RequestHeaders "The second, 0 to 59.";
    TimeWday "TIME_WDAY" Scalar RequestHeaders "The day of the week, 0 (Sunday) to 6.";
    TimeYear "TIME_YEAR" Scalar RequestHeaders "The year.";
    Tx "TX" Collection RequestHeaders "This transaction's own values: those set with `setvar`, and the captures `0` to `9`.";
    UniqueId "UNIQUE_ID" Scalar RequestHeaders "The transaction's identifier.";
    UrlencodedError "URLENCODED_ERROR" Scalar RequestHeaders "1 if the query string or a form body was badly encoded.";
    User "USER" Kept RequestHeaders "The collection opened by `setuid`.";
    UserId "USERID" Scalar RequestHeaders "The value given to `setuid`.";
    WebAppId "WEBAPPID" Scalar RequestHeaders "The value of `SecWebAppId`.";
    Xml "XML" | "REQUEST_XML" Collection RequestBody "What an XPath selects in an XML body.";
}

impl Variable {
    /// How many variables there are: every index is below it.
    pub const COUNT: usize = Self::ALL.len();

    /// The variable of this name or alias, in any case.
    pub fn named(name: &[u8]) -> Option<Self> {
        let is = |other: &str| other.as_bytes().eq_ignore_ascii_case(name);
        Self::ALL.iter().copied().find(|variable| {
            let Description { name, aliases, .. } = variable.description();
            is(name) || aliases.iter().any(|alias| is(alias))
        })
    }

    /// What the table says.
    pub fn description(self) -> &'static Description {
        &TABLE[self.index()]
    }

    /// The canonical name, in capitals.
    pub fn name(self) -> &'static str {
        self.description().name
    }

    /// One value or many.
    pub fn shape(self) -> Shape {
        self.description().shape
    }

    /// The first phase in which the value can be there.
    pub fn known_from(self) -> Phase {
        self.description().known_from
    }

    /// The place in the table, for arrays with one entry per variable.
    pub const fn index(self) -> usize {
        self as usize
    }
}
