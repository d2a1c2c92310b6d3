//! The proxy: from an accepted connection to a finished record.
//!
//! [`settings`] resolve into a [`plan`]; [`worker`]s accept connections under it; [`connection`]s
//! turn bytes into requests; a [`request`] goes its way of eight stops, on which [`upstream`] gives
//! it a server.

pub mod caching;
pub mod connection;
pub mod forwarded;
pub mod inspection;
pub mod plan;
pub mod proxy_protocol;
pub mod request;
pub mod settings;
pub mod socket;
pub mod template;
pub mod tls;
pub mod upstream;
pub mod worker;
