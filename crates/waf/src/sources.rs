//! Which rules make up a rule set: the engine's own beginning, the Core Rule Set, an operator's files.

use std::fmt::Write as _;

/// The rules that every rule set begins with.
const ENGINE: &str = include_str!("../rules/engine.conf");
/// The rules that are there before any are installed.
const BUILTIN: &str = include_str!("../rules/builtin.conf");

/// What a rule set is made of, in this order: the engine's own beginning, `before`, the Core Rule Set
/// or else the built-in rules, `after`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Sources {
    /// The Core Rule Set.
    pub core: Option<CoreRuleSet>,
    /// Whether the built-in rules are used; they step aside for the Core Rule Set.
    pub builtin: Builtin,
    /// Rule files before it, as `Include` takes them: exclusions that have to come first.
    pub before: Vec<String>,
    /// Rule files after it.
    pub after: Vec<String>,
}

/// Whether the built-in rules are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Builtin {
    /// Unless there is a Core Rule Set.
    #[default]
    WithoutCore,
    /// Never.
    Off,
}

/// The Core Rule Set as it is installed, version 3.3 or 4.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreRuleSet {
    /// The files with its rules, as `Include` takes them (`/usr/share/modsecurity-crs/rules/*.conf`).
    pub rules: String,
    /// The folder with its plugins, if plugins are used.
    pub plugins: Option<String>,
    /// What its setup file would say: variables of `TX` and their values, names without `tx.`.
    pub variables: Vec<(String, String)>,
}

impl Sources {
    /// The rule set's text, to be parsed under any path: everything it names is absolute if these
    /// sources are.
    pub fn text(&self) -> String {
        let mut text = ENGINE.to_owned();
        let include = |text: &mut String, path: &str| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "Include \"{path}\"");
        };
        for path in &self.before {
            include(&mut text, path);
        }
        match (&self.core, self.builtin) {
            (Some(core), _) => {
                text.push_str("SecDefaultAction \"phase:1,log,auditlog,pass\"\n");
                text.push_str("SecDefaultAction \"phase:2,log,auditlog,pass\"\n");
                // The setup file's version stands for having been configured at all.
                text.push_str(
                    "SecAction \"id:200900,phase:1,pass,nolog,setvar:tx.crs_setup_version=4000",
                );
                for (name, value) in &core.variables {
                    let value = value.replace('\'', "\\'");
                    let _ = write!(text, ",setvar:'tx.{name}={value}'");
                }
                text.push_str("\"\n");
                if let Some(plugins) = &core.plugins {
                    include(&mut text, &format!("{plugins}/*-config.conf"));
                    include(&mut text, &format!("{plugins}/*-before.conf"));
                }
                include(&mut text, &core.rules);
                if let Some(plugins) = &core.plugins {
                    include(&mut text, &format!("{plugins}/*-after.conf"));
                }
            }
            (None, Builtin::WithoutCore) => text.push_str(BUILTIN),
            (None, Builtin::Off) => {}
        }
        for path in &self.after {
            include(&mut text, path);
        }
        text
    }
}
