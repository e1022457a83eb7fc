//! `/x/events`.

use futures::StreamExt;
use macmlx_control::events::Event;
use serde_json::Value;

use crate::support::{Running, TOKEN, request};

#[tokio::test]
async fn events_are_told_as_they_happen() {
    let running = Running::new();
    let headers = [("x-control-token", TOKEN)];
    let response = running
        .send(request("GET", "/x/events", &headers, ""))
        .await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut body = response.into_body().into_data_stream();
    running.events.publish(Event::ModelsChanged);
    let frame = body.next().await.unwrap().unwrap();
    let data = std::str::from_utf8(&frame).unwrap().trim();
    let event: Value = serde_json::from_str(data.strip_prefix("data:").unwrap()).unwrap();
    assert_eq!(event["type"], "models_changed");
}
