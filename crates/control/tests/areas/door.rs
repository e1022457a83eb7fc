//! `/x/door`.

use axum::http::StatusCode;
use macmlx_control::door::ClosedDoor;

use crate::support::Running;

#[tokio::test]
async fn the_door_opens_and_closes() {
    let running = Running::new();
    let (status, open) = running.call("POST", "/x/door/open", "{}").await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(open["state"], "open");
    assert_eq!(running.get("/x/door").await, open);
    let (_, closed) = running.call("POST", "/x/door/close", "{}").await;
    assert_eq!(closed["state"], "closed");
    assert!(closed["url"].is_null());
}

#[tokio::test]
async fn a_door_that_stays_closed_says_why() {
    let running = Running::new();
    for (refusal, code) in [
        (ClosedDoor::PortTaken("taken".into()), "port_taken"),
        (ClosedDoor::NeedsApiKey("no key".into()), "api_key_required"),
        (ClosedDoor::Other("else".into()), "door_failed"),
    ] {
        *running.door.refusal.lock() = Some(refusal);
        let (status, body) = running.call("POST", "/x/door/open", "{}").await;
        assert_eq!(status, StatusCode::CONFLICT);
        assert_eq!(body["error"]["code"], code);
    }
}
