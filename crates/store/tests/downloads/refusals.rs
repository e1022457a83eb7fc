//! What each refusal of the hub tells, and that it can be put right.

use macmlx_store::{
    downloads::{Downloads, Failure, Places, State},
    hub::{Access, Code, Connection},
};
use macmlx_test_support::hub_double::{Behaviour, File, Refusal, Repository};

use crate::place::{MODEL, Place, assert_whole, options, repository};

async fn refused(place: &Place, token: Option<&str>, refusal: Refusal) -> Failure {
    *place.token.lock() = token.map(Into::into);
    place.double.behave(Behaviour {
        refuse: Some(refusal),
        retry_after_seconds: Some(9),
        ..Behaviour::default()
    });
    let job = place.pull(&place.open()).await;
    assert_eq!(job.state, State::Failed);
    job.error.unwrap()
}

#[tokio::test]
async fn refusals_say_what_to_do() {
    let place = Place::new().await;
    for (refusal, token, code, part) in [
        (Refusal::Gated, None, Code::Gated, "accept its licence"),
        (
            Refusal::Gated,
            Some("hf_x"),
            Code::Gated,
            "accept its licence",
        ),
        (
            Refusal::Unauthorized,
            None,
            Code::Unauthorized,
            "set a Hugging Face token",
        ),
        (
            Refusal::Unauthorized,
            Some("hf_x"),
            Code::Unauthorized,
            "make a new one",
        ),
        (
            Refusal::NotFound,
            Some("hf_x"),
            Code::NotFound,
            "not on the hub",
        ),
        (
            Refusal::RateLimited,
            None,
            Code::RateLimited,
            "try again in 9 s",
        ),
        (Refusal::Unavailable, None, Code::Offline, "503"),
    ] {
        let failure = refused(&place, token, refusal).await;
        assert_eq!(failure.code, code, "{refusal:?}");
        assert!(
            failure.message.contains(part),
            "{refusal:?}: {}",
            failure.message
        );
        assert!(!failure.message.contains("hf_x"));
    }
}

#[tokio::test]
async fn a_token_that_is_set_counts_for_the_next_attempt() {
    let mut repository = repository();
    repository.is_gated = true;
    let place = Place::with([repository]).await;
    place.double.behave(Behaviour {
        tokens: vec!["hf_good".into()],
        ..Behaviour::default()
    });
    let downloads = place.open();
    let job = place.pull(&downloads).await;
    assert_eq!(job.error.unwrap().code, Code::Gated);
    *place.token.lock() = Some("hf_good".into());
    downloads.resume(job.id).await.unwrap();
    assert_whole(&crate::place::rest(&downloads, job.id).await, &place);
    assert_eq!(
        place.double.authorization().as_deref(),
        Some("Bearer hf_good")
    );
    // The content network is somebody else.
    let requests = place.double.requests();
    let elsewhere = || requests.iter().filter(|request| request.is_elsewhere);
    assert!(elsewhere().count() > 0 && elsewhere().all(|request| !request.has_token));
}

#[tokio::test]
async fn revisions_that_are_not_there_are_named() {
    let place = Place::new().await;
    let downloads = place.open();
    let job = downloads.start("owner/model@v9").await.unwrap().job;
    let failure = crate::place::rest(&downloads, job.id).await.error.unwrap();
    assert_eq!(failure.code, Code::NotFound);
    assert!(failure.message.contains("`v9`"), "{}", failure.message);
    // Without it, the newest.
    assert!(downloads.start("owner/model@..").await.is_err());
}

#[tokio::test]
async fn a_gguf_repository_points_to_the_import() {
    let place = Place::with([Repository::new(
        MODEL,
        [
            ("README.md", File::small("#".as_bytes())),
            ("model-Q4_0.gguf", File::large(vec![0; 10])),
        ],
    )])
    .await;
    let failure = place.pull(&place.open()).await.error.unwrap();
    assert_eq!(failure.code, Code::NoWeights);
    assert!(
        failure.message.contains("macmlx import"),
        "{}",
        failure.message
    );
}

#[tokio::test]
async fn an_unreachable_hub_is_named() {
    let root = tempfile::tempdir().unwrap();
    let places = Places {
        models: root.path().join("models"),
        downloads: root.path().join("downloads"),
    };
    let connection = Connection::new(|| Access {
        endpoint: "http://127.0.0.1:1".into(),
        token: None,
    });
    let downloads = Downloads::open(places, connection.into(), options());
    let job = downloads.start(MODEL).await.unwrap().job;
    let failure = crate::place::rest(&downloads, job.id).await.error.unwrap();
    assert_eq!(failure.code, Code::Offline);
    assert!(
        failure.message.contains("http://127.0.0.1:1"),
        "{}",
        failure.message
    );
}
