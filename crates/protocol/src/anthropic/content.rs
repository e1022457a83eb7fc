//! Content blocks and what they say to the model: text, images, documents, search results.
//!
//! A string and a list with one text block are the same content, and text blocks in a row are one
//! text: where clients put `cache_control` must not show in the prompt.

use macmlx_inference::{ContentPart, Image, ImageSource};
use serde_json::Value;

use crate::{Error, image, thought};

/// First words of a block that Claude Code puts before its system prompt. It differs from session
/// to session and would keep prompts from sharing a prefix.
const BILLING: &str = "x-anthropic-billing-header:";

/// One block where it stands in the request.
#[derive(Debug)]
pub(super) struct Block<'a> {
    /// Its `type`.
    pub(super) kind: &'a str,
    /// An object, or a string that stands for a text block.
    pub(super) value: &'a Value,
    pub(super) path: String,
}

/// The blocks of a string, a list or a single block.
pub(super) fn blocks<'a>(content: Option<&'a Value>, path: &str) -> Result<Vec<Block<'a>>, Error> {
    match content {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(value @ (Value::String(_) | Value::Object(_))) => {
            Ok(vec![Block::new(value, path.to_owned())?])
        }
        Some(Value::Array(items)) => items
            .iter()
            .enumerate()
            .map(|(index, item)| Block::new(item, format!("{path}[{index}]")))
            .collect(),
        Some(_) => Err(wrong(
            path,
            "must be a string or an array of content blocks",
        )),
    }
}

impl<'a> Block<'a> {
    fn new(value: &'a Value, path: String) -> Result<Self, Error> {
        let kind = match value {
            Value::String(_) => "text",
            Value::Object(fields) => match fields.get("type") {
                Some(Value::String(kind)) => kind,
                _ => return Err(wrong(&format!("{path}.type"), "must be a string")),
            },
            _ => return Err(wrong(&path, "must be a content block")),
        };
        Ok(Self { kind, value, path })
    }

    /// A field that is null, absent or a string.
    pub(super) fn text_or_null(&self, field: &str) -> Result<Option<&'a str>, Error> {
        match self.value.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(wrong(&self.at(field), "must be a string")),
        }
    }

    /// A field that must be a string.
    pub(super) fn text(&self, field: &str) -> Result<&'a str, Error> {
        self.text_or_null(field)?
            .ok_or_else(|| wrong(&self.at(field), "is missing"))
    }

    /// A field that must be a string with something in it.
    pub(super) fn name(&self, field: &str) -> Result<&'a str, Error> {
        match self.text(field)? {
            "" => Err(wrong(&self.at(field), "is empty")),
            name => Ok(name),
        }
    }

    pub(super) fn at(&self, field: &str) -> String {
        format!("{}.{field}", self.path)
    }

    /// The words of a text block.
    fn words(&self) -> Result<&'a str, Error> {
        match self.value {
            Value::String(text) => Ok(text),
            _ => self.text("text"),
        }
    }

    /// Answers here do not point at the places they rest on.
    fn check_citations(&self) -> Result<(), Error> {
        if self.value["citations"]["enabled"] == true {
            return Err(Error::unsupported(
                self.at("citations.enabled"),
                "answers do not cite",
            ));
        }
        Ok(())
    }
}

/// What a turn says, built block by block.
#[derive(Debug)]
pub(super) struct Content {
    parts: Vec<ContentPart>,
    separator: &'static str,
    has_billing: bool,
}

impl Content {
    /// Makes content of blocks that were written one by one: they stand on lines of their own.
    pub(super) fn lines() -> Self {
        Self {
            parts: Vec::new(),
            separator: "\n",
            has_billing: false,
        }
    }

    /// Does the same as [`Content::lines`], for the client's own instructions.
    pub(super) fn instructions() -> Self {
        Self {
            has_billing: true,
            ..Self::lines()
        }
    }

    /// Blocks into which an answer was cut: joined they are what the model wrote.
    pub(super) fn pieces() -> Self {
        Self {
            separator: "",
            ..Self::lines()
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    pub(super) fn into_parts(self) -> Vec<ContentPart> {
        self.parts
    }

    pub(super) fn push_text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        match self.parts.last_mut() {
            Some(ContentPart::Text(before)) => {
                if !before.ends_with('\n') {
                    before.push_str(self.separator);
                }
                before.push_str(text);
            }
            _ => self.parts.push(ContentPart::Text(text.to_owned())),
        }
    }

    /// Adds what a block says. Of blocks of unknown types it is their text, if they have any:
    /// clients replay whatever Anthropic's servers once sent them.
    pub(super) fn push(&mut self, block: &Block<'_>) -> Result<(), Error> {
        match block.kind {
            "text" if self.has_billing => self.push_text(without_billing(block.words()?)),
            "text" => self.push_text(block.words()?),
            "image" => self.push_image(block)?,
            "image_url" | "input_image" => match image::from_part(block.value, &block.path) {
                Some(image) => self.parts.push(image),
                None => {
                    return Err(wrong(
                        &block.at("image_url"),
                        "must be the address of an image",
                    ));
                }
            },
            "input_audio" | "audio" | "audio_url" => {
                return Err(Error::unsupported(
                    &block.path,
                    "the model does not hear audio",
                ));
            }
            "file" | "input_file" | "video" | "video_url" => {
                return Err(Error::unsupported(
                    &block.path,
                    "only text and images are read",
                ));
            }
            "document" => self.push_document(block)?,
            "search_result" => self.push_search_result(block)?,
            // The conversation so far, in the words of an earlier answer.
            "compaction" => self.push_text(block.text_or_null("content")?.unwrap_or_default()),
            "refusal" => self.push_text(block.text_or_null("refusal")?.unwrap_or_default()),
            // Of other types the text is kept.
            _ => {
                let text = block.value.get("text");
                self.push_text(&thought::text(text, &block.at("text"))?);
            }
        }
        Ok(())
    }

    fn push_image(&mut self, block: &Block<'_>) -> Result<(), Error> {
        let source = source(block)?;
        let source = match source.kind {
            "base64" => ImageSource::Inline {
                media_type: source.text("media_type")?.to_owned(),
                data: source.text("data")?.to_owned(),
            },
            "url" => ImageSource::Url(source.text("url")?.to_owned()),
            "file" => {
                return Err(Error::unsupported(
                    source.path,
                    "no files are kept here; send the image as base64",
                ));
            }
            other => return Err(unknown_source(&source, other)),
        };
        self.parts.push(ContentPart::Image(Image {
            source,
            param: block.path.clone(),
        }));
        Ok(())
    }

    fn push_document(&mut self, block: &Block<'_>) -> Result<(), Error> {
        block.check_citations()?;
        let source = source(block)?;
        let title = block.text_or_null("title")?;
        let context = block.text_or_null("context")?.unwrap_or_default();
        match source.kind {
            "text" => {
                self.begin("document", &[("title", title)]);
                self.push_text(context);
                self.push_text(source.text("data")?);
            }
            "content" => {
                let path = source.at("content");
                self.begin("document", &[("title", title)]);
                self.push_text(context);
                for block in blocks(source.value.get("content"), &path)? {
                    self.push(&block)?;
                }
            }
            "base64" | "url" | "file" => {
                return Err(Error::unsupported(
                    source.path,
                    "only documents of type `text` or `content` are read; send the text of others",
                ));
            }
            other => return Err(unknown_source(&source, other)),
        }
        self.push_text("</document>");
        Ok(())
    }

    fn push_search_result(&mut self, block: &Block<'_>) -> Result<(), Error> {
        block.check_citations()?;
        let attributes = [
            ("title", block.text_or_null("title")?),
            ("source", block.text_or_null("source")?),
        ];
        self.begin("search_result", &attributes);
        for inner in blocks(block.value.get("content"), &block.at("content"))? {
            self.push(&inner)?;
        }
        self.push_text("</search_result>");
        Ok(())
    }

    fn begin(&mut self, tag: &str, attributes: &[(&str, Option<&str>)]) {
        let mut line = format!("<{tag}");
        for (name, value) in attributes {
            if let Some(value) = value {
                line.extend([" ", name, "=\"", value, "\""]);
            }
        }
        line.push('>');
        self.push_text(&line);
    }
}

/// The `source` of an image or document, which has a type of its own.
fn source<'a>(block: &Block<'a>) -> Result<Block<'a>, Error> {
    let path = block.at("source");
    match block.value.get("source") {
        Some(source @ Value::Object(_)) => Block::new(source, path),
        _ => Err(wrong(&path, "must be an object")),
    }
}

fn unknown_source(source: &Block<'_>, kind: &str) -> Error {
    wrong(
        &source.at("type"),
        &format!("is no kind of source that is known here: `{kind}`"),
    )
}

/// Text without the line of Claude Code that names its version.
fn without_billing(text: &str) -> &str {
    if text.starts_with(BILLING) {
        text.split_once('\n')
            .map_or("", |(_, rest)| rest.trim_start_matches('\n'))
    } else {
        text
    }
}

pub(super) fn wrong(param: &str, what: &str) -> Error {
    Error::invalid(param, format!("{param} {what}"))
}
