//! TLS against independent peers, over real sockets: OpenSSL's `s_client` and `s_server`, curl, and
//! rustls' own buffered connections. Certificates are made for each test.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod certificates;
mod clients;
mod gate;
mod handshakes;
mod peers;
mod resumption;
mod traffic;
mod upstream;
mod violations;
