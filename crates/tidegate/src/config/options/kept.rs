//! Options of context: what rules remember between requests, and how much of it.

use std::time::Duration;

use super::super::diagnostic::code;
use super::super::reader::Text;
use super::kind::{
    Count, DAY, Fault, KB, MB, MINUTE, Parsed, SECOND, SecretText, Size, TB, Time, count,
    parsed_text, size, time,
};
use super::{Optional, Required, Section, Setting, Shape, optional, required, section, setting};

fn directory(text: &Text) -> Result<String, Fault> {
    if text.value.is_empty() || text.value.contains('\0') {
        return Err(Fault::new(&code::INVALID_VALUE, "this is not the path of a directory"));
    }
    Ok(text.value.clone())
}

section! {
    /// What the rules of the WAF remember between requests: the collections `GLOBAL`, `IP`,
    /// `RESOURCE`, `SESSION` and `USER`. All workers share them. Only `timeout` follows a reload;
    /// the rest is fixed for the life of a process. docs/context.md tells how it is kept, filled from
    /// outside and watched.
    context = Section::new("context", "[context]", Shape::One)
        .example("[context]\npath = \"/var/lib/tidegate/context\"\nmemory_max = \"1GB\"")
        .sections(&[&context_sync::SECTION]);

    /// The directory of the copy on disk, from which a gate starts again. It is made if it is not
    /// there, and one process at a time has it.
    PATH: Optional<Parsed<String>> = optional(
        "path",
        parsed_text("the path of a directory", directory),
        "what is remembered ends with the process",
        "\"/var/lib/tidegate/context\"",
    );

    /// How often changes are written to disk. A crash loses what changed since the last time.
    WRITE_INTERVAL: Setting<Time> =
        setting("write_interval", time(Duration::from_millis(10), MINUTE), "\"1s\"");

    /// Variables that are kept, over all collections. When there is no room, what would expire
    /// soonest is forgotten, and `/status` says so.
    ENTRIES_MAX: Setting<Count<usize>> =
        setting("entries_max", count(16, 1_000_000_000), "1_000_000");

    /// Bytes of memory that they may take, with what keeping them costs: 272 for a variable, 128 for a
    /// record, and names and values from 23 bytes on.
    MEMORY_MAX: Setting<Size> = setting("memory_max", size(64 * KB, TB), "\"512MB\"");

    /// The longest key of a record. What is longer is not kept.
    KEY_MAX: Setting<Size> = setting("key_max", size(16, 64 * KB), "\"1KB\"");

    /// The longest name of a variable.
    NAME_MAX: Setting<Size> = setting("name_max", size(16, 64 * KB), "\"512\"");

    /// The longest value.
    VALUE_MAX: Setting<Size> = setting("value_max", size(16, 16 * MB), "\"16KB\"");

    /// How long a record is kept after its last write, where no rule says otherwise.
    TIMEOUT: Optional<Time> = optional(
        "timeout",
        time(SECOND, Duration::from_hours(24 * 3650)),
        "as the rules say (`SecCollectionTimeout`): 1h, unless a rule file says otherwise",
        "\"10m\"",
    );
}

/// The server of shared context, without secrets.
#[derive(Clone, Debug)]
pub(crate) struct SyncServer(pub(crate) redis::ConnectionInfo);

fn server(text: &Text) -> Result<SyncServer, Fault> {
    let fault = |message: String| {
        Fault::new(&code::INVALID_VALUE, message)
            .hint("write it like `redis://10.0.0.5:6379`, `rediss://valkey.example` or `unix:///run/valkey.sock`")
    };
    let info = redis::IntoConnectionInfo::into_connection_info(text.value.as_str());
    let info = info.map_err(|error| fault(format!("{} is no server: {error}", text.shown())))?;
    if info.redis_settings().password().is_some() {
        return Err(fault("a password has no place in the address".into())
            .hint("take it out of the address, and add `password = \"${VALKEY_PASSWORD}\"`"));
    }
    Ok(SyncServer(info))
}

fn prefix(text: &Text) -> Result<String, Fault> {
    let is_plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '{' | '}');
    if text.value.is_empty() || text.value.len() > 64 || !text.value.chars().all(is_plain) {
        let message = "a prefix has 1 to 64 letters, digits or `_-.:{}`";
        return Err(Fault::new(&code::INVALID_VALUE, message));
    }
    Ok(text.value.clone())
}

section! {
    /// Sharing what rules remember with other gates, through a Valkey or Redis server. All of it waits for
    /// an upgrade or a restart. docs/context.md tells what gates agree about, and how feeds take part.
    context_sync = Section::new("sync", "[context.sync]", Shape::One)
        .example("[context.sync]\nserver = \"redis://10.0.0.5:6379\"\npassword = \"${VALKEY_PASSWORD}\"");

    /// Where the server is: `redis://`, `rediss://` (TLS) or `unix://`.
    SERVER: Required<Parsed<SyncServer>> = required(
        "server",
        parsed_text("the address of a server", server),
        "\"redis://10.0.0.5:6379\"",
    );

    /// The user at the server.
    USER: Optional<Parsed<String>> = optional(
        "user",
        parsed_text("a name", prefix),
        "the server's default user",
        "\"tidegate\"",
    );

    /// The password at the server.
    PASSWORD: Optional<SecretText> = optional(
        "password",
        SecretText { bytes_min: 1 },
        "the server wants none",
        "\"${VALKEY_PASSWORD}\"",
    );

    /// What the server's keys begin with: gates with the same prefix share.
    PREFIX: Setting<Parsed<String>> =
        setting("prefix", parsed_text("a prefix", prefix), "\"tidegate\"");

    /// Changes that the server keeps for gates that were away. One that was away for longer takes the
    /// whole state.
    STREAM_MAX: Setting<Count<usize>> =
        setting("stream_max", count(1_000, 100_000_000), "100_000");

    /// How long it is remembered that a variable was removed, so that what another gate has written
    /// before does not bring it back.
    REMOVED_KEPT: Setting<Time> = setting("removed_kept", time(SECOND, DAY), "\"10m\"");
}
