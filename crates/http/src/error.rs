//! Why a message is refused.
//!
//! Each reason is declared once, with the status the client gets for it, the word metrics count it
//! under and a plain sentence for logs. Statuses of reasons in a response are of no use to the
//! client, who gets 502 whatever the origin did wrong: [`ResponseError`] has none.

use std::fmt;

macro_rules! reasons {
    (
        $(#[$enum_doc:meta])*
        pub enum $name:ident {
            $($(#[$doc:meta])* $variant:ident = $status:literal $code:literal $sentence:literal,)*
        }
        $(and { $($(#[$inner_doc:meta])* $outer:ident($inner:ident),)* })?
    ) => {
        $(#[$enum_doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$doc])* $variant,)*
            $($($(#[$inner_doc])* $outer($inner),)*)?
        }

        impl $name {
            /// The reasons that are this enum's own.
            pub const ALL: &[$name] = &[$($name::$variant),*];

            /// The status that answers a request refused for this reason.
            pub const fn status(self) -> u16 {
                match self {
                    $($name::$variant => $status,)*
                    $($($name::$outer(inner) => inner.status(),)*)?
                }
            }

            /// One word for metrics and logs, unique among all reasons.
            pub const fn code(self) -> &'static str {
                match self {
                    $($name::$variant => $code,)*
                    $($($name::$outer(inner) => inner.code(),)*)?
                }
            }

            /// One plain sentence without a full stop.
            pub const fn sentence(self) -> &'static str {
                match self {
                    $($name::$variant => $sentence,)*
                    $($($name::$outer(inner) => inner.sentence(),)*)?
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(self.sentence())
            }
        }

        impl std::error::Error for $name {}

        $($(impl From<$inner> for $name {
            fn from(reason: $inner) -> Self {
                $name::$outer(reason)
            }
        })*)?
    };
}

reasons! {
    /// What is wrong with the lines of a head or of a trailer section (RFC 9112, sections 2.2 and 5).
    pub enum FieldError {
        /// LF without CR before it.
        BareLf = 400 "bare_lf" "a line ends in LF without CR",
        /// CR without LF behind it.
        BareCr = 400 "bare_cr" "a CR stands alone",
        /// The section does not end in an empty line, or goes on behind it.
        Incomplete = 400 "head_incomplete" "the head does not end in exactly one empty line",
        /// A line begins with white space and continues the one before it (section 5.2).
        Fold = 400 "field_fold" "a field is folded over several lines",
        /// White space before the first field.
        LeadingSpace = 400 "field_leading_space" "white space stands before the first field",
        /// White space between name and colon (section 5.1).
        SpaceBeforeColon = 400 "field_space_before_colon" "white space stands before a colon",
        /// A line without a colon.
        NoColon = 400 "field_no_colon" "a field has no colon",
        /// A field without a name.
        NameEmpty = 400 "field_name_empty" "a field has no name",
        /// A name with bytes that no token has.
        Name = 400 "field_name" "a field's name is not a token",
        /// A name longer than any that is in use.
        NameTooLong = 431 "field_name_too_long" "a field's name is too long",
        /// A value with NUL or another control byte.
        Value = 400 "field_value" "a field's value holds a control byte",
        /// More fields than the limit.
        TooMany = 431 "fields_too_many" "there are too many fields",
        /// More bytes than the limit.
        TooLarge = 431 "head_too_large" "the head is too large",
        /// More connection options than anyone needs.
        ConnectionOptions = 400 "connection_options" "Connection names too many options",
    }
}

reasons! {
    /// What is wrong with a request target (RFC 9112, section 3.2).
    pub enum TargetError {
        /// Nothing stands there.
        Empty = 400 "target_empty" "the request target is empty",
        /// A control byte, white space or DEL.
        Control = 400 "target_control" "the request target holds white space or a control byte",
        /// A byte above 0x7E; it has to be percent-encoded.
        NotAscii = 400 "target_not_ascii" "the request target holds a byte that is not ASCII",
        /// `#`: a fragment is never sent.
        Fragment = 400 "target_fragment" "the request target holds a fragment",
        /// A backslash in the path, which some servers read as a slash.
        Backslash = 400 "target_backslash" "the path holds a backslash",
        /// None of the four forms.
        Form = 400 "target_form" "the request target has no known form",
        /// A scheme that is not HTTP's.
        Scheme = 400 "target_scheme" "the request target's scheme is neither http nor https",
        /// User information in the authority (RFC 9110, section 4.2.4).
        UserInfo = 400 "target_userinfo" "the request target holds user information",
        /// `*` with a method other than `OPTIONS`.
        Asterisk = 400 "target_asterisk" "only OPTIONS may ask for *",
        /// `%` without two hex digits behind it.
        Escape = 400 "path_escape" "the path holds a broken percent-escape",
        /// An encoded control byte.
        EncodedControl = 400 "path_encoded_control" "the path holds an encoded control byte",
        /// More `..` than there are segments.
        Climbs = 400 "path_climbs" "the path climbs above its root",
        /// A dot segment for some servers but not for others, as `..;` and `..%2F`.
        HiddenDots = 400 "path_hidden_dots" "the path hides a dot segment",
    }
}

reasons! {
    /// What is wrong with a host (RFC 9110, section 7.2).
    pub enum HostError {
        /// HTTP/1.1 without `Host`.
        Missing = 400 "host_missing" "there is no Host",
        /// More than one `Host`.
        Several = 400 "host_several" "there are several Hosts",
        /// `Host` without a value.
        Empty = 400 "host_empty" "Host is empty",
        /// Neither a name, nor an IPv4 address, nor an IPv6 address in brackets.
        Malformed = 400 "host_malformed" "Host is neither a name nor an address",
        /// A port that is not a number from 0 to 65535 in its shortest form.
        Port = 400 "host_port" "Host has a malformed port",
        /// An absolute target that names another host.
        Conflict = 400 "host_conflict" "the request target and Host disagree",
    }
}

reasons! {
    /// What is wrong with a message's framing (RFC 9112, section 6).
    pub enum FramingError {
        /// Both `Content-Length` and `Transfer-Encoding`.
        Both = 400 "framing_both" "both Content-Length and Transfer-Encoding are there",
        /// More than one `Content-Length`, equal or not.
        LengthSeveral = 400 "length_several" "there are several Content-Lengths",
        /// A `Content-Length` that is not one number in its shortest form.
        LengthMalformed = 400 "length_malformed" "Content-Length is not a plain number",
        /// A `Content-Length` that a signed 64-bit number cannot hold.
        LengthTooLarge = 413 "length_too_large" "Content-Length is too large",
        /// Any transfer coding but a single `chunked`.
        Coding = 400 "transfer_coding" "Transfer-Encoding is not a single chunked",
        /// `Transfer-Encoding` from HTTP/1.0, which does not know it.
        CodingInHttp10 = 400 "transfer_coding_http10" "Transfer-Encoding came with HTTP/1.0",
        /// An expectation other than `100-continue`.
        Expectation = 417 "expectation" "the expectation is not known",
    }
}

reasons! {
    /// What is wrong with a chunked body (RFC 9112, section 7.1).
    pub enum ChunkError {
        /// A size that is not one to sixteen hex digits.
        Size = 400 "chunk_size" "a chunk size is not a plain hex number",
        /// A size that a signed 64-bit number cannot hold.
        SizeTooLarge = 413 "chunk_size_too_large" "a chunk size is too large",
        /// A size line that does not end in CRLF.
        LineEnd = 400 "chunk_line_end" "a chunk size line does not end in CRLF",
        /// Control or non-ASCII bytes in an extension.
        Extension = 400 "chunk_extension" "a chunk extension holds bytes it may not hold",
        /// More extension bytes in one line than the limit.
        ExtensionTooLong = 400 "chunk_extension_too_long" "a chunk extension is too long",
        /// More extension bytes in one body than the limit.
        ExtensionsTooLong = 400 "chunk_extensions_too_long" "chunk extensions are too long in sum",
        /// Something but CRLF behind the data of a chunk.
        DataEnd = 400 "chunk_data_end" "a chunk's data does not end in CRLF",
        /// A trailer field that would frame or route the message (RFC 9110, section 6.5.1).
        TrailerForbidden = 400 "trailer_forbidden" "a trailer field may not be a trailer",
    }
    and {
        /// The trailer section's lines.
        Trailer(FieldError),
    }
}

reasons! {
    /// Why a request is refused. After any of these the connection is closed.
    pub enum RequestError {
        /// The first bytes are a TLS record: a client took this port for one with TLS.
        Tls = 400 "tls_on_plain_port" "a TLS handshake came where plain HTTP is spoken",
        /// The client connection preface of HTTP/2 (RFC 9113, section 3.4).
        Http2Preface = 505 "http2_preface" "HTTP/2 came where HTTP/1 is spoken",
        /// An empty line stands where the request line should.
        EmptyLine = 400 "request_line_empty" "the request line is empty",
        /// The first line cannot be a request line.
        Method = 400 "request_method" "the method is not a token",
        /// A method longer than any we know (RFC 9112, section 3).
        MethodTooLong = 501 "request_method_too_long" "the method is too long",
        /// `CONNECT`: the gate is no tunnel.
        Connect = 405 "request_connect" "CONNECT is refused",
        /// Anything but two single spaces in the request line.
        Whitespace = 400 "request_line_whitespace" "the request line holds more white space than two spaces",
        /// No version: HTTP/0.9 or noise.
        VersionMissing = 400 "request_version_missing" "the request line has no version",
        /// Something that is no version at all.
        VersionMalformed = 400 "request_version_malformed" "the version is malformed",
        /// A well-formed version that is not HTTP/1.0 or HTTP/1.1.
        VersionUnsupported = 505 "request_version_unsupported" "the version is neither HTTP/1.0 nor HTTP/1.1",
        /// A target longer than the limit.
        TargetTooLong = 414 "request_target_too_long" "the request target is too long",
    }
    and {
        /// The field lines.
        Field(FieldError),
        /// The request target.
        Target(TargetError),
        /// The host.
        Host(HostError),
        /// The framing.
        Framing(FramingError),
    }
}

/// Why a response is refused. The client gets 502, and the connection to the origin is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResponseError {
    /// The first line is not a status line; an HTTP/0.9 response is one such case.
    StatusLine,
    /// A version that is not HTTP/1.0 or HTTP/1.1.
    Version,
    /// A status that is not three digits from 100 to 999.
    Status,
    /// Control bytes in the reason phrase.
    Reason,
    /// A 1xx or 204 response that announces content (RFC 9110, section 8.6).
    ContentForbidden,
    /// A 101 that nobody asked for, or one that switches to something else than was asked for.
    SwitchUnasked,
    /// The field lines.
    Field(FieldError),
    /// The framing.
    Framing(FramingError),
}

impl ResponseError {
    /// The reasons that are this enum's own.
    pub const ALL: &[ResponseError] = &[
        ResponseError::StatusLine,
        ResponseError::Version,
        ResponseError::Status,
        ResponseError::Reason,
        ResponseError::ContentForbidden,
        ResponseError::SwitchUnasked,
    ];

    /// What the client gets: 502, always.
    pub const fn status(self) -> u16 {
        502
    }

    /// One word for metrics and logs.
    pub const fn code(self) -> &'static str {
        match self {
            ResponseError::StatusLine => "status_line",
            ResponseError::Version => "response_version",
            ResponseError::Status => "response_status",
            ResponseError::Reason => "response_reason",
            ResponseError::ContentForbidden => "response_content_forbidden",
            ResponseError::SwitchUnasked => "response_switch_unasked",
            ResponseError::Field(reason) => reason.code(),
            ResponseError::Framing(reason) => reason.code(),
        }
    }

    /// One plain sentence without a full stop.
    pub const fn sentence(self) -> &'static str {
        match self {
            ResponseError::StatusLine => "the first line is not a status line",
            ResponseError::Version => "the version is neither HTTP/1.0 nor HTTP/1.1",
            ResponseError::Status => "the status is not three digits from 100 to 999",
            ResponseError::Reason => "the reason phrase holds a control byte",
            ResponseError::ContentForbidden => "a response without content announces some",
            ResponseError::SwitchUnasked => "the origin switches protocols unasked",
            ResponseError::Field(reason) => reason.sentence(),
            ResponseError::Framing(reason) => reason.sentence(),
        }
    }
}

impl fmt::Display for ResponseError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.sentence())
    }
}

impl std::error::Error for ResponseError {}

impl From<FieldError> for ResponseError {
    fn from(reason: FieldError) -> Self {
        ResponseError::Field(reason)
    }
}

impl From<FramingError> for ResponseError {
    fn from(reason: FramingError) -> Self {
        ResponseError::Framing(reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_own_code() {
        let codes = [
            FieldError::ALL.iter().map(|reason| reason.code()).collect::<Vec<_>>(),
            TargetError::ALL.iter().map(|reason| reason.code()).collect(),
            HostError::ALL.iter().map(|reason| reason.code()).collect(),
            FramingError::ALL.iter().map(|reason| reason.code()).collect(),
            ChunkError::ALL.iter().map(|reason| reason.code()).collect(),
            RequestError::ALL.iter().map(|reason| reason.code()).collect(),
            ResponseError::ALL.iter().map(|reason| reason.code()).collect(),
        ]
        .concat();
        let mut unique = codes.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), codes.len());
    }

    #[test]
    fn an_inner_reason_speaks_through_its_outer() {
        let outer = RequestError::from(FieldError::TooMany);
        assert_eq!((outer.status(), outer.code()), (431, "fields_too_many"));
        assert_eq!(ResponseError::from(FieldError::TooMany).status(), 502);
        assert_eq!(outer.to_string(), FieldError::TooMany.to_string());
    }
}
