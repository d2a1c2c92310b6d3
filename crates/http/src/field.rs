//! What a header field may be called and hold (RFC 9110, section 5), and the names we know.

macro_rules! known {
    ($($variant:ident = $name:literal),* $(,)?) => {
        /// A field name that the gate itself looks at.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Known {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
            /// Any other name.
            Other,
        }

        impl Known {
            /// All known names; [`Known::Other`] is not among them.
            pub const ALL: &[Known] = &[$(Known::$variant),*];

            /// The name in its usual spelling; empty for [`Known::Other`].
            pub const fn name(self) -> &'static str {
                match self { $(Known::$variant => $name,)* Known::Other => "" }
            }
        }
    };
}

known! {
    Host = "Host",
    Connection = "Connection",
    ContentLength = "Content-Length",
    TransferEncoding = "Transfer-Encoding",
    KeepAlive = "Keep-Alive",
    ProxyConnection = "Proxy-Connection",
    Te = "TE",
    Trailer = "Trailer",
    Upgrade = "Upgrade",
    Http2Settings = "HTTP2-Settings",
    ProxyAuthenticate = "Proxy-Authenticate",
    ProxyAuthorization = "Proxy-Authorization",
    Expect = "Expect",
    Date = "Date",
    Server = "Server",
    Via = "Via",
    Location = "Location",
    Forwarded = "Forwarded",
    XForwardedFor = "X-Forwarded-For",
    XForwardedProto = "X-Forwarded-Proto",
    XForwardedHost = "X-Forwarded-Host",
    XForwardedPort = "X-Forwarded-Port",
    XRealIp = "X-Real-IP",
    UserAgent = "User-Agent",
    Referer = "Referer",
    Cookie = "Cookie",
    SetCookie = "Set-Cookie",
    Authorization = "Authorization",
    ContentType = "Content-Type",
    ContentEncoding = "Content-Encoding",
    ContentRange = "Content-Range",
    Accept = "Accept",
    AcceptEncoding = "Accept-Encoding",
    AcceptLanguage = "Accept-Language",
    AcceptRanges = "Accept-Ranges",
    Age = "Age",
    CacheControl = "Cache-Control",
    Etag = "ETag",
    Expires = "Expires",
    IfMatch = "If-Match",
    IfModifiedSince = "If-Modified-Since",
    IfNoneMatch = "If-None-Match",
    IfRange = "If-Range",
    IfUnmodifiedSince = "If-Unmodified-Since",
    LastModified = "Last-Modified",
    Pragma = "Pragma",
    Range = "Range",
    Vary = "Vary",
    Warning = "Warning",
    SecWebSocketKey = "Sec-WebSocket-Key",
}

impl Known {
    /// The bit of this name in a set of names; [`Known::Other`] has none.
    pub const fn bit(self) -> u64 {
        match self {
            Known::Other => 0,
            known => 1 << known as u8,
        }
    }
}
