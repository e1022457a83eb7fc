//! Searches, cards and lists of files from a hub double.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use macmlx_store::hub::{Error, Hub, Reference, Search, Sort};
use macmlx_test_support::hub_double::{Behaviour, Commit, File, HubDouble, Refusal, Repository};

fn repository(id: &str, downloads: u64) -> Repository {
    let mut repository = Repository::new(
        id,
        [
            (
                "config.json",
                File::small(
                    r#"{"model_type": "llama", "quantization": {"bits": 4, "group_size": 64}}"#
                        .as_bytes(),
                ),
            ),
            (
                "README.md",
                File::small("---\nlicense: mit\n---\n# Hello\n".as_bytes()),
            ),
            ("model.safetensors", File::large(vec![1; 1000])),
            ("original/model.safetensors", File::large(vec![2; 500])),
        ],
    );
    repository.downloads = downloads;
    repository.likes = 100 - downloads;
    repository.modified = format!("2026-01-{downloads:02}T00:00:00.000Z");
    repository
}

async fn double() -> HubDouble {
    HubDouble::start([
        repository("mlx-community/alpha-4bit", 3),
        repository("mlx-community/beta", 2),
        repository("someone/alpha", 1),
    ])
    .await
}

fn search() -> Search {
    Search {
        limit: 10,
        ..Search::default()
    }
}

async fn ids(hub: &Hub, search: &Search) -> Vec<String> {
    let page = hub.search(search).await.unwrap();
    page.models.into_iter().map(|model| model.id).collect()
}

#[tokio::test]
async fn models_by_name_owner_and_rank() {
    let double = double().await;
    let hub = Hub::new(&double.url(), None).unwrap();
    let everyone = [
        "mlx-community/alpha-4bit",
        "mlx-community/beta",
        "someone/alpha",
    ];
    assert_eq!(ids(&hub, &search()).await, everyone);
    for (sort, first) in [
        (Sort::Likes, "someone/alpha"),
        (Sort::Modified, "mlx-community/alpha-4bit"),
        (Sort::Trending, "mlx-community/alpha-4bit"),
    ] {
        let found = ids(&hub, &Search { sort, ..search() }).await;
        assert_eq!(found[0], first, "{sort:?}");
    }
    let alpha = Search {
        text: Some("ALPHA".into()),
        author: Some("mlx-community".into()),
        ..search()
    };
    let page = hub.search(&alpha).await.unwrap();
    assert_eq!(page.models.len(), 1);
    let model = &page.models[0];
    assert!(model.is_mlx && !model.is_gated);
    assert_eq!(model.facts.quantization.as_deref(), Some("4-bit"));
    assert_eq!(model.modified.as_deref(), Some("2026-01-03T00:00:00.000Z"));
    assert_eq!(page.next_cursor, None);
}

#[tokio::test]
async fn pages_follow_each_other() {
    let double = double().await;
    let hub = Hub::new(&double.url(), None).unwrap();
    let mut asked = Search {
        limit: 2,
        author: Some("mlx-community".into()),
        ..Search::default()
    };
    asked.author = None;
    let first = hub.search(&asked).await.unwrap();
    assert_eq!(first.models.len(), 2);
    asked.cursor = first.next_cursor;
    assert!(asked.cursor.is_some());
    let last = hub.search(&asked).await.unwrap();
    assert_eq!(last.models[0].id, "someone/alpha");
    assert_eq!(last.next_cursor, None);
}

#[tokio::test]
async fn what_was_asked_a_moment_ago_is_not_asked_again() {
    let double = double().await;
    let hub = Hub::new(&double.url(), None).unwrap();
    let before = ids(&hub, &search()).await;
    double.behave(Behaviour {
        refuse: Some(Refusal::NotFound),
        ..Behaviour::default()
    });
    assert_eq!(ids(&hub, &search()).await, before);
    let other = Search {
        text: Some("other".into()),
        ..search()
    };
    assert!(hub.search(&other).await.is_err());
}

#[tokio::test]
async fn a_model_before_its_download() {
    let double = double().await;
    let hub = Hub::new(&double.url(), None).unwrap();
    let reference = Reference::parse("alpha-4bit").unwrap();
    let repository = hub.repository(&reference, true).await.unwrap();
    assert_eq!(repository.commit, double.head("mlx-community/alpha-4bit"));
    assert_eq!(repository.license.as_deref(), Some("mit"));
    let files: Vec<(&str, u64, bool)> = repository
        .files
        .iter()
        .map(|file| (file.path.as_str(), file.size_bytes, file.is_needed))
        .collect();
    assert_eq!(
        files,
        [
            ("README.md", 29, true),
            ("config.json", 70, true),
            ("model.safetensors", 1000, true),
            ("original/model.safetensors", 500, false),
        ]
    );
    assert_eq!(repository.download_bytes(), 1099);
    assert_eq!(repository.weights_bytes(), 1000);
    let card = hub.card(&repository).await.unwrap();
    assert_eq!(card.readme.as_deref(), Some("# Hello\n"));
    assert_eq!(card.config.unwrap()["model_type"], "llama");
}

#[tokio::test]
async fn cards_of_gated_models_are_for_those_with_access() {
    let mut gated = repository("owner/gated", 1);
    gated.is_gated = true;
    let double = HubDouble::start([gated]).await;
    double.behave(Behaviour {
        tokens: vec!["hf_good".into()],
        ..Behaviour::default()
    });
    let reference = Reference::parse("owner/gated").unwrap();
    for (token, has_config) in [(None, false), (Some("hf_good"), true)] {
        let hub = Hub::new(&double.url(), token).unwrap();
        let repository = hub.repository(&reference, false).await.unwrap();
        assert!(repository.listed.is_gated);
        let card = hub.card(&repository).await.unwrap();
        assert_eq!(card.config.is_some(), has_config);
    }
}

#[tokio::test]
async fn a_short_trouble_is_passed_over_and_a_long_one_told() {
    let double = double().await;
    let hub = Hub::new(&double.url(), None).unwrap();
    let reference = Reference::parse("someone/alpha").unwrap();
    double.behave(Behaviour {
        failing: 2,
        ..Behaviour::default()
    });
    let repository = hub.repository(&reference, false).await.unwrap();
    assert!(hub.card(&repository).await.unwrap().readme.is_some());
    double.behave(Behaviour {
        refuse: Some(Refusal::Unavailable),
        ..Behaviour::default()
    });
    assert!(matches!(
        hub.repository(&reference, false).await,
        Err(Error::Offline { .. })
    ));
}

#[tokio::test]
async fn a_revision_is_a_commit_at_once() {
    let double = double().await;
    let hub = Hub::new(&double.url(), None).unwrap();
    let old = double.head("someone/alpha");
    double.commit(
        "someone/alpha",
        Commit::new([("only.txt".to_owned(), File::small("x".as_bytes()))]),
    );
    let reference = Reference::parse(&format!("someone/alpha@{old}")).unwrap();
    let repository = hub.repository(&reference, false).await.unwrap();
    assert_eq!((repository.commit, repository.files.len()), (old, 4));
    let missing = Reference::parse("someone/alpha@refs/pr/7").unwrap();
    let message = hub
        .repository(&missing, false)
        .await
        .unwrap_err()
        .to_string();
    assert!(message.contains("`refs/pr/7`"), "{message}");
}

#[test]
fn endpoints_that_cannot_be_used_are_named() {
    for endpoint in ["", "huggingface.co", "ftp://host", "http://"] {
        let message = Hub::new(endpoint, None).unwrap_err().to_string();
        assert!(message.contains("hfEndpoint"), "{message}");
    }
}
