//! `tidegate purge`: what the cache is to forget.

use std::process::ExitCode;

use serde_json::json;

use super::admin;
use crate::admin::body::Body;
use crate::admin::client::{self, Ask};
use crate::cli;

/// Has the gate purge all that is named in one step, or nothing.
pub(crate) fn run(arguments: &cli::Purge) -> ExitCode {
    let listener = match admin::find(&arguments.admin) {
        Ok(listener) => listener,
        Err(code) => return code,
    };
    let cli::Purge { urls, prefixes, tags, sites, all, soft, .. } = arguments;
    let asked = json!({
        "url": urls, "prefix": prefixes, "tag": tags, "site": sites, "all": all, "soft": soft,
    });
    let body = Body::whole(asked.to_string());
    admin::told(client::ask(
        &listener,
        Ask { body, ..Ask::new("POST", "/cache/purge", "text/plain") },
    ))
}
