//! Start, pause, resume, cancel, follow: by people and by other processes.

use macmlx_store::{
    downloads::{Change, CommandError, Downloads, State},
    hub::Error,
};
use macmlx_test_support::hub_double::Behaviour;
use uuid::Uuid;

use crate::place::{MODEL, Place, assert_whole, begin, names, rest, until, weights};

#[tokio::test]
async fn a_paused_download_goes_on_where_it_was() {
    let place = Place::new().await;
    let downloads = place.open();
    let paused = begin(&place, &downloads).await;
    assert_eq!(
        downloads.pause(paused.id).await.unwrap().state,
        State::Paused
    );
    assert!(downloads.resume(paused.id).await.unwrap().error.is_none());
    assert_whole(&rest(&downloads, paused.id).await, &place);
    let slack = 4 * (64 << 10);
    assert!(place.sent_bytes() < weights().len() + slack);
}

#[tokio::test]
async fn a_cancelled_download_leaves_nothing() {
    let place = Place::new().await;
    let downloads = place.open();
    let paused = begin(&place, &downloads).await;
    let mut changes = downloads.subscribe();
    downloads.cancel(paused.id).await.unwrap();
    assert_eq!(changes.try_recv(), Ok(Change::Removed(paused.id)));
    assert_eq!(downloads.list(), []);
    assert_eq!(names(&place.downloads()), [""; 0]);
    // One that runs, too.
    place.double.behave(Behaviour {
        bytes_per_second: Some(100_000),
        ..Behaviour::default()
    });
    let job = downloads.start(MODEL).await.unwrap().job;
    assert_ne!(job.id, paused.id);
    until(&downloads, job.id, |job| job.done_bytes > 50).await;
    downloads.cancel(job.id).await.unwrap();
    assert_eq!(names(&place.downloads()), [""; 0]);
    assert!(!place.models().exists());
}

#[tokio::test]
async fn commands_that_make_no_sense_say_so() {
    let place = Place::new().await;
    let downloads = place.open();
    let nobody = Uuid::nil();
    assert!(matches!(
        downloads.pause(nobody).await,
        Err(CommandError::Unknown(_))
    ));
    assert!(matches!(
        downloads.cancel(nobody).await,
        Err(CommandError::Unknown(_))
    ));
    let job = place.pull(&downloads).await;
    let error = downloads.resume(job.id).await.unwrap_err();
    assert!(error.to_string().contains("done"), "{error}");
    assert!(matches!(
        downloads.start(MODEL).await,
        Err(Error::Exists(_))
    ));
    // The row goes, the model stays.
    downloads.cancel(job.id).await.unwrap();
    assert!(place.models().join(MODEL).join("config.json").exists());
}

#[tokio::test]
async fn a_download_that_is_asked_for_twice_is_one() {
    let place = Place::new().await;
    place.double.behave(Behaviour {
        bytes_per_second: Some(1_000_000),
        ..Behaviour::default()
    });
    let downloads = place.open();
    let first = downloads.start(MODEL).await.unwrap();
    let second = downloads.start(MODEL).await.unwrap();
    assert!(first.is_new && !second.is_new);
    assert_eq!(first.job.id, second.job.id);
    assert!(matches!(
        downloads.start("owner/model@other").await,
        Err(Error::OtherRevision { .. })
    ));
    assert_whole(&rest(&downloads, first.job.id).await, &place);
}

#[tokio::test]
async fn one_process_downloads_at_a_time_and_the_other_can_go_on() {
    let place = Place::new().await;
    place.double.behave(Behaviour {
        bytes_per_second: Some(400_000),
        ..Behaviour::default()
    });
    // Locks are of open files, so two queues of one process are as two processes.
    let (one, other) = (place.open(), place.open());
    let job = one.start(MODEL).await.unwrap().job;
    until(&one, job.id, |job| job.done_bytes > 300_000).await;
    assert!(matches!(other.start(MODEL).await, Err(Error::Busy(_))));
    assert_eq!(other.list(), []);
    one.pause(job.id).await.unwrap();
    place.double.behave(Behaviour::default());
    assert_whole(&place.pull(&other).await, &place);
    assert!(place.sent_bytes() < weights().len() + 4 * (64 << 10));
    // The first one learns of it.
    assert_eq!(one.resume(job.id).await.unwrap().state, State::Done);
}

#[tokio::test]
async fn a_follower_who_leaves_stops_what_nobody_else_wants() {
    let place = Place::new().await;
    place.double.behave(Behaviour {
        bytes_per_second: Some(400_000),
        ..Behaviour::default()
    });
    let downloads = place.open();
    let mut follow = downloads.follow(MODEL).await.unwrap();
    let id = follow.next().await.unwrap().id;
    until(&downloads, id, |job| job.done_bytes > 200_000).await;
    drop(follow);
    assert_eq!(rest(&downloads, id).await.state, State::Paused);

    let follow = downloads.follow(MODEL).await.unwrap();
    downloads.start(MODEL).await.unwrap();
    follow.stop().await;
    assert!(!downloads.job(id).unwrap().state.is_at_rest());

    let mut follow = downloads.follow(MODEL).await.unwrap();
    let mut last = None;
    while let Some(job) = follow.next().await {
        last = Some(job);
    }
    assert_whole(&last.unwrap(), &place);
}

#[tokio::test]
async fn what_failed_at_once_for_one_who_waited_leaves_no_row() {
    let place = Place::new().await;
    let downloads = place.open();
    let mut follow = downloads.follow("owner/unknown").await.unwrap();
    let mut last = None;
    while let Some(job) = follow.next().await {
        last = Some(job);
    }
    assert_eq!(last.unwrap().state, State::Failed);
    until_empty(&downloads).await;
    assert_eq!(names(&place.downloads()), [""; 0]);
    // Who asked for it without waiting finds out here.
    let job = downloads.start("owner/unknown").await.unwrap().job;
    rest(&downloads, job.id).await;
    assert_eq!(downloads.list().len(), 1);
}

/// The row goes right after its last change.
async fn until_empty(downloads: &Downloads) {
    while !downloads.list().is_empty() {
        tokio::task::yield_now().await;
    }
}
