//! Calls as the templates of each family render them.

use serde_json::Value;

/// A call: the tool's name and its arguments.
pub(crate) type Call<'a> = (&'a str, &'a Value);

/// The text of calls in a format, as a model writes it behind its prompt.
pub(crate) fn render(format: &str, calls: &[Call<'_>]) -> String {
    let each = |one: &dyn Fn(usize, &str, &Value) -> String, separator: &str| {
        let calls = calls.iter().enumerate();
        let calls = calls.map(|(index, (name, arguments))| one(index, name, arguments));
        calls.collect::<Vec<String>>().join(separator)
    };
    let object = |name_key: &str, arguments_key: &str| {
        let one = |_, name: &str, arguments: &Value| {
            format!(
                "{{\"{name_key}\": \"{name}\", \"{arguments_key}\": {}}}",
                json(arguments)
            )
        };
        each(&one, ", ")
    };
    let named = || object("name", "arguments");
    match format {
        "hermes" | "generic" => each(
            &|_, name, arguments| {
                let arguments = json(arguments);
                format!(
                    "<tool_call>\n{{\"name\": \"{name}\", \"arguments\": {arguments}}}\n</tool_call>"
                )
            },
            "\n",
        ),
        "llama3_json" => object("name", "parameters").replace("}, {\"name\"", "}; {\"name\""),
        "plain_json" => named().replace("}, {\"name\"", "}; {\"name\""),
        "granite" => format!("<|tool_call|>[{}]", named()),
        "phi4" => format!("<|tool_call|>[{}]<|/tool_call|>", named()),
        "functools" => format!("functools[{}]", named()),
        "nemotron" => format!("<TOOLCALL>[{}]</TOOLCALL>", named()),
        "mistral" => format!(
            "[TOOL_CALLS] [{}]",
            each(
                &|index, name, arguments| format!(
                    "{{\"name\": \"{name}\", \"arguments\": {}, \"id\": \"abcdefgh{index}\"}}",
                    json(arguments)
                ),
                ", "
            )
        ),
        "mistral_args" => each(
            &|_, name, arguments| format!("[TOOL_CALLS]{name}[ARGS]{}", json(arguments)),
            "",
        ),
        "command_r" => format!(
            "Action: ```json\n[\n{}\n]\n```",
            each(
                &|_, name, arguments| format!(
                    "    {{\n        \"tool_name\": \"{name}\",\n        \"parameters\": {}\n    }}",
                    json(arguments)
                ),
                ",\n"
            )
        )
        .replace("]\n```", "]\n```"),
        "command_r7b" => format!(
            "<|START_ACTION|>[\n{}\n]<|END_ACTION|>",
            each(
                &|index, name, arguments| format!(
                    "    {{\"tool_call_id\": \"{index}\", \"tool_name\": \"{name}\", \
                     \"parameters\": {}}}",
                    json(arguments)
                ),
                ",\n"
            )
        ),
        "deepseek_v3" => format!(
            "<｜tool▁calls▁begin｜>{}<｜tool▁calls▁end｜>",
            each(
                &|_, name, arguments| format!(
                    "<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n{}\n```<｜tool▁call▁end｜>",
                    json(arguments)
                ),
                "\n"
            )
        ),
        "deepseek_v31" => format!(
            "<｜tool▁calls▁begin｜>{}<｜tool▁calls▁end｜>",
            each(
                &|_, name, arguments| format!(
                    "<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{}<｜tool▁call▁end｜>",
                    json(arguments)
                ),
                ""
            )
        ),
        "kimi_k2" => format!(
            "<|tool_calls_section_begin|>{}<|tool_calls_section_end|>",
            each(
                &|index, name, arguments| format!(
                    "<|tool_call_begin|>functions.{name}:{index}<|tool_call_argument_begin|>{}\
                     <|tool_call_end|>",
                    json(arguments)
                ),
                ""
            )
        ),
        "functionary_v31" => each(
            &|_, name, arguments| format!("<function={name}>{}</function>", json(arguments)),
            "",
        ),
        "functionary_v32" => each(
            &|_, name, arguments| format!("{name}\n{}", json(arguments)),
            ">>>",
        ),
        "harmony" => each(
            &|_, name, arguments| {
                format!(
                    "<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{}",
                    json(arguments)
                )
            },
            "<|call|>",
        ),
        "qwen3_coder" | "seed_oss" => {
            let (tag, line) = if format == "seed_oss" {
                ("seed:tool_call", "")
            } else {
                ("tool_call", "\n")
            };
            each(
                &|_, name, arguments| {
                    let parameters = members(arguments, |key, value| {
                        let value = bare(value);
                        format!("<parameter={key}>{line}{value}{line}</parameter>\n")
                    });
                    format!("<{tag}>\n<function={name}>\n{parameters}</function>\n</{tag}>")
                },
                "\n",
            )
        }
        "minimax_m2" => format!(
            "<minimax:tool_call>\n{}</minimax:tool_call>",
            each(
                &|_, name, arguments| {
                    let parameters = members(arguments, |key, value| {
                        format!("<parameter name=\"{key}\">{}</parameter>\n", bare(value))
                    });
                    format!("<invoke name=\"{name}\">\n{parameters}</invoke>\n")
                },
                "",
            )
        ),
        "deepseek_v32" | "deepseek_v4" => {
            let block = if format == "deepseek_v4" {
                "tool_calls"
            } else {
                "function_calls"
            };
            let calls = each(
                &|_, name, arguments| {
                    let parameters = members(arguments, |key, value| {
                        format!(
                            "<｜DSML｜parameter name=\"{key}\" string=\"{}\">{}</｜DSML｜parameter>\n",
                            value.is_string(),
                            bare(value)
                        )
                    });
                    format!("<｜DSML｜invoke name=\"{name}\">\n{parameters}</｜DSML｜invoke>\n")
                },
                "",
            );
            format!("\n\n<｜DSML｜{block}>\n{calls}</｜DSML｜{block}>")
        }
        "glm" => each(
            &|_, name, arguments| {
                let parameters = members(arguments, |key, value| {
                    let value = bare(value);
                    format!("<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n")
                });
                format!("<tool_call>{name}\n{parameters}</tool_call>")
            },
            "\n",
        ),
        "longcat" => each(
            &|_, name, arguments| {
                let parameters = members(arguments, |key, value| {
                    let value = bare(value);
                    format!(
                        "<longcat_arg_key>{key}</longcat_arg_key>\n\
                         <longcat_arg_value>{value}</longcat_arg_value>\n"
                    )
                });
                format!("<longcat_tool_call>{name}\n{parameters}</longcat_tool_call>")
            },
            "\n",
        ),
        "lfm2" => format!("<|tool_call_start|>[{}]<|tool_call_end|>", python_calls(calls)),
        "pythonic" => format!("[{}]", python_calls(calls)),
        "gemma4" => each(
            &|_, name, arguments| {
                let arguments = gemma(arguments, "<|\"|>");
                format!("<|tool_call>call:{name}{arguments}<tool_call|>")
            },
            "",
        ),
        "function_gemma" => each(
            &|_, name, arguments| {
                let arguments = gemma(arguments, "<escape>");
                format!("<start_function_call>call:{name}{arguments}<end_function_call>")
            },
            "",
        ),
        other => panic!("no template for {other}"),
    }
}

fn members(arguments: &Value, one: impl Fn(&str, &Value) -> String) -> String {
    let members = arguments.as_object().unwrap().iter();
    members.map(|(key, value)| one(key, value)).collect()
}

/// Text as it stands, all else as JSON.
fn bare(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => json(value),
    }
}

/// JSON with the spaces that Python puts.
fn json(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members = members
                .iter()
                .map(|(key, value)| format!("{}: {}", Value::from(key.as_str()), json(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => {
            format!(
                "[{}]",
                items.iter().map(json).collect::<Vec<_>>().join(", ")
            )
        }
        value => value.to_string(),
    }
}

fn python_calls(calls: &[Call<'_>]) -> String {
    let one = |(name, arguments): &Call<'_>| {
        let arguments = arguments.as_object().unwrap().iter();
        let arguments = arguments.map(|(key, value)| format!("{key}={}", python(value)));
        format!("{name}({})", arguments.collect::<Vec<_>>().join(", "))
    };
    calls.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn python(value: &Value) -> String {
    match value {
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        Value::Null => "None".into(),
        Value::Object(members) => {
            let members = members
                .iter()
                .map(|(key, value)| format!("'{key}': {}", python(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => {
            format!(
                "[{}]",
                items.iter().map(python).collect::<Vec<_>>().join(", ")
            )
        }
        value => value.to_string(),
    }
}

fn gemma(value: &Value, mark: &str) -> String {
    match value {
        Value::String(text) => format!("{mark}{text}{mark}"),
        Value::Object(members) => {
            let mut members: Vec<(&String, &Value)> = members.iter().collect();
            members.sort_by_key(|(key, _)| *key);
            let members = members
                .iter()
                .map(|(key, value)| format!("{key}:{}", gemma(value, mark)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
        Value::Array(items) => {
            let items = items.iter().map(|item| gemma(item, mark));
            format!("[{}]", items.collect::<Vec<_>>().join(","))
        }
        value => value.to_string(),
    }
}
