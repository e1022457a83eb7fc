//! `/x/models/{id}/parameters`.

use std::sync::Arc;

use macmlx_inference::ScriptedBackend;
use serde_json::{Value, json};

use crate::support::{MODEL, Running};

const PLACE: &str = "/x/models/org%2Fsmall/parameters";

#[tokio::test]
async fn parameters_are_set_unset_and_refused_by_name() {
    let running = Running::new(Arc::new(ScriptedBackend::default()));
    assert_eq!(running.good("GET", PLACE, &Value::Null).await, json!({}));
    let changes =
        json!({"temperature": 0.5, "alias": "tiny", "templateKwargs": {"style": "brief"}});
    assert_eq!(running.good("PATCH", PLACE, &changes).await, changes);
    assert_eq!(running.aliases.target("tiny").as_deref(), Some(MODEL));
    let now = running
        .good(
            "PATCH",
            PLACE,
            &json!({"temperature": null, "maxTokens": 100}),
        )
        .await;
    assert_eq!(running.good("GET", PLACE, &Value::Null).await, now);
    assert_eq!(
        (&now["maxTokens"], now.get("temperature")),
        (&json!(100), None)
    );
    for (changes, param) in [
        (json!({"temperature": 3}), "temperature"),
        (json!({"draftModelID": "small"}), "draftModelID"),
        (json!({"heat": 1}), "heat"),
    ] {
        let (status, code, named) = running.bad("PATCH", PLACE, &changes).await;
        assert_eq!((status, code.as_str()), (400, "invalid_request"));
        assert_eq!(named.as_deref(), Some(param));
    }
    assert_eq!(running.good("GET", PLACE, &Value::Null).await, now);
    for method in ["GET", "PATCH"] {
        let body = if method == "GET" {
            Value::Null
        } else {
            json!({})
        };
        let place = "/x/models/org%2Fgone/parameters";
        let (status, code, _) = running.bad(method, place, &body).await;
        assert_eq!((status, code.as_str()), (404, "model_not_found"));
    }
}
