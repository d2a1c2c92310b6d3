//! `tidegate upgrade`.

use std::process::ExitCode;

use percent_encoding::{NON_ALPHANUMERIC, percent_encode};

use super::{admin, terminal};
use crate::cli;

pub(crate) fn run(arguments: &cli::Upgrade) -> ExitCode {
    let listener = match admin::find(&arguments.admin) {
        Ok(listener) => listener,
        Err(code) => return code,
    };
    let path = match &arguments.binary {
        None => "/upgrade".to_owned(),
        Some(binary) => match std::path::absolute(binary) {
            Ok(binary) => {
                let bytes = binary.as_os_str().as_encoded_bytes();
                format!("/upgrade?binary={}", percent_encode(bytes, NON_ALPHANUMERIC))
            }
            Err(error) => {
                terminal::print_error(&format!("tidegate: {}: {error}\n", binary.display()));
                return ExitCode::FAILURE;
            }
        },
    };
    admin::ask(&listener, "POST", &path, "text/plain")
}
