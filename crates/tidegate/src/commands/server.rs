//! `tidegate server`: changes to a group's servers while the gate runs.

use std::process::ExitCode;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::admin;
use crate::admin::servers::canonical;
use crate::cli::{self, ServerChange};

/// Changes the servers one after another, and stops at the first that cannot be.
pub(crate) fn run(arguments: &cli::Server) -> ExitCode {
    let listener = match admin::find(&arguments.admin) {
        Ok(listener) => listener,
        Err(code) => return code,
    };
    for server in &arguments.servers {
        let (method, path) = request(arguments, server);
        let code = admin::ask(&listener, method, &path, "text/plain");
        if code != ExitCode::SUCCESS {
            return code;
        }
    }
    ExitCode::SUCCESS
}

fn request(arguments: &cli::Server, server: &str) -> (&'static str, String) {
    let encoded = |name: &str| utf8_percent_encode(name, NON_ALPHANUMERIC).to_string();
    let path =
        format!("/groups/{}/servers/{}", encoded(&arguments.group), encoded(&canonical(server)));
    match arguments.change {
        ServerChange::Drain => ("POST", format!("{path}/drain")),
        ServerChange::Undrain => ("POST", format!("{path}/undrain")),
        ServerChange::Remove => ("DELETE", path),
        ServerChange::Add => {
            let weight = arguments.weight.map(|weight| format!("weight={weight}"));
            let backup = arguments.backup.then(|| "backup=true".to_owned());
            let max = arguments.connections_max.map(|max| format!("connections_max={max}"));
            let terms: Vec<String> = [weight, backup, max].into_iter().flatten().collect();
            ("PUT", format!("{path}?{}", terms.join("&")))
        }
    }
}
