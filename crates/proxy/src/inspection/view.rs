//! What rules see of a request: the same whether the gate serves it or somebody tries it.

use std::net::{IpAddr, Ipv4Addr};

use tidegate_http::field::Known;
use tidegate_http::{Request, Version, write};
use tidegate_waf::inspection::{Inspection, RequestHead};

/// The address that rules see of a client without one: whoever comes over a Unix socket comes from
/// this machine.
pub const NOBODY: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Tells an inspection of a request's head. `protocol` is the name of its version as records have it,
/// `id` the request's; `scratch` is memory to work in.
pub fn request_head(
    inspection: &mut Inspection,
    request: &Request,
    protocol: &str,
    id: &[u8],
    scratch: &mut Vec<u8>,
) {
    scratch.clear();
    write::host(scratch, &request.host, request.port);
    let authority = scratch.as_slice();
    let mut target = Vec::new();
    if !request.scheme.is_empty() && request.version != Version::Http2 {
        // The target was absolute, and rules see it as it was.
        for part in [&*request.scheme, b"://", authority] {
            target.extend_from_slice(part);
        }
    }
    target.extend_from_slice(request.sent_path_and_query());
    let head = RequestHead {
        method: request.method_bytes(),
        target: &target,
        protocol: protocol.as_bytes(),
        host: &request.host,
        id,
    };
    // HTTP/2 has `:authority` where HTTP/1 has `Host`; rules know the latter.
    let host = (request.version == Version::Http2 && !request.headers.has(Known::Host))
        .then_some((&b"Host"[..], authority));
    let fields = request.headers.iter().map(|field| (field.name, field.value));
    inspection.request_head(head, host.into_iter().chain(fields));
}
