//! Formats by what chat templates show, for families whose templates no package carries: the line
//! of a template that decides, among others that must not.

use macmlx_output::formats::{self, Format, Kind};

fn formats(template: &str) -> (Option<&'static str>, Option<&'static str>) {
    let name = |kind| formats::detect(template, kind).map(Format::name);
    (name(Kind::Reasoning), name(Kind::ToolCalls))
}

#[test]
fn lines_that_decide() {
    let cases = [
        (
            "{{ '[TOOL_CALLS]' + name + '[ARGS]' + arguments }}",
            (None, Some("mistral_args")),
        ),
        (
            "{{ '[TOOL_CALLS]' + name + '[CALL_ID]' + id + '[ARGS]' + arguments }}{{ '[THINK]' }}",
            (Some("magistral"), Some("mistral_args")),
        ),
        ("{{ '[TOOL_CALLS] [' }}", (None, Some("mistral"))),
        (
            "{{ '<function=' + name + '>' + arguments + '</function>' }}{{ '<|python_tag|>' }}",
            (None, Some("functionary_v31")),
        ),
        (
            "{{ '>>>all\n' }}{{ '>>>' + name }}",
            (None, Some("functionary_v32")),
        ),
        (
            "[func_name1(params_name1=params_value1, params_name2=params_value2...)]",
            (None, Some("pythonic")),
        ),
        (
            "{{ '<start_function_call>call:' + name + '{' }}{{ '<escape>' }}",
            (None, Some("function_gemma")),
        ),
        (
            "<|START_OF_TURN_TOKEN|> Write 'Action:' followed by a json-formatted list",
            (None, Some("command_r")),
        ),
        (
            "<longcat_tool_call>{{ name }}<longcat_arg_key>{{ '<longcat_think>' }}",
            (Some("longcat"), Some("longcat")),
        ),
        (
            "{% set dsml_token = '｜DSML｜' %}<{{ dsml_token }}function_calls>{{ '<think>' }}",
            (Some("think"), Some("deepseek_v32")),
        ),
        (
            "{% set dsml_token = '｜DSML｜' %}<{{ dsml_token }}tool_calls>{{ '</think>' }}",
            (Some("think"), Some("deepseek_v4")),
        ),
        ("{{ '<TOOLCALL>[' }}", (None, Some("nemotron"))),
        ("{{ '◁think▷' }}", (Some("kimi_vl"), None)),
        ("{{ '<|inner_prefix|>' }}", (Some("apertus"), None)),
        (
            "{% set think_begin_token = '<mm:think>' %}<tool_call><invoke name=",
            (Some("minimax_m3"), None),
        ),
        (
            "<think>{{ content.split('<answer>') }}",
            (Some("hunyuan"), None),
        ),
        // Templates of others hold these as words of their own.
        ("<response>{{ '</think>' }}", (Some("think"), None)),
        ("Answer: Action", (None, None)),
    ];
    for (template, expected) in cases {
        assert_eq!(formats(template), expected, "{template}");
    }
}
