//! Directives that set something.

use super::Compiler;
use crate::body::XmlText;
use crate::inspection::Mode;
use crate::pattern::{Options, Pattern};
use crate::program::settings::Statuses;
use crate::seclang::setting::{EngineMode, XmlArgs};
use crate::seclang::{Code, Location, Setting};

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
            Setting::AuditLog(path) => settings.audit_log = Some(path.clone()),
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
            Setting::AuditLogStorageDir(path) => settings.audit_log_dir = Some(path.clone()),
            Setting::AuditLogType(kind) => settings.audit_log_type = *kind,
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
            Setting::RequestBodyInMemoryLimit(bytes) => {
                settings.request_body_memory_bytes_max = *bytes;
            }
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
            Setting::UploadDir(path) => settings.upload_dir = Some(path.clone()),
            Setting::UploadFileLimit(count) => settings.body.limits.files_max = small(*count),
            Setting::UploadKeepFiles(keep) => settings.upload_keep_files = *keep,
            Setting::WebAppId(id) => settings.web_app_id = id.clone(),
            Setting::GeoLookupDb(path) => self.geo_database(at, path),
            Setting::HttpBlKey(key) => settings.http_bl_key = Some(key.clone()),
            // What the gate's own configuration decides, or does better by itself.
            Setting::AuditLogDirMode(_)
            | Setting::AuditLogFileMode(_)
            | Setting::CookieFormat(_)
            | Setting::DataDir(_)
            | Setting::ServerSignature(_)
            | Setting::UnicodeMapFile { .. }
            | Setting::UploadFileMode(_) => {
                self.note(
                    at,
                    "the gate's own configuration decides this; the directive has no effect"
                        .to_owned(),
                );
            }
        }
    }
}
