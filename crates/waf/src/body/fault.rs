//! Why a body cannot be read: `REQBODY_ERROR` and its message.

use std::fmt;

use super::{json, multipart, xml};

/// What ended a processor before its body's end.
///
/// Always the client's doing, never a reason to retry. Shown, it is `REQBODY_ERROR_MSG`, in
/// `ModSecurity` 2's words where it has any, since rules and regression tests look for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// More arguments than [`Limits::arguments_max`](super::Limits::arguments_max).
    Arguments,
    /// More bytes outside of files than
    /// [`Limits::fields_bytes_max`](super::Limits::fields_bytes_max).
    Fields,
    /// No `multipart/form-data`, or too much of it.
    Multipart(multipart::Fault),
    /// No JSON, or too much of it.
    Json(json::Fault),
    /// No XML, or too much of it.
    Xml(xml::Fault),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arguments => f.write_str("SecArgumentsLimit exceeded"),
            Self::Fields => {
                f.write_str("Request body no files data length is larger than the configured limit")
            }
            Self::Multipart(fault) => write!(f, "Multipart parsing error: Multipart: {fault}"),
            Self::Json(fault) => write!(f, "JSON parsing error: {fault}"),
            Self::Xml(fault) => write!(f, "XML parsing error: XML: {fault}"),
        }
    }
}

impl std::error::Error for Fault {}

/// What ends a processor's work early.
#[derive(Debug)]
pub(super) enum Halt {
    Fault(Fault),
    /// The sink has enough.
    Stop,
}

impl From<Fault> for Halt {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<multipart::Fault> for Halt {
    fn from(fault: multipart::Fault) -> Self {
        Self::Fault(Fault::Multipart(fault))
    }
}

impl From<json::Fault> for Halt {
    fn from(fault: json::Fault) -> Self {
        Self::Fault(Fault::Json(fault))
    }
}

impl From<xml::Fault> for Halt {
    fn from(fault: xml::Fault) -> Self {
        Self::Fault(Fault::Xml(fault))
    }
}
