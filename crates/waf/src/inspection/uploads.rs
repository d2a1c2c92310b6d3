//! Uploaded files, kept in temporary files where rules ask for their paths or contents.
//!
//! What a body brings waits in memory until somebody writes it: [`Uploads::write`] goes to the file
//! system and may block, so whoever runs an inspection takes the uploads out of it and writes them
//! where blocking holds nobody up. The files are removed when the uploads are dropped.

use std::io;
use std::path::PathBuf;

use super::Inspection;
use super::contents::Contents;
use super::values::Values;
use crate::body::spool::{Spool, Spooling};
use crate::program::Program;
use crate::variable::Variable;

/// Bytes that may wait before they should be written.
const PENDING_BYTES: usize = 64 << 10;

/// The files of one request's body.
#[derive(Debug)]
pub struct Uploads {
    spooling: Spooling,
    /// Bytes of each file that `FILES_TMP_CONTENT` shows; `None` if no rule asks for it.
    content_bytes_max: Option<usize>,
    files: Vec<Upload>,
    pending: usize,
}

#[derive(Debug)]
struct Upload {
    /// The name of the form's field.
    name: Vec<u8>,
    spool: Spool,
    /// What is not in the file yet.
    pending: Vec<u8>,
    path: Option<PathBuf>,
    content: Vec<u8>,
}

impl Uploads {
    /// A place for the files of a request; `None` if no rule of the program asks for them.
    pub(super) fn wanted(program: &Program) -> Option<Self> {
        let contents = program.uses(Variable::FilesTmpContent);
        if !contents && !program.uses(Variable::FilesTmpNames) {
            return None;
        }
        let settings = &program.settings;
        let directory = settings.tmp_dir.as_deref().map_or_else(std::env::temp_dir, PathBuf::from);
        let bytes_max = settings.request_body_bytes_max;
        let limit = settings.body.limits.fields_bytes_max;
        Some(Self {
            spooling: Spooling { directory, memory_bytes_max: 0, bytes_max },
            content_bytes_max: contents.then_some(limit),
            files: Vec::new(),
            pending: 0,
        })
    }

    pub(super) fn is_unwritten(&self) -> bool {
        self.files.iter().any(|file| file.path.is_none() || !file.pending.is_empty())
    }

    pub(super) fn begin(&mut self, name: &[u8]) {
        let spool = Spool::new(&self.spooling);
        let (pending, content) = (Vec::new(), Vec::new());
        self.files.push(Upload { name: name.to_vec(), spool, pending, path: None, content });
    }

    pub(super) fn feed(&mut self, bytes: &[u8]) {
        if let Some(file) = self.files.last_mut() {
            file.pending.extend_from_slice(bytes);
            self.pending += bytes.len();
        }
    }

    /// Writes what waits, and sees to it that each file is there. Blocks. An error is one of the file
    /// system.
    pub fn write(&mut self) -> io::Result<()> {
        self.pending = 0;
        for file in &mut self.files {
            let _extent = file.spool.write(&file.pending)?;
            file.pending = Vec::new();
            file.path = Some(file.spool.path()?.to_owned());
            if let Some(bytes_max) = self.content_bytes_max {
                file.content = file.spool.beginning(bytes_max)?.into_owned();
            }
        }
        Ok(())
    }

    pub(super) fn show(&self, contents: &mut Contents, values: &mut Values) {
        for file in &self.files {
            let Some(path) = &file.path else { continue };
            let name = contents.intern(&file.name);
            let path = contents.intern(path.as_os_str().as_encoded_bytes());
            values.push(Variable::FilesTmpNames, name, path);
            if self.content_bytes_max.is_some() {
                let content = contents.intern(&file.content);
                values.push(Variable::FilesTmpContent, name, content);
            }
        }
    }
}

impl Inspection {
    /// Whether uploaded files wait that should be written before more of the body is read.
    pub fn uploads_are_due(&self) -> bool {
        self.uploads.as_ref().is_some_and(|uploads| uploads.pending >= PENDING_BYTES)
    }

    /// The uploaded files, for [`Uploads::write`] or to be dropped where that holds nobody up; `None`
    /// if there are none or no rule asks for them.
    pub fn take_uploads(&mut self) -> Option<Uploads> {
        self.uploads.take_if(|uploads| !uploads.files.is_empty())
    }

    /// Gives the uploaded files back.
    pub fn return_uploads(&mut self, uploads: Uploads) {
        self.uploads = Some(uploads);
    }
}
