//! HTTP messages without I/O: the HTTP/1 codec for both roles, framing, targets and the semantics
//! of header fields.
//!
//! Everything here is a pure function of its input. Bytes come in as slices, decisions go out as
//! values, and what is written is written afresh from the parsed message, so that a message has one
//! meaning left once it has passed through. Nothing here reads a clock or a socket.

#![forbid(unsafe_code)]

mod block;
pub mod chunked;
pub mod date;
pub mod error;
pub mod field;
pub mod framing;
pub mod headers;
pub mod message;
pub mod parse;
pub mod target;
pub mod write;

pub use error::{RequestError, ResponseError};
pub use headers::Headers;
pub use message::{Method, PathSource, Request, Response, Version};
