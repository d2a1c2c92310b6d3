//! Options of context: what rules remember between requests, and how much of it.

use std::time::Duration;

use super::super::diagnostic::code;
use super::super::reader::Text;
use super::kind::{
    Count, Fault, KB, MB, MINUTE, Parsed, SECOND, Size, TB, Time, count, parsed_text, size, time,
};
use super::{Optional, Section, Setting, Shape, optional, section, setting};

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
        .example("[context]\npath = \"/var/lib/tidegate/context\"\nmemory_max = \"1GB\"");

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
