//! The JSON schema of the configuration (draft 2020-12), for editors that complete and check TOML.

use std::fmt::Write as _;

use serde_json::{Map, Value as Json, json};

use super::options::{self, Absence, Declared, Section, Shape, to_json};

/// The schema as text: `docs/tidegate.schema.json`.
pub(crate) fn text() -> String {
    let mut schema = section(&options::root::SECTION);
    if let Json::Object(schema) = &mut schema {
        schema.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
        schema.insert("title".into(), json!("Tidegate"));
        let definitions: Map<String, Json> = options::table()
            .into_iter()
            .filter(|section| section.shape != Shape::Root)
            .map(|below| (name(below), section(below)))
            .collect();
        schema.insert("$defs".into(), Json::Object(definitions));
    }
    format!("{schema:#}\n")
}

fn name(section: &Section) -> String {
    section.path.replace(['[', ']'], "").replace(".NAME", "")
}

/// The object of one section, without those below it.
fn section(section: &'static Section) -> Json {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for option in section.options() {
        let own = section.own.iter().any(|own| own.key() == option.key());
        if own && option.absence() == Absence::Mistake {
            required.push(option.key());
        }
        properties.insert(option.key().into(), property(option));
    }
    for below in section.sections {
        properties.insert(below.key.into(), reference(below));
    }
    let mut object = json!({
        "type": "object",
        "description": section.doc.trim(),
        "properties": properties,
        "additionalProperties": false,
    });
    if let (Json::Object(object), false) = (&mut object, required.is_empty()) {
        object.insert("required".into(), json!(required));
    }
    object
}

fn property(option: &dyn Declared) -> Json {
    let mut schema = option.schema();
    if let Json::Object(schema) = &mut schema {
        let mut doc = option.doc().to_owned();
        for (name, meaning) in option.choices().iter().filter(|(_, doc)| !doc.is_empty()) {
            let _ = write!(doc, "\n- {name}: {meaning}");
        }
        if !option.danger().is_empty() {
            let _ = write!(doc, "\nDanger: {}", option.danger());
        }
        schema.insert("description".into(), json!(doc));
        if let Absence::Default(default) = option.absence() {
            schema.insert("default".into(), to_json(default));
        }
        schema.insert("examples".into(), json!([to_json(option.example())]));
    }
    schema
}

/// How a section stands in the one above it.
fn reference(section: &Section) -> Json {
    let target = json!({ "$ref": format!("#/$defs/{}", name(section)) });
    let item = match section.shorthand {
        Some(_) => json!({ "anyOf": [{ "type": "string" }, target] }),
        None => target,
    };
    match section.shape {
        Shape::Root | Shape::One | Shape::Inline => item,
        Shape::Many => json!({ "type": "array", "items": item }),
        Shape::InlineMany => json!({ "anyOf": [item, { "type": "array", "items": item }] }),
        Shape::Named => json!({ "type": "object", "additionalProperties": item }),
    }
}
