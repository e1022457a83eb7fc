//! The models folder as others leave it: both layouts, links, hidden and incomplete folders.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail by panicking"
)]

use std::{fs, ops::ControlFlow, path::Path};

use macmlx_inference::{InferenceError, Modelfile, NewModel};
use macmlx_store::models::{self, CopyError, Library, RemoveError, State};
use macmlx_test_support::{Source, ways_of_writing};
use serde_json::{Value, json};

fn put_model(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    fs::write(
        folder.join("config.json"),
        r#"{"model_type": "llama", "max_position_embeddings": 2048}"#,
    )
    .unwrap();
    fs::write(folder.join("tokenizer.json"), "{}").unwrap();
    let header = r#"{"a.weight":{"dtype":"BF16","shape":[2,2],"data_offsets":[0,8]}}"#;
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.bytes());
    bytes.extend([0; 8]);
    fs::write(folder.join("model.safetensors"), bytes).unwrap();
}

fn reason(library: &Library, id: &str) -> String {
    match library.find(id).unwrap().state {
        State::Incomplete { reason } => reason,
        State::Complete(card) => panic!("{card:?}"),
    }
}

#[test]
fn both_layouts_are_found_and_hidden_folders_are_not() {
    let root = tempfile::tempdir().unwrap();
    put_model(&root.path().join("owner/model"));
    put_model(&root.path().join("flat-model"));
    put_model(&root.path().join(".importing-1/model"));
    put_model(&root.path().join("owner/.moving-1/model"));
    fs::create_dir_all(root.path().join("owner/notes")).unwrap();
    let library = Library::new(root.path());
    let ids: Vec<String> = library.list().into_iter().map(|card| card.id).collect();
    assert_eq!(ids, ["flat-model", "owner/model"]);
    let card = library.resolve("model").unwrap();
    assert_eq!(card.quantization.as_deref(), Some("bf16"));
    assert_eq!(card.parameters, Some(4));
    assert_eq!(card.context_length, Some(2048));
}

#[test]
fn a_missing_folder_holds_no_models() {
    let library = Library::new("/no/such/folder");
    assert!(library.list().is_empty());
    assert!(matches!(
        library.resolve("x"),
        Err(InferenceError::ModelNotFound { .. })
    ));
}

#[test]
fn models_elsewhere_are_reached_by_path() {
    let root = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    put_model(&elsewhere.path().join("model"));
    put_model(&root.path().join("owner/model"));
    let library = Library::new(root.path());
    let path = elsewhere.path().join("model");
    let card = library.resolve(path.to_str().unwrap()).unwrap();
    assert_eq!(card.path, fs::canonicalize(&path).unwrap());
    let inside = root.path().join("owner/model");
    let card = library.resolve(inside.to_str().unwrap()).unwrap();
    assert_eq!(card.id, "owner/model");
    assert!(matches!(
        library.remove(path.to_str().unwrap()),
        Err(RemoveError::Outside { .. })
    ));
    assert!(path.exists());
}

#[test]
fn what_is_missing_is_named_until_it_is_there() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("owner/model");
    put_model(&folder);
    let index = folder.join("model.safetensors.index.json");
    fs::write(
        &index,
        r#"{"weight_map": {"a": "model.safetensors", "b": "other.safetensors"}}"#,
    )
    .unwrap();
    let library = Library::new(root.path());
    assert!(reason(&library, "model").contains("other.safetensors"));
    let refused = library.resolve("model").unwrap_err();
    assert!(matches!(refused, InferenceError::ModelLoad { .. }));
    assert!(library.list().is_empty());
    fs::copy(
        folder.join("model.safetensors"),
        folder.join("other.safetensors"),
    )
    .unwrap();
    assert_eq!(library.list().len(), 1);
    fs::remove_file(folder.join("tokenizer.json")).unwrap();
    assert!(reason(&library, "model").contains("tokenizer.json"));
}

#[test]
fn a_gguf_file_points_to_the_import() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("owner/model")).unwrap();
    fs::write(root.path().join("owner/model/m.gguf"), "GGUF").unwrap();
    let library = Library::new(root.path());
    assert!(reason(&library, "model").contains("macmlx import"));
}

#[test]
fn what_an_import_writes_is_a_model() {
    let root = tempfile::tempdir().unwrap();
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gguf/tests/files");
    let imported = macmlx_gguf::import(
        &macmlx_gguf::Options {
            file: files.join("llama_q4_1.gguf"),
            id: "owner/imported".into(),
            models: root.path().into(),
        },
        &mut |_| ControlFlow::Continue(()),
    )
    .unwrap();
    let card = Library::new(root.path()).resolve("imported").unwrap();
    assert_eq!(card.id, imported.id);
    assert_eq!(card.quantization.as_deref(), Some("4-bit"));
    assert_eq!(card.context_length, Some(8192));
    let expected = fs::read(files.join("llama_q4_1.expected.json")).unwrap();
    let expected: Value = serde_json::from_slice(&expected).unwrap();
    let tensors = expected["tensors"].as_object().unwrap().values();
    let values = |tensor: &Value| -> u64 {
        let shape = tensor["shape"].as_array().unwrap();
        shape.iter().map(|size| size.as_u64().unwrap()).product()
    };
    assert_eq!(card.parameters, Some(tensors.map(values).sum()));
}

#[test]
fn removing_the_last_model_removes_its_owner() {
    let root = tempfile::tempdir().unwrap();
    put_model(&root.path().join("owner/one"));
    put_model(&root.path().join("owner/two"));
    let library = Library::new(root.path());
    library.remove("one").unwrap();
    assert!(root.path().join("owner/two").exists());
    library.remove("two").unwrap();
    assert!(!root.path().join("owner").exists());
    assert!(matches!(
        library.remove("two"),
        Err(RemoveError::Resolve(InferenceError::ModelNotFound { .. }))
    ));
}

#[cfg(unix)]
#[test]
fn removing_a_link_keeps_what_it_points_to() {
    let root = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    put_model(&elsewhere.path().join("model"));
    std::os::unix::fs::symlink(elsewhere.path().join("model"), root.path().join("link")).unwrap();
    let library = Library::new(root.path());
    library.remove("link").unwrap();
    assert!(!root.path().join("link").exists());
    assert!(elsewhere.path().join("model/config.json").exists());
}

#[test]
fn deleting_takes_a_whole_name() {
    let root = tempfile::tempdir().unwrap();
    put_model(&root.path().join("owner/Model-8B-4bit"));
    let library = Library::new(root.path());
    for whole in [
        "owner/model-8b-4bit",
        "Model-8B-4bit:latest",
        "model-8b-4bit",
        "model:8b",
    ] {
        assert!(library.find_whole(whole).is_ok(), "{whole}");
    }
    for part in ["model", "owner", "owner/Model-8B"] {
        assert!(library.find(part).is_ok(), "{part}");
        let refused = library.find_whole(part).unwrap_err();
        assert!(
            matches!(
                &refused,
                InferenceError::ModelNotFound { suggestions, .. }
                    if suggestions == &["owner/Model-8B-4bit"]
            ),
            "{part}: {refused:?}"
        );
    }
}

#[test]
fn a_copy_outlives_its_source_and_is_the_same_model() {
    let root = tempfile::tempdir().unwrap();
    let source = root.path().join("owner/model");
    put_model(&source);
    let large = source.join("extra.safetensors");
    let header = r#"{"b.weight":{"dtype":"U8","shape":[2000000],"data_offsets":[0,2000000]}}"#;
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.bytes());
    bytes.resize(bytes.len() + 2_000_000, 7);
    fs::write(&large, bytes).unwrap();
    for module in ["1_Pooling", ".cache"] {
        fs::create_dir(source.join(module)).unwrap();
        fs::write(source.join(module).join("config.json"), "{}").unwrap();
    }
    let library = Library::new(root.path());
    library.copy("model", "mine/copy:latest").unwrap();
    library.copy("model", "mine/copy").unwrap();
    let (original, copy) = (
        library.resolve("owner/model").unwrap(),
        library.resolve("mine/copy").unwrap(),
    );
    assert_eq!(original.digest, copy.digest);
    assert_eq!(copy.size_bytes, original.size_bytes);
    let links = std::os::unix::fs::MetadataExt::nlink(&fs::metadata(&large).unwrap());
    assert_eq!(links, 2, "large files are not copied");
    let copied = root.path().join("mine/copy");
    assert!(copied.join("1_Pooling/config.json").is_file());
    assert!(!copied.join(".cache").exists());
    library.remove("owner/model").unwrap();
    let left: Vec<String> = library.list().into_iter().map(|card| card.id).collect();
    assert_eq!(left, ["mine/copy"]);
    assert!(library.copy("mine", "x").is_err(), "not a whole name");
}

#[test]
fn a_copy_takes_no_other_models_place() {
    let root = tempfile::tempdir().unwrap();
    put_model(&root.path().join("owner/one"));
    put_model(&root.path().join("flat"));
    fs::write(
        root.path().join("flat/config.json"),
        r#"{"model_type": "qwen3"}"#,
    )
    .unwrap();
    let library = Library::new(root.path());
    for taken in ["flat", "owner", "flat/inside"] {
        assert!(
            matches!(library.copy("one", taken), Err(CopyError::Taken(_))),
            "{taken}"
        );
    }
    for name in ["../out", "a/b/c", ""] {
        assert!(
            matches!(library.copy("one", name), Err(CopyError::Name(_))),
            "{name}"
        );
    }
    assert!(matches!(
        library.copy("none", "x"),
        Err(CopyError::Resolve(InferenceError::ModelNotFound { .. }))
    ));
    let names: Vec<_> = fs::read_dir(root.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names.len(), 2, "nothing is left behind: {names:?}");
}

fn mario() -> NewModel {
    NewModel {
        name: "mario:latest".into(),
        modelfile: Modelfile {
            from: "owner/model".into(),
            system: Some("You are Mario.".into()),
            max_tokens: Some(9),
            ..Modelfile::default()
        },
        template: Some("{{ messages }}".into()),
        license: Some("MIT".into()),
    }
}

fn make(library: &Library, new: &NewModel) -> Result<(), CopyError> {
    library.put(&library.prepare(new)?)
}

#[test]
fn a_model_is_made_of_another_and_outlives_it() {
    let root = tempfile::tempdir().unwrap();
    let parent = root.path().join("owner/model");
    put_model(&parent);
    fs::write(parent.join("LICENSE.md"), "theirs").unwrap();
    let library = Library::new(root.path());
    let prepared = library.prepare(&mario()).unwrap();
    assert_eq!(prepared.card().id, "mario");
    assert_eq!(library.list().len(), 1, "it has no place yet");
    library.put(&prepared).unwrap();
    // As after a restart.
    let library = Library::new(root.path());
    let made = library.resolve("mario").unwrap();
    let said = made.modelfile.clone().unwrap();
    assert_eq!(said.from, "owner/model");
    assert_eq!(said.system.as_deref(), Some("You are Mario."));
    assert_eq!(models::describe(&made).license.as_deref(), Some("MIT"));
    let template = fs::read_to_string(made.path.join("chat_template.jinja")).unwrap();
    assert_eq!(template, "{{ messages }}");
    let parent_card = library.resolve("owner/model").unwrap();
    assert_eq!(parent_card.modelfile, None);
    assert_ne!(made.digest, parent_card.digest, "they are two models");
    assert_eq!(
        fs::read_to_string(parent.join("LICENSE.md")).unwrap(),
        "theirs"
    );
    let weights = fs::metadata(parent.join("model.safetensors")).unwrap();
    assert_eq!(std::os::unix::fs::MetadataExt::nlink(&weights), 2);

    library.copy("mario", "luigi").unwrap();
    let copied = library.resolve("luigi").unwrap();
    assert_eq!(
        (copied.modelfile, copied.digest),
        (made.modelfile, made.digest)
    );
    library.remove("mario").unwrap();
    assert!(library.resolve("owner/model").is_ok(), "its weights stay");
    library.remove("owner/model").unwrap();
    assert!(library.resolve("luigi").is_ok());
}

#[test]
fn a_model_that_was_made_is_made_anew_from_itself_or_another() {
    let root = tempfile::tempdir().unwrap();
    put_model(&root.path().join("owner/model"));
    let library = Library::new(root.path());
    make(&library, &mario()).unwrap();
    let mut anew = mario();
    anew.modelfile = Modelfile {
        from: "mario".into(),
        system: Some("You are kind.".into()),
        ..Modelfile::default()
    };
    anew.template = None;
    make(&library, &anew).unwrap();
    let made = library.resolve("mario").unwrap();
    let said = made.modelfile.unwrap();
    assert_eq!(said.system.as_deref(), Some("You are kind."));
    assert_eq!(said.max_tokens, Some(9), "what is not said stays");
    assert!(made.path.join("chat_template.jinja").is_file());
    let folders = fs::read_dir(root.path()).unwrap().count();
    assert_eq!(folders, 2, "nothing is left behind");

    for (name, from) in [
        ("owner/model", "mario"),
        ("owner", "mario"),
        ("../out", "mario"),
        ("new", "none"),
    ] {
        let mut wrong = mario();
        wrong.name = name.into();
        wrong.modelfile.from = from.into();
        let error = make(&library, &wrong).unwrap_err();
        assert!(!matches!(error, CopyError::Io { .. }), "{name}: {error}");
    }
    assert_eq!(library.list().len(), 2);
}

#[test]
fn a_description_is_what_the_files_say() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("owner/model");
    put_model(&folder);
    let library = Library::new(root.path());
    let bare = models::describe(&library.resolve("model").unwrap());
    assert_eq!(bare.config["max_position_embeddings"], 2048);
    assert!(bare.generation_config.is_null());
    assert_eq!(bare.license, None);
    fs::write(folder.join("generation_config.json"), r#"{"top_k": 5}"#).unwrap();
    fs::write(folder.join("LICENSE.txt"), "Do as you like.").unwrap();
    let full = models::describe(&library.resolve("model").unwrap());
    assert_eq!(full.generation_config["top_k"], 5);
    assert_eq!(full.license.as_deref(), Some("Do as you like."));
}

#[test]
fn files_of_a_folder_are_read_however_they_are_written() {
    let config = json!({
        "model_type": "bert", "max_position_embeddings": 512, "vocab_size": 100,
        "quantization": {"group_size": 64, "bits": 4},
    });
    let files = [
        ("config.json", config),
        (
            "model.safetensors.index.json",
            json!({"metadata": {"total_size": 8}, "weight_map": {"a.weight": "model.safetensors"}}),
        ),
        ("tokenizer_config.json", json!({"model_max_length": 256})),
        ("sentence_bert_config.json", json!({"max_seq_length": 128})),
        (
            "config_sentence_transformers.json",
            json!({"model_type": "SentenceTransformer"}),
        ),
        (
            "modules.json",
            json!([{"idx": 0, "path": "", "type": "x.Transformer"}, {"idx": 1, "type": "x.LogitScore"}]),
        ),
        (
            "modelfile.json",
            json!({"from": "x", "system": "s", "parameters": {"top_k": 40}}),
        ),
        ("macmlx.json", json!({"task": "embed"})),
    ];
    let root = tempfile::tempdir().unwrap();
    let library = Library::new(root.path());
    let folder = root.path().join("model");
    // Each settles something only where those after it are not there.
    for (count, (name, document)) in files.iter().enumerate() {
        let mut plain = None;
        for (way, bytes) in ways_of_writing(document, Source::Model) {
            if folder.exists() {
                fs::remove_dir_all(&folder).unwrap();
            }
            put_model(&folder);
            for (name, document) in &files[..count] {
                fs::write(folder.join(name), document.to_string()).unwrap();
            }
            fs::write(folder.join(name), bytes).unwrap();
            let State::Complete(card) = library.find("model").unwrap().state else {
                panic!("{name}, {way}: {}", reason(&library, "model"));
            };
            let read = (
                card.task,
                card.context_length,
                card.quantization,
                card.parameters,
                card.modelfile,
            );
            let plain = plain.get_or_insert_with(|| read.clone());
            assert_eq!(*plain, read, "{name}, {way}");
        }
    }
}
