//! Templates that would take the machine's time or memory, or the stack: a model's folder is input.

use std::fs;

use macmlx_chat::{ChatModel, Rendered};
use macmlx_inference::{ChatPrompt, ContentPart, InferenceError, Message, ReasoningOptions, Role};

use crate::tokenizers;

fn render(template: &str) -> Result<Rendered, InferenceError> {
    let folder = tokenizers::byte_level();
    fs::write(folder.path().join("chat_template.jinja"), template).unwrap();
    let model = ChatModel::load(folder.path(), "org/model")?;
    let message = Message {
        role: Role::User,
        content: vec![ContentPart::Text("hi".into())],
        reasoning: None,
        tool_calls: Vec::new(),
        tool_call_id: None,
        name: None,
    };
    let prompt = ChatPrompt {
        messages: vec![message],
        ..ChatPrompt::default()
    };
    model.render(&prompt, &ReasoningOptions::default())
}

const DOUBLED_LIST: &str = "{% set ns = namespace(a=[1]) %}{% for i in range(40) %}\
                            {% set ns.a = [ns.a, ns.a] %}{% endfor %}";

#[test]
fn what_would_take_too_much_is_refused_in_words() {
    let doubled_text = "{% set ns = namespace(s='x') %}{% for i in range(40) %}\
                        {% set ns.s = ns.s ~ ns.s %}{% endfor %}{{ ns.s }}";
    let lists = [
        "",
        "|string",
        "|tojson",
        "|tojson(sort_keys=true)",
        "|tojson(indent=4)",
    ]
    .map(|filter| format!("{DOUBLED_LIST}{{{{ ns.a{filter} }}}}"));
    let templates = [
        "{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}x",
        doubled_text,
        "{{ 'x' * 2000000000 }}",
        "{{ 'a\nb'|indent(2000000000) }}",
        "{{ messages|tojson(indent=2000000000) }}",
        "{{ 'a'.ljust(2000000000) }}",
        "{{ 'a'.rjust(2000000000, 'b') }}",
        "{{ 'a'.zfill(2000000000) }}",
        "{{ range(9999)|join('x' * 1000000) }}",
        "{{ ('a' * 1000000).replace('a', 'b' * 1000000) }}",
        "{% macro f(n) %}{{ f(n + 1) }}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}",
        "{{ strftime_now('%Y' * 1000000000) }}",
        "{% set ns = namespace(a=[]) %}{% for i in range(9999) %}{% for j in range(99) %}\
         {% set ns.a = [ns.a] %}{% endfor %}{% endfor %}{{ ns.a }}",
        "{% set ns = namespace(a=[]) %}{% for i in range(5000) %}{% set ns.a = [ns.a] %}\
         {% endfor %}{{ ns.a }}",
        "{% set ns = namespace(a=[]) %}{% for i in range(5000) %}{% set ns.a = [ns.a] %}\
         {% endfor %}{{ ns.a|tojson }}",
    ];
    for template in templates
        .into_iter()
        .chain(lists.iter().map(String::as_str))
    {
        let error = render(template).unwrap_err().to_string();
        assert!(!error.is_empty(), "{template}");
    }
}

#[test]
fn what_is_nested_or_long_beyond_reason_takes_no_stack() {
    const TIMES: usize = 100_000;
    for (before, repeated, after) in [
        ("{{ ", "(", ""),
        ("{{ ", "[", ""),
        ("{{ ", "{'a':", ""),
        ("{{ a", " ~ a", " }}"),
        ("{{ a", " + a", " }}"),
        ("{{ a", " and a", " }}"),
        ("{{ a", ".b", " }}"),
        ("{{ a", "[0]", " }}"),
        ("{{ a", "|trim", " }}"),
        ("{{ a", "()", " }}"),
        ("{{ ", "not ", "a }}"),
        ("{{ ", "-", "1 }}"),
        ("{{ ", "1 if a else ", "2 }}"),
        ("{{ a", " is none", " }}"),
        ("{{ a", " in a", " }}"),
        ("{{ a", " ** a", " }}"),
        ("", "{% if a %}", ""),
        ("{% if a %}", "{% elif a %}", "{% endif %}"),
        ("", "{% for a in a %}", ""),
        ("", "{% macro a() %}", ""),
        ("", "{% set a %}", ""),
        ("", "{% set a = a %}", ""),
        ("", "{{ a }}", ""),
    ] {
        let template = format!("{before}{}{after}", repeated.repeat(TIMES));
        // Refused or not: the process is still there.
        let _ = render(&template);
    }
}
