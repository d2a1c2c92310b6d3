//! What the placeholders of templates stand for in a request.

use std::io::Write as _;

use super::{Exchange, Place, Surroundings};
use crate::template::{Template, Variable};

/// Writes a template with this request's values.
pub(super) fn write(
    template: &Template,
    around: &Surroundings<'_>,
    exchange: &Exchange,
    place: Option<Place<'_>>,
    out: &mut Vec<u8>,
) {
    let request = &exchange.request;
    let tls = around.client.tls.as_deref();
    let certificate = tls.and_then(|tls| tls.client.as_deref());
    template.write(out, |variable, out| match variable {
        Variable::ClientAddress => {
            if let Some(addr) = exchange.client_addr {
                // Writing to memory does not fail.
                let _ = write!(out, "{addr}");
            }
        }
        Variable::Host => out.extend_from_slice(&request.host),
        Variable::Scheme => {
            out.extend_from_slice(exchange.scheme.name().as_bytes());
        }
        Variable::Path => out.extend_from_slice(request.path()),
        Variable::Query => {
            if let Some(query) = request.query() {
                out.push(b'?');
                out.extend_from_slice(query);
            }
        }
        Variable::Uri => out.extend_from_slice(&request.path_and_query),
        Variable::RequestId => out.extend_from_slice(&exchange.record.id.hex()),
        Variable::Site => {
            let name = place.map_or("", |place| place.site.settings.name.as_str());
            out.extend_from_slice(name.as_bytes());
        }
        Variable::Route => {
            let route = place.and_then(|place| place.route);
            out.extend_from_slice(route.map_or("", |route| &route.settings.name).as_bytes());
        }
        Variable::TlsClientSubject => {
            let subject = certificate.map_or("", |certificate| &certificate.subject);
            out.extend_from_slice(subject.as_bytes());
        }
        Variable::TlsClientFingerprint => {
            let fingerprint = certificate.map_or("", |certificate| &certificate.fingerprint);
            out.extend_from_slice(fingerprint.as_bytes());
        }
        Variable::TlsVersion => {
            out.extend_from_slice(tls.map_or("", |tls| tls.version.as_str()).as_bytes());
        }
    });
}
