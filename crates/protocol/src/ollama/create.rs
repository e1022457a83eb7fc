//! `POST /api/create`: a model made of a local one.

use macmlx_inference::{Modelfile, NewModel};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::{generate::Generate, messages, options, read_model_name, refuse_if};
use crate::{
    Endpoint, Error,
    json::{self, fields},
    words,
};

/// The body.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ollama::CreateRequest)]
pub struct CreateRequest {
    model: Option<String>,
    /// Its older name.
    name: Option<String>,
    /// The local model that it is made of.
    from: Option<String>,
    system: Option<String>,
    /// A chat template in Jinja.
    template: Option<String>,
    /// Options that requests need not send.
    #[schema(value_type = Option<options::Options>)]
    parameters: Option<Value>,
    /// Turns before those of every conversation.
    #[schema(value_type = Option<Vec<messages::Turn>>)]
    messages: Option<Vec<Value>>,
    /// One text or several.
    license: Option<License>,
    /// Whether the reply is a stream of steps; default: true.
    stream: Option<bool>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ollama::License)]
#[serde(untagged, expecting = "must be a string or an array of strings")]
enum License {
    One(String),
    Many(Vec<String>),
}

/// What a body may not ask for.
const REFUSED: &[(&str, &str)] = &[
    (
        "quantize",
        "weights stay as they are; pull a model with the quantization you want",
    ),
    (
        "quantization",
        "weights stay as they are; pull a model with the quantization you want",
    ),
    (
        "files",
        "models are not made from uploaded files; pull one from Hugging Face or import a GGUF file \
         with `macmlx import`, and name it as `from`",
    ),
    ("adapters", "adapters cannot be put on a model yet"),
    (
        "modelfile",
        "send its parts as fields of their own: `from`, `system`, `parameters` and so on",
    ),
    (
        "path",
        "send the parts of the Modelfile as fields: `from`, `system`, `parameters` and so on",
    ),
    ("remote_host", "models run on this machine"),
    ("renderer", "prompts are written by the chat template alone"),
    (
        "parser",
        "what a model writes is read by what its chat template shows",
    ),
];

/// A model to be made.
#[derive(Debug, PartialEq)]
pub struct Request {
    /// `modelfile.from` is a name as the client wrote it.
    pub model: NewModel,
    pub wants_stream: bool,
}

impl Request {
    pub fn parse(body: &[u8]) -> Result<Self, Error> {
        let body = json::object(body)?;
        for (name, reason) in REFUSED {
            refuse_if(is_asked(&body[*name]), name, reason)?;
        }
        let body: CreateRequest = fields(&body)?;
        let name = read_model_name(body.model, body.name)?;
        let from = body
            .from
            .filter(|from| !from.trim().is_empty())
            .ok_or_else(|| Error::invalid("from", "from is required: it names a local model"))?;
        let template = text(body.template);
        if template.as_deref().is_some_and(is_go) {
            return Err(Error::unsupported(
                "template",
                "it is written in Go's template language, and chat templates are Jinja here; leave \
                 it out to keep that of the model in `from`, or write it in Jinja",
            ));
        }
        let license = match body.license {
            None => None,
            Some(License::One(license)) => text(Some(license)),
            Some(License::Many(licenses)) => text(Some(licenses.join("\n\n"))),
        };
        let modelfile = Modelfile {
            from,
            system: text(body.system),
            messages: messages::conversation(&body.messages.unwrap_or_default())?,
            ..parameters(body.parameters)?
        };
        Ok(Self {
            model: NewModel {
                name,
                modelfile,
                template,
                license,
            },
            wants_stream: body.stream != Some(false),
        })
    }
}

fn is_asked(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    }
}

fn text(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.trim().is_empty())
}

/// Reads options that stand in `parameters` with all that is known of the words of a request.
fn parameters(parameters: Option<Value>) -> Result<Modelfile, Error> {
    const OPTIONS: &str = "options.";
    const PLACE: &str = "parameters.";
    let options = match parameters {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(options)) => options,
        Some(_) => return Err(Error::invalid("parameters", "parameters must be an object")),
    };
    let request = json!({"model": "m", "prompt": "p", "options": options});
    let read = || {
        let words::Body { value, renamed } =
            words::read(Generate::VOCABULARY, request.to_string().as_bytes())?;
        let others = value.as_object().into_iter().flat_map(Map::keys);
        for name in others {
            if !["model", "prompt", "options"].contains(&name.as_str()) {
                let reason = "it is no parameter of a model; send it with each request";
                return renamed.name(Err(Error::unsupported(name.clone(), reason)));
            }
        }
        renamed.name(options::read(Some(&value["options"])))
    };
    let (sampling, stop) = read().map_err(|error| match error {
        Error::Invalid {
            param: Some(param),
            message,
        } => Error::Invalid {
            message: message.replace(OPTIONS, PLACE),
            param: Some(param.replacen(OPTIONS, PLACE, 1)),
        },
        Error::Unsupported { param, reason } => Error::Unsupported {
            param: param.replacen(OPTIONS, PLACE, 1),
            reason,
        },
        error => error,
    })?;
    Ok(Modelfile {
        sampling,
        stop: stop.sequences,
        max_tokens: stop.max_tokens,
        ..Modelfile::default()
    })
}

/// Whether a template has actions that only Go's language has: fields that begin with a dot, and
/// words that Jinja writes between `{%` and `%}`.
fn is_go(template: &str) -> bool {
    template.split("{{").skip(1).any(|action| {
        let action = action.trim_start_matches('-').trim_start();
        let word: String = action
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        let is_statement = matches!(
            &*word,
            "if" | "else" | "end" | "range" | "with" | "define" | "template" | "block"
        );
        action.starts_with(['.', '$']) || (is_statement && !action[word.len()..].starts_with('.'))
    })
}

/// Steps of making a model, as a client that streams sees them.
pub const STEPS: &[&str] = &["reading model metadata", "writing manifest", "success"];

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(body: &Value) -> Result<Request, Error> {
        Request::parse(body.to_string().as_bytes())
    }

    fn blamed(body: &Value) -> String {
        match parsed(body).unwrap_err() {
            Error::Invalid {
                param: Some(param), ..
            }
            | Error::Unsupported { param, .. } => param,
            error => panic!("{error:?}"),
        }
    }

    #[test]
    fn all_parts_are_read() {
        let request = parsed(&json!({
            "model": "mario", "from": "org/small", "system": "You are Mario.",
            "template": "{{ messages[0].content }}",
            "parameters": {"temperature": 0.5, "seed": 7, "stop": ["END"], "num_predict": 9, "num_ctx": 4096},
            "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Wahoo"}],
            "license": ["MIT", "BSD"], "stream": false,
        }))
        .unwrap();
        let model = request.model;
        assert!(!request.wants_stream);
        assert_eq!(
            (&*model.name, &*model.modelfile.from),
            ("mario", "org/small")
        );
        assert_eq!(model.modelfile.system.as_deref(), Some("You are Mario."));
        assert_eq!(model.modelfile.sampling.temperature, Some(0.5));
        assert_eq!(model.modelfile.sampling.seed, Some(7));
        assert_eq!(model.modelfile.stop, ["END"]);
        assert_eq!(model.modelfile.max_tokens, Some(9));
        assert_eq!(model.modelfile.messages.len(), 2);
        assert_eq!(model.license.as_deref(), Some("MIT\n\nBSD"));
        assert_eq!(model.template.as_deref(), Some("{{ messages[0].content }}"));
    }

    #[test]
    fn what_is_empty_asks_for_nothing() {
        let request = parsed(&json!({
            "name": "a", "from": "b", "system": "", "template": "", "parameters": {}, "messages": [],
            "license": "", "files": {}, "adapters": {}, "quantize": "",
        }))
        .unwrap();
        assert!(request.wants_stream);
        let expected = NewModel {
            name: "a".into(),
            modelfile: Modelfile {
                from: "b".into(),
                ..Modelfile::default()
            },
            ..NewModel::default()
        };
        assert_eq!(request.model, expected);
    }

    #[test]
    fn what_cannot_be_had_is_named() {
        let with = |name: &str, value: Value| {
            let mut body = json!({"model": "a", "from": "b"});
            body[name] = value;
            blamed(&body)
        };
        for (name, _) in REFUSED {
            assert_eq!(with(name, json!("x")), *name);
        }
        assert_eq!(with("files", json!({"a.gguf": "sha256:1"})), "files");
        assert_eq!(with("from", json!("")), "from");
        assert_eq!(with("model", json!("")), "model");
        assert_eq!(with("parameters", json!([1])), "parameters");
        for (name, value) in [
            ("temperature", json!("x")),
            ("temprature", json!(1)),
            ("tfs_z", json!(0.5)),
            ("stop", json!([""])),
            ("format", json!("json")),
        ] {
            let parameters = with("parameters", json!({name: value}));
            assert_eq!(parameters, format!("parameters.{name}"));
        }
        assert_eq!(
            with("messages", json!([{"role": "nobody", "content": "x"}])),
            "messages[0].role"
        );
    }

    #[test]
    fn templates_in_go_are_told_from_jinja() {
        for go in [
            "{{ .System }}\nUser: {{ .Prompt }}",
            "{{- if .System }}{{ .System }}{{ end }}",
            "{{- range $i, $_ := .Messages }}x{{- end }}",
            "{{ $last := 1 }}",
        ] {
            assert!(is_go(go), "{go}");
            let body = json!({"model": "a", "from": "b", "template": go});
            assert_eq!(blamed(&body), "template");
        }
        for jinja in [
            "{% for m in messages %}{{ m.content }}{% endfor %}",
            "{{- bos_token }}{{ messages[0]['content'] }}",
            "{{ end_token }}{{ if_ }}{{ block.x }}",
            "plain",
        ] {
            assert!(!is_go(jinja), "{jinja}");
        }
    }
}
