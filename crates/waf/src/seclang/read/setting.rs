//! Settings with their values.

use super::passage::Snippet;
use super::rule::{end, missing};
use super::words::Words;
use crate::seclang::diagnostic::{Code, Diagnostic, Report};
use crate::seclang::directive::DirectiveName;
use crate::seclang::location::Location;
use crate::seclang::setting::{
    AuditFormat, AuditMode, AuditParts, CookieFormat, EngineMode, LimitAction, Setting, Switch,
    XmlArgs,
};

/// Reads the words of a setting. None for a directive that is no setting.
pub(super) fn setting(
    name: DirectiveName,
    location: Location,
    words: &mut Words<'_>,
    report: &mut Report,
) -> Result<Option<Setting>, Diagnostic> {
    match name {
        DirectiveName::ResponseBodyMimeTypesClear => {
            end(name.name(), words)?;
            return Ok(Some(Setting::ResponseBodyMimeTypesClear));
        }
        DirectiveName::ResponseBodyMimeType => {
            return mime_types(location, words).map(Some);
        }
        DirectiveName::UnicodeMapFile => return unicode_map(location, words).map(Some),
        _ => {}
    }
    let Some(word) = words.next()? else {
        return Err(missing(location, &format!("`{}` takes {}", name.name(), syntax(name))));
    };
    end(name.name(), words)?;
    let value = word.text();
    let setting = one_word(name, value)?;
    if setting.is_none() {
        let message = format!("`{}` takes {}, found {}", name.name(), syntax(name), value.shown());
        report.error(Diagnostic::new(value.location(), Code::Value, message));
    }
    Ok(setting)
}

/// What the table says that the directive takes, for a message.
fn syntax(name: DirectiveName) -> String {
    let syntax = name.description().syntax;
    if syntax.contains('|') {
        let words: Vec<_> = syntax.split('|').map(|word| format!("`{word}`")).collect();
        let (last, others) = words.split_last().map_or(("", &[][..]), |(l, o)| (l.as_str(), o));
        return format!("{} or {last}", others.join(", "));
    }
    let noun = match syntax {
        "NUMBER" => "a number",
        "BYTES" => "a number of bytes",
        "SECONDS" => "a number of seconds",
        "PATH" => "a path",
        "CHARACTER" => "one character",
        "PATTERN" => "a pattern",
        "LETTERS" => "letters from A to K and Z",
        "KEY" => "a key of twelve letters",
        "NAME" => "a name",
        other => return format!("`{other}`"),
    };
    noun.to_owned()
}

/// Reads a setting of one word. None if the word is not what it takes.
fn one_word(name: DirectiveName, value: Snippet<'_>) -> Result<Option<Setting>, Diagnostic> {
    let bytes = value.bytes();
    Ok(match name {
        DirectiveName::ArgumentSeparator => match bytes {
            [byte] => Some(Setting::ArgumentSeparator(*byte)),
            _ => None,
        },
        DirectiveName::ArgumentsLimit => positive(value).map(Setting::ArgumentsLimit),
        DirectiveName::AuditEngine => AuditMode::named(bytes).map(Setting::AuditEngine),
        DirectiveName::AuditLogFormat => {
            let others: [(&str, &str); 2] = [
                ("JsonLegacy", "the JSON format is written, one object a line"),
                ("OCSF", "the JSON format is written, one object a line"),
            ];
            refused(name, value, &others)?;
            AuditFormat::named(bytes).map(Setting::AuditLogFormat)
        }
        DirectiveName::AuditLogParts => AuditParts::lettered(bytes).map(Setting::AuditLogParts),
        DirectiveName::AuditLogRelevantStatus => {
            Some(Setting::AuditLogRelevantStatus(bytes.into()))
        }
        DirectiveName::CollectionTimeout => positive(value).map(Setting::CollectionTimeout),
        DirectiveName::CookieFormat => CookieFormat::named(bytes).map(Setting::CookieFormat),
        DirectiveName::GeoLookupDb => path(value).map(Setting::GeoLookupDb),
        DirectiveName::HttpBlKey => {
            let is_key = bytes.len() == 12 && bytes.iter().all(u8::is_ascii_alphabetic);
            path(value).filter(|_| is_key).map(Setting::HttpBlKey)
        }
        DirectiveName::ParseXmlIntoArgs => XmlArgs::named(bytes).map(Setting::ParseXmlIntoArgs),
        DirectiveName::PcreMatchLimit => positive(value).map(Setting::PcreMatchLimit),
        DirectiveName::RequestBodyAccess => Switch::named(bytes).map(Setting::RequestBodyAccess),
        DirectiveName::RequestBodyJsonDepthLimit => {
            positive(value).map(Setting::RequestBodyJsonDepthLimit)
        }
        DirectiveName::RequestBodyLimit => positive(value).map(Setting::RequestBodyLimit),
        DirectiveName::RequestBodyLimitAction => {
            LimitAction::named(bytes).map(Setting::RequestBodyLimitAction)
        }
        DirectiveName::RequestBodyNoFilesLimit => {
            positive(value).map(Setting::RequestBodyNoFilesLimit)
        }
        DirectiveName::ResponseBodyAccess => Switch::named(bytes).map(Setting::ResponseBodyAccess),
        DirectiveName::ResponseBodyLimit => positive(value).map(Setting::ResponseBodyLimit),
        DirectiveName::ResponseBodyLimitAction => {
            LimitAction::named(bytes).map(Setting::ResponseBodyLimitAction)
        }
        DirectiveName::RuleEngine => EngineMode::named(bytes).map(Setting::RuleEngine),
        DirectiveName::SensorId => path(value).map(Setting::SensorId),
        DirectiveName::TmpDir => path(value).map(Setting::TmpDir),
        DirectiveName::UploadFileLimit => positive(value).map(Setting::UploadFileLimit),
        DirectiveName::WebAppId => path(value).map(Setting::WebAppId),
        _ => None,
    })
}

/// Words that other engines take and this one does not.
fn refused(
    name: DirectiveName,
    value: Snippet<'_>,
    words: &[(&str, &str)],
) -> Result<(), Diagnostic> {
    let is = |(word, _): &&(&str, &str)| word.as_bytes().eq_ignore_ascii_case(value.bytes());
    words.iter().find(is).map_or(Ok(()), |(word, hint)| {
        let message = format!("`{} {word}` is not supported", name.name());
        Err(Diagnostic::new(value.location(), Code::Unsupported, message).hint(*hint))
    })
}

fn positive(value: Snippet<'_>) -> Option<u64> {
    value.number().filter(|&number| number > 0)
}

/// A word that is text: paths and names.
fn path(value: Snippet<'_>) -> Option<Box<str>> {
    let text = std::str::from_utf8(value.bytes()).ok()?;
    let fits = !text.is_empty() && !text.contains(char::is_control);
    fits.then(|| text.into())
}

fn mime_types(location: Location, words: &mut Words<'_>) -> Result<Setting, Diagnostic> {
    let mut types = Vec::new();
    while let Some(word) = words.next()? {
        // A list in one pair of quotes means the same.
        for part in word.text().split(|byte| byte.is_ascii_whitespace()) {
            let is_type = part.bytes().contains(&b'/') || part.bytes() == b"(null)";
            let Some(text) = path(part).filter(|_| is_type) else {
                let message = format!("expected a media type, found {}", part.shown());
                return Err(Diagnostic::new(part.location(), Code::Value, message));
            };
            types.push(text.to_ascii_lowercase().into());
        }
    }
    if types.is_empty() {
        return Err(missing(location, "`SecResponseBodyMimeType` takes media types"));
    }
    Ok(Setting::ResponseBodyMimeTypes(types))
}

fn unicode_map(location: Location, words: &mut Words<'_>) -> Result<Setting, Diagnostic> {
    let message = "`SecUnicodeMapFile` takes a path and the number of a code page";
    let Some((file, page)) = words.next()?.zip(words.next()?) else {
        return Err(missing(location, message));
    };
    end("SecUnicodeMapFile", words)?;
    let code_page = page.text().number().and_then(|page| u32::try_from(page).ok());
    let code_page = path(file.text()).and(code_page);
    code_page.map(Setting::UnicodeMapFile).ok_or_else(|| {
        let message = format!("{message}, found {}", page.text().shown());
        Diagnostic::new(page.text().location(), Code::Value, message)
    })
}
