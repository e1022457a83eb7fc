//! Every route that names a model: what it makes of no name, an empty one and one that nothing has.

use std::sync::Arc;

use macmlx_inference::ScriptedBackend;
use serde_json::{Value, json};

use crate::{
    errors::{Answer, Call, calls, plain, request, shape},
    names::{FOREIGN, server},
    support::{Served, start_with_models},
};

/// The fields that name a model that is there, or is to be.
const NAMING: [&str; 3] = ["model", "source", "instance_id"];

/// What a route does for a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// The model's tokens or vectors are the answer: another model may answer.
    Answers,
    /// The same, also where none is named.
    AnswersUnnamed,
    /// It tells of the model, loads or unloads it, and knows no other.
    Asks,
    /// It puts a model's files where there are none yet, or takes them away.
    Files,
}

fn used(path: &str) -> Use {
    let path = path.strip_prefix("/v1").unwrap_or(path);
    match path {
        "/infill" | "/apply-template" => Use::AnswersUnnamed,
        "/api/show" | "/api/v1/models/load" | "/api/v1/models/unload" => Use::Asks,
        "/api/pull" | "/api/delete" | "/api/copy" | "/api/create" | "/api/v1/models/download" => {
            Use::Files
        }
        _ => Use::Answers,
    }
}

/// The calls whose body names a model, with the field that does.
async fn naming(server: &Served) -> Vec<(Call, &'static str)> {
    let all = calls(server).await;
    let naming = all.into_iter().filter_map(|call| {
        let field = NAMING
            .into_iter()
            .find(|name| call.fields.iter().any(|field| field == name))?;
        Some((call, field))
    });
    let naming: Vec<_> = naming.collect();
    assert!(naming.len() > 40, "{}", naming.len());
    naming
}

async fn ask(server: &Served, call: &Call, body: &Value) -> Answer {
    let context = format!("{} {} {body}", call.method, call.path);
    Answer::of(request(server, call).json(body), context).await
}

#[tokio::test]
async fn an_empty_name_is_refused_and_a_missing_one_where_the_dialect_wants_it() {
    let server = server(100).await;
    for (call, field) in naming(&server).await {
        let shape = shape(&call.path);
        let mut body = plain(&call.path);
        for empty in [json!(""), json!(" "), json!("\t\n"), json!(7), json!(["a"])] {
            body[field] = empty;
            let told = ask(&server, &call, &body).await.expect(400, shape);
            assert!(told.contains(field), "{} {told}", call.path);
        }
        body[field] = Value::Null;
        let null = ask(&server, &call, &body).await;
        body.as_object_mut().unwrap().remove(field);
        let missing = ask(&server, &call, &body).await;
        for unnamed in [null, missing] {
            if used(&call.path) == Use::AnswersUnnamed {
                unnamed.expect_success();
            } else {
                let told = unnamed.expect(400, shape);
                assert!(told.contains(field), "{} {told}", call.path);
            }
        }
    }
}

#[tokio::test]
async fn a_name_that_nothing_has_is_answered_and_not_told_about() {
    let server = server(400).await;
    for (call, field) in naming(&server).await {
        for name in FOREIGN {
            let mut body = plain(&call.path);
            body[field] = name.into();
            let answer = ask(&server, &call, &body).await;
            match used(&call.path) {
                Use::Answers | Use::AnswersUnnamed => answer.expect_success(),
                Use::Asks => {
                    answer.expect(404, shape(&call.path));
                }
                Use::Files => {}
            }
        }
    }
}

#[tokio::test]
async fn a_name_that_no_model_stands_in_for_is_not_found() {
    let server = start_with_models(Arc::new(ScriptedBackend::default()), Vec::new()).await;
    for (call, field) in naming(&server).await {
        if used(&call.path) == Use::Files {
            continue;
        }
        let mut body = plain(&call.path);
        body[field] = "gpt-4o".into();
        let told = ask(&server, &call, &body).await;
        let told = told.expect(404, shape(&call.path));
        assert!(told.contains("gpt-4o"), "{} {told}", call.path);
    }
}
