//! Request targets: a normal form is its own, and a plain dot-segment remover agrees with it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_http::target::{self, Form, PathForm};

fuzz_target!(|input: &[u8]| {
    match target::form(input) {
        Ok(Form::Origin) => {
            let end = input.iter().position(|&byte| byte == b'?').unwrap_or(input.len());
            normal_form(&input[..end]);
        }
        Ok(Form::Absolute { authority, path_and_query, .. }) => {
            assert!(!authority.iter().any(|byte| b"/?#@".contains(byte)));
            assert!(matches!(path_and_query, [] | [b'/' | b'?', ..]));
        }
        Ok(Form::Asterisk) => assert_eq!(input, b"*"),
        // No judge has looked at these bytes: nothing may go wrong all the same.
        Err(_) => {
            let _ = target::normalize_path(input, &mut Vec::new());
        }
    }
});

fn normal_form(path: &[u8]) {
    let mut out = Vec::new();
    let normal = match target::normalize_path(path, &mut out) {
        Ok(PathForm::Normal) => path,
        Ok(PathForm::Rewritten) => {
            assert_ne!(out, path);
            &out
        }
        Err(_) => return,
    };
    assert_eq!(target::normalize_path(normal, &mut Vec::new()), Ok(PathForm::Normal));
    assert_eq!(target::form(normal), Ok(Form::Origin));
    assert!(!normal.contains(&b'?'));
    assert_eq!(normal, plain(path));
}

/// Decodes what is unreserved, then walks the segments with a stack.
fn plain(path: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    let mut rest = path;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte != b'%' {
            text.push(byte);
            continue;
        }
        let digits = std::str::from_utf8(&rest[..2]).expect("an escape is ASCII");
        let decoded = u8::from_str_radix(digits, 16).expect("an escape is hex");
        if decoded.is_ascii_alphanumeric() || b"-._~".contains(&decoded) {
            text.push(decoded);
        } else {
            text.push(b'%');
            text.extend_from_slice(digits.to_ascii_uppercase().as_bytes());
        }
        rest = &rest[2..];
    }
    let segments: Vec<&[u8]> = text.split(|&byte| byte == b'/').skip(1).collect();
    let mut stack: Vec<&[u8]> = Vec::new();
    for (index, segment) in segments.iter().enumerate() {
        let last = index + 1 == segments.len();
        match *segment {
            b"." | b".." => {
                if *segment == b".." {
                    stack.pop().expect("an accepted path does not climb");
                }
                if last {
                    stack.push(b"");
                }
            }
            segment => stack.push(segment),
        }
    }
    stack.iter().flat_map(|segment| [b"/", *segment].concat()).collect()
}
