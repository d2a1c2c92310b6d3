//! Options of listeners.

use tidegate_proxy::settings::{Address, Protocols, ProxyProtocol};

use super::super::parse;
use super::kind::{
    Choice, Count, DAY, GB, HOUR, KB, List, MB, MILLISECOND, MINUTE, Parsed, SECOND, Size, Time,
    count, list, parsed_text, size, time,
};
use super::{
    Optional, Reach, Required, Section, Setting, Shape, optional, required, section, setting,
};

section! {
    /// A listening address. Every site is served on every listener. Without any, the gate listens on
    /// `0.0.0.0:80` and `[::]:80`. An IPv6 address takes IPv6 only.
    listen = Section::new("listen", "[[listen]]", Shape::Many)
        .example("[[listen]]\naddress = \"0.0.0.0:443\"\ntls.certificates = [{ chain = \"example.org.pem\", key = \"example.org.key\" }]")
        .shorthand("address")
        .sections(&[&listen_tls::SECTION, &http2::SECTION]);

    /// Where connections are accepted.
    ADDRESS: Required<Parsed<Address>> = required(
        "address",
        parsed_text("an address and a port, or `unix:` and a path", parse::address::listen),
        "\"0.0.0.0:80\"",
    );

    /// Which versions of HTTP are spoken.
    PROTOCOLS: Setting<Choice<Protocols>> = setting(
        "protocols",
        Choice(&[
            ("http1", Protocols::Http1, "HTTP/1.0 and HTTP/1.1"),
            ("http2", Protocols::Http2, "HTTP/2 only; in plain text with prior knowledge"),
            ("both", Protocols::Both, "as the client likes: by ALPN over TLS, by its first bytes in plain text"),
        ]),
        "\"both\"",
    )
    .reaches(Reach::Defaults);

    /// Whether each connection begins with a PROXY protocol header (v1 or v2), which tells the
    /// client's address.
    PROXY_PROTOCOL: Setting<Choice<ProxyProtocol>> = setting(
        "proxy_protocol",
        Choice(&[
            ("off", ProxyProtocol::Off, "none is expected, and one is a bad request"),
            ("required", ProxyProtocol::Required, "one is required, and a connection without is closed"),
        ]),
        "\"off\"",
    )
    .danger("With `required`, whoever connects can pretend to be any client: let only the balancer in front reach this address.");

    /// Connections that the kernel holds until they are accepted (`listen(2)`; also bounded by
    /// `net.core.somaxconn`).
    BACKLOG: Setting<Count<u32>> = setting("backlog", count(1, 1_048_576), "4096").reaches(Reach::Defaults);

    /// Bytes of a whole request head. More are answered with 431.
    HEAD_BYTES_MAX: Setting<Size> =
        setting("head_bytes_max", size(KB, MB), "\"32KB\"").reaches(Reach::Defaults);

    /// Bytes of the request target. More are answered with 414.
    TARGET_BYTES_MAX: Setting<Size> =
        setting("target_bytes_max", size(256, MB), "\"8KB\"").reaches(Reach::Defaults);

    /// Fields in a request head. More are answered with 431.
    FIELDS_MAX: Setting<Count<usize>> =
        setting("fields_max", count(8, 1000), "100").reaches(Reach::Defaults);

    /// Requests on one connection before it is closed, so that clients spread anew over the workers.
    REQUESTS_PER_CONNECTION_MAX: Setting<Count<u32>> =
        setting("requests_per_connection_max", count(1, 1_000_000_000), "10_000").reaches(Reach::Defaults);

    /// For the TLS handshake.
    HANDSHAKE_TIMEOUT: Setting<Time> =
        setting("handshake_timeout", time(MILLISECOND.saturating_mul(100), MINUTE), "\"10s\"").reaches(Reach::Defaults);

    /// From the first byte of a request head to its end. Later is answered with 408.
    HEAD_TIMEOUT: Setting<Time> =
        setting("head_timeout", time(MILLISECOND.saturating_mul(100), HOUR), "\"10s\"")
            .reaches(Reach::Defaults)
            .danger("A long time lets slow senders hold connections.");

    /// Between two requests on a connection. An idle connection costs about 1 KB and no worker.
    IDLE_TIMEOUT: Setting<Time> =
        setting("idle_timeout", time(SECOND, DAY), "\"75s\"").reaches(Reach::Defaults);

    /// Between two reads of a request body. Later is answered with 408.
    BODY_READ_TIMEOUT: Setting<Time> =
        setting("body_read_timeout", time(MILLISECOND.saturating_mul(100), HOUR), "\"30s\"").reaches(Reach::Defaults);

    /// Between two writes of a response, for a client that does not read.
    WRITE_TIMEOUT: Setting<Time> =
        setting("write_timeout", time(MILLISECOND.saturating_mul(100), HOUR), "\"30s\"").reaches(Reach::Defaults);
}

/// Whether clients are asked for certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientAuth {
    Off,
    Optional,
    Required,
}

/// What a client gets that asks for a name without a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnknownName {
    Default,
    Refuse,
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TlsVersion {
    Tls12,
    Tls13,
}

/// The versions of TLS, here and towards servers.
pub(super) const TLS_VERSIONS: List<Choice<TlsVersion>> = list(
    "a list of `1.2` and `1.3`",
    Choice(&[
        ("1.2", TlsVersion::Tls12, "for peers that have nothing newer"),
        ("1.3", TlsVersion::Tls13, ""),
    ]),
);

section! {
    /// TLS of a listener. Certificates are chosen by the name that the client asks for (SNI), and read
    /// again when their files change.
    listen_tls = Section::new("tls", "[listen.tls]", Shape::One)
        .example("[listen.tls]\ncertificates = [{ chain = \"a.pem\", key = \"a.key\" }, { chain = \"b.pem\", key = \"b.key\" }]")
        .sections(&[&certificate::SECTION]);

    /// Which versions are spoken.
    VERSIONS: Setting<List<Choice<TlsVersion>>> =
        setting("versions", TLS_VERSIONS, "[\"1.2\", \"1.3\"]");

    /// What a client gets that asks for a name without a certificate.
    UNKNOWN_NAME: Setting<Choice<UnknownName>> = setting(
        "unknown_name",
        Choice(&[
            ("default", UnknownName::Default, "the first certificate, which it will not believe"),
            ("refuse", UnknownName::Refuse, "the alert `unrecognized_name`"),
        ]),
        "\"default\"",
    );

    /// Whether clients are asked for certificates.
    CLIENT_AUTH: Setting<Choice<ClientAuth>> = setting(
        "client_auth",
        Choice(&[
            ("off", ClientAuth::Off, "they are not"),
            ("optional", ClientAuth::Optional, "they are, and those without are served too"),
            ("required", ClientAuth::Required, "they are, and those without are not served"),
        ]),
        "\"off\"",
    );

    /// A PEM file of the authorities that certify clients.
    CLIENT_CA: Optional<Parsed<String>> = optional(
        "client_ca",
        parsed_text("the path of a PEM file", |text| Ok(text.value.clone())),
        "there are none; needed for `client_auth`",
        "\"clients-ca.pem\"",
    );

    /// A PEM file of what these authorities revoked. With it, every certificate of a client's chain
    /// must have a current list.
    CLIENT_CRL: Optional<Parsed<String>> = optional(
        "client_crl",
        parsed_text("the path of a PEM file", |text| Ok(text.value.clone())),
        "nothing is revoked",
        "\"clients-crl.pem\"",
    );
}

section! {
    /// A certificate of a listener. The first is shown to clients that ask for no name.
    certificate = Section::new("certificates", "listen.tls.certificates", Shape::InlineMany)
        .example("certificates = [{ chain = \"example.org.pem\", key = \"example.org.key\" }]");

    /// A PEM file: the certificate, then each that certifies the one before.
    CHAIN: Required<Parsed<String>> = required(
        "chain",
        parsed_text("the path of a PEM file", |text| Ok(text.value.clone())),
        "\"example.org.pem\"",
    );

    /// A PEM file: its private key, not encrypted. It may be the same file.
    KEY: Required<Parsed<String>> = required(
        "key",
        parsed_text("the path of a PEM file", |text| Ok(text.value.clone())),
        "\"example.org.key\"",
    );
}

section! {
    /// HTTP/2 limits of a listener.
    http2 = Section::new("http2", "[listen.http2]", Shape::One)
        .example("[listen.http2]\nstreams_max = 64");

    /// Requests at once on one connection.
    STREAMS_MAX: Setting<Count<u32>> = setting("streams_max", count(1, 10_000), "128");

    /// Bytes that a client may send of one request before it waits (the stream's initial window).
    STREAM_WINDOW: Setting<Size> = setting("stream_window", size(65_535, GB), "\"256KB\"");

    /// Bytes that a client may send of all requests before it waits (the connection's window).
    CONNECTION_WINDOW: Setting<Size> = setting("connection_window", size(65_535, GB), "\"1MB\"");

    /// Requests that a client may take back early before it is told to go (rapid reset,
    /// CVE-2023-44487).
    RESETS_MAX: Setting<Count<usize>> = setting("resets_max", count(1, 100_000), "100")
        .danger("Each costs a request's work: a high number lets one client cause much.");

    /// Bytes of the decoded fields of one request.
    HEADER_BYTES_MAX: Setting<Size> = setting("header_bytes_max", size(KB, MB), "\"32KB\"");
}
