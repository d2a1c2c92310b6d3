//! What is told about rule sets: `mistakes.txt` and `notes.txt` hold rule sets, parted by empty
//! lines, each with what is told about it behind `> `. `UPDATE=1 cargo test -p tidegate-waf` writes
//! what is told now.

use super::read;

/// A rule set must be refused, or accepted, as the file says.
enum Fate {
    Refused,
    Accepted,
}

fn check(name: &str, written: &str, fate: &Fate) {
    let mut told = Vec::new();
    for block in written.split("\n\n") {
        let lines = block.lines().filter(|line| !line.starts_with("> "));
        let source = lines.collect::<Vec<_>>().join("\n");
        if source.starts_with("== ") {
            told.push(source);
            continue;
        }
        let messages = match (read(source.as_bytes()), fate) {
            (Err(messages), Fate::Refused) | (Ok((_, messages)), Fate::Accepted) => messages,
            (Ok(_), Fate::Refused) => panic!("{name}: this is accepted:\n{source}"),
            (Err(messages), Fate::Accepted) => panic!("{name}: {messages:#?}:\n{source}"),
        };
        assert!(!messages.is_empty(), "{name}: nothing is told about this:\n{source}");
        let messages = messages.iter().map(|message| format!("> {message}"));
        told.push(std::iter::once(source).chain(messages).collect::<Vec<_>>().join("\n"));
    }
    let told = told.join("\n\n") + "\n";
    if std::env::var_os("UPDATE").is_some() {
        let path = format!("{}/src/seclang/tests/{name}", env!("CARGO_MANIFEST_DIR"));
        std::fs::write(path, told).unwrap();
        return;
    }
    for (now, before) in told.split("\n\n").zip(written.split("\n\n")) {
        assert_eq!(now.trim_end(), before.trim_end(), "{name}; UPDATE=1 writes it");
    }
    assert_eq!(told, written, "{name}; UPDATE=1 writes it");
}

#[test]
fn every_mistake_is_told_with_its_place() {
    check("mistakes.txt", include_str!("mistakes.txt"), &Fate::Refused);
}

#[test]
fn every_remark_is_made_with_its_place() {
    check("notes.txt", include_str!("notes.txt"), &Fate::Accepted);
}
