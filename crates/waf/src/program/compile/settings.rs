//! Directives that set something.

use super::Compiler;
use crate::body::XmlText;
use crate::inspection::Mode;
use crate::pattern::{Options, Pattern};
use crate::program::settings::Statuses;
use crate::seclang::setting::{CookieFormat, EngineMode, XmlArgs};
use crate::seclang::{Code, Location, Setting};

/// The code page whose best fits are built in, as `t:urlDecodeUni` knows them.
const CODE_PAGE: u32 = 20127;

pub(super) fn mode_of(mode: EngineMode) -> Mode {
    match mode {
        EngineMode::On => Mode::Block,
        EngineMode::Off => Mode::Off,
        EngineMode::DetectionOnly => Mode::Detect,
    }
}

impl Compiler<'_> {
    pub(super) fn set(&mut self, at: &Location, setting: &Setting) {
        let settings = &mut self.settings;
        let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        match setting {
            Setting::ArgumentSeparator(byte) => settings.body.argument_separator = *byte,
            Setting::ArgumentsLimit(count) => settings.body.limits.arguments_max = small(*count),
            Setting::AuditEngine(mode) => settings.audit_engine = *mode,
            Setting::AuditLogFormat(format) => settings.audit_log_format = *format,
            Setting::AuditLogParts(parts) => settings.audit_parts = *parts,
            Setting::AuditLogRelevantStatus(source) => {
                match Pattern::compile(source, &Options::default()) {
                    Ok((pattern, _)) => {
                        settings.audit_relevant_statuses = Statuses::matching(&pattern);
                    }
                    Err(fault) => {
                        let message = format!("this is not a regular expression: {fault}");
                        self.refuse(at, Code::Value, message, fault.hint.map(str::to_owned));
                    }
                }
            }
            Setting::CollectionTimeout(seconds) => settings.collection_timeout_s = *seconds,
            Setting::ParseXmlIntoArgs(args) => {
                settings.body.xml_text = match args {
                    XmlArgs::Off => XmlText::Whole,
                    XmlArgs::On => XmlText::WholeAndArguments,
                    XmlArgs::OnlyArgs => XmlText::Arguments,
                };
            }
            Setting::PcreMatchLimit(steps) => self.pattern_steps_max = small(*steps),
            Setting::RequestBodyAccess(access) => settings.request_body_access = *access,
            Setting::RequestBodyJsonDepthLimit(depth) => {
                settings.body.limits.json_depth_max = small(*depth);
            }
            Setting::RequestBodyLimit(bytes) => settings.request_body_bytes_max = *bytes,
            Setting::RequestBodyLimitAction(action) => settings.request_body_limit_action = *action,
            Setting::RequestBodyNoFilesLimit(bytes) => {
                settings.body.limits.fields_bytes_max =
                    usize::try_from(*bytes).unwrap_or(usize::MAX);
            }
            Setting::ResponseBodyAccess(access) => settings.response_body_access = *access,
            Setting::ResponseBodyLimit(bytes) => settings.response_body_bytes_max = *bytes,
            Setting::ResponseBodyLimitAction(action) => {
                settings.response_body_limit_action = *action;
            }
            Setting::ResponseBodyMimeTypes(types) => {
                settings.response_body_types.extend(types.iter().cloned());
            }
            Setting::ResponseBodyMimeTypesClear => settings.response_body_types.clear(),
            Setting::RuleEngine(mode) => settings.mode = mode_of(*mode),
            Setting::SensorId(id) => settings.sensor_id = id.clone(),
            Setting::TmpDir(path) => settings.tmp_dir = Some(path.clone()),
            Setting::UploadFileLimit(count) => settings.body.limits.files_max = small(*count),
            Setting::WebAppId(id) => settings.web_app_id = id.clone(),
            Setting::GeoLookupDb(path) => self.geo_database(at, path),
            Setting::HttpBlKey(key) => settings.http_bl_key = Some(key.clone()),
            Setting::CookieFormat(CookieFormat::Netscape) | Setting::UnicodeMapFile(CODE_PAGE) => {}
            Setting::CookieFormat(CookieFormat::Version1) => {
                let message = "no browser sends cookies of version 1: they are read as Netscape's";
                self.note(at, message.to_owned());
            }
            Setting::UnicodeMapFile(other) => {
                let message = format!(
                    "the best fits of code page {CODE_PAGE} are used, not those of {other}"
                );
                self.note(at, message);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::program::compile;
    use crate::seclang::{Entry, Memory, parse};

    #[test]
    fn what_is_not_done_as_it_says_is_noted() {
        let check = |directive: &str, expected: Option<&str>| {
            let files = Memory::default();
            let entry = Entry::Text { path: "rules.conf", text: directive.as_bytes() };
            let (document, _) = parse(&files, entry).expect("rules");
            let notes = compile(&document, &files).expect("a program").notes;
            let found = notes.first().map(|note| note.message.as_str());
            let as_expected = match (found, expected) {
                (Some(found), Some(expected)) => found.contains(expected),
                (found, expected) => found == expected,
            };
            assert!(as_expected, "{directive}: {found:?}");
        };
        check("SecCookieFormat 0", None);
        check("SecCookieFormat 1", Some("read as Netscape's"));
        check("SecUnicodeMapFile unicode.mapping 20127", None);
        check("SecUnicodeMapFile unicode.mapping 1250", Some("not those of 1250"));
    }
}
