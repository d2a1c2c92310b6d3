//! Rule sets: whatever is read or refused has its place in the text, line ends decide nothing, and a
//! rule set that is accepted holds only rules that can be compiled.
#![no_main]

use std::collections::HashSet;

use libfuzzer_sys::fuzz_target;
use tidegate_fuzz::split;
use tidegate_waf::seclang::{
    Code, Diagnostic, Directive, Document, Entry, Location, Memory, Note, TargetKind, Test,
    directive::DirectiveName, parse,
};
use tidegate_waf::variable::Shape;

fuzz_target!(|input: &[u8]| {
    // Files are parted by NUL; the first one includes the others as it likes.
    let parts: Vec<Vec<u8>> = split(input, b"\0").into_iter().take(4).map(<[u8]>::to_vec).collect();
    let read = read(&parts);
    match &read {
        Ok((document, notes)) => {
            accepted(document, &parts);
            for note in notes {
                place(&note.location, &parts);
            }
        }
        Err(diagnostics) => {
            assert!(!diagnostics.is_empty());
            for Diagnostic { location, message, .. } in diagnostics {
                assert!(!message.is_empty() && !message.ends_with('.'), "{message}");
                place(location, &parts);
            }
        }
    }
    // A longer line end can only make a file or a directive too large.
    let limited =
        |read: &Read| read.as_ref().is_err_and(|all| all.iter().any(|it| it.code == Code::Limit));
    if !input.contains(&b'\r') && !limited(&read) {
        let crlf: Vec<Vec<u8>> = parts.iter().map(|part| with_crlf(part)).collect();
        assert_eq!(format!("{read:?}"), format!("{:?}", self::read(&crlf)));
    }
});

type Read = Result<(Document, Vec<Note>), Vec<Diagnostic>>;

const NAMES: [&str; 4] = ["d/main.conf", "d/a.conf", "d/b.conf", "d/e/c.conf"];

fn read(parts: &[Vec<u8>]) -> Read {
    let files: Memory = NAMES.into_iter().zip(parts.iter().cloned()).collect();
    parse(&files, Entry::File(NAMES[0]))
}

fn with_crlf(text: &[u8]) -> Vec<u8> {
    split(text, b"\n").join(&b"\r\n"[..])
}

/// The text from a place on to the end of its line, which must be there.
fn place<'t>(location: &Location, parts: &'t [Vec<u8>]) -> &'t [u8] {
    let file = NAMES.iter().position(|name| **name == *location.file).expect("a file that is read");
    let text = parts[file].strip_prefix(b"\xef\xbb\xbf").unwrap_or(&parts[file]);
    let lines = split(text, b"\n");
    let line = lines.get(location.line as usize - 1).expect("a line of the file");
    line.get(location.column as usize - 1..).expect("a column of the line")
}

fn accepted(document: &Document, parts: &[Vec<u8>]) {
    let mut ids = HashSet::new();
    for directive in &document.directives {
        let text = place(&directive.location, parts);
        // A continued line may end within the name.
        if !text.contains(&b'\\') {
            let word = text.split(u8::is_ascii_whitespace).next().expect("a first part");
            assert!(DirectiveName::named(word).is_some(), "{}", word.escape_ascii());
        }
        let Directive::Rule(rule) = &directive.value else { continue };
        assert!(rule.id > 0 && ids.insert(rule.id), "{rule:?}");
        assert!(!rule.links.is_empty());
        for link in &rule.links {
            assert!(matches!(place(&link.location, parts).first(), Some(b'S' | b's')));
            for action in &link.actions {
                assert!(place(&action.location, parts)[0].is_ascii_alphabetic(), "{action:?}");
            }
            let Test::Match { targets, operator } = &link.test else { continue };
            place(&operator.location, parts);
            assert!(targets.iter().any(|target| target.kind != TargetKind::Exclude), "{targets:?}");
            for target in targets {
                let first = place(&target.location, parts)[0];
                assert!(first.is_ascii_alphabetic() || b"!&".contains(&first), "{target:?}");
                let all = format!("{:?}", target.selector) == "All";
                assert!(all || target.variable.shape() != Shape::Scalar, "{target:?}");
            }
        }
    }
}
