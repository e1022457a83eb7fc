//! What an encoder's folder may hold, and what is refused by name.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod folder;

use std::{collections::HashMap, fs, path::Path};

use folder::{Folder, mlx};
use macmlx_models::{
    AnswerTokens, Encoder, EncoderOptions, EncoderText, LoadedEncoder, ModelError,
    encoder_positions, encoder_types, load_encoder, model_types,
};
use macmlx_test_support::{Source, ways_of_writing};
use mlx_rs::{Array, ops};
use serde_json::{Value, json};

const TOKENS: [u32; 5] = [3, 9, 27, 4, 50];

fn encoder(fixture: &str) -> Folder {
    Folder::of(&format!("encoders/{fixture}"))
}

fn load(folder: &Folder) -> Result<LoadedEncoder, ModelError> {
    load_encoder(&folder.path, &EncoderOptions::default())
}

#[track_caller]
fn error(folder: &Folder) -> String {
    load(folder).expect_err("the folder is spoilt").to_string()
}

fn text(tokens: &[u32]) -> EncoderText<'_> {
    EncoderText {
        tokens,
        second_segment: None,
    }
}

fn read(encoder: &dyn Encoder) -> Vec<f32> {
    let row = encoder.forward(&[text(&TOKENS)]).unwrap();
    row.eval().unwrap();
    row.as_slice::<f32>().to_vec()
}

fn modules(folder: &Folder, kinds: &[(&str, &str)]) {
    let listed: Vec<_> = kinds
        .iter()
        .map(|(path, kind)| json!({"path": path, "type": format!("some.module.{kind}")}))
        .collect();
    fs::write(folder.path.join("modules.json"), json!(listed).to_string()).unwrap();
}

#[test]
fn types_may_generate_and_encode() {
    let encoders: Vec<_> = encoder_types().collect();
    for name in [
        "bert",
        "xlm-roberta",
        "distilbert",
        "nomic_bert",
        "modernbert",
    ] {
        assert!(encoders.contains(&name), "{name}");
        assert!(model_types().all(|generator| generator != name), "{name}");
    }
    assert!(encoders.contains(&"qwen3") && model_types().any(|name| name == "qwen3"));
    assert!(!encoders.contains(&"llama"));
}

#[test]
fn generators_are_no_encoders() {
    let _turn = mlx();
    let error = load(&Folder::of("fixtures/llama"));
    assert!(matches!(error, Err(ModelError::UnknownArchitecture(name)) if name == "llama"));
    let error = macmlx_models::load(
        &encoder("bert").path,
        &macmlx_models::LoadOptions::default(),
    );
    assert!(matches!(error, Err(ModelError::UnknownArchitecture(name)) if name == "bert"));
}

#[test]
fn every_way_of_pooling() {
    let _turn = mlx();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/parity/encoders/bert");
    let expected = Array::load_safetensors(source.join("expected.safetensors")).unwrap();
    let given: Value =
        serde_json::from_str(&fs::read_to_string(source.join("expected.json")).unwrap()).unwrap();
    let texts: Vec<(Vec<u32>, Option<usize>)> = given["texts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|text| {
            let tokens = serde_json::from_value(text["tokens"].clone()).unwrap();
            (
                tokens,
                serde_json::from_value(text["second_segment"].clone()).unwrap(),
            )
        })
        .collect();
    let texts: Vec<_> = texts
        .iter()
        .map(|(tokens, second_segment)| EncoderText {
            tokens,
            second_segment: *second_segment,
        })
        .collect();
    let modes = [
        "cls",
        "max",
        "mean",
        "mean_sqrt_len_tokens",
        "weightedmean",
        "lasttoken",
    ];
    for mode in modes {
        let folder =
            encoder("bert").with_file("1_Pooling/config.json", json!({"pooling_mode": mode}));
        modules(&folder, &[("", "Transformer"), ("1_Pooling", "Pooling")]);
        let rows = load(&folder).unwrap().encoder.forward(&texts).unwrap();
        let difference = rows.subtract(&expected[&format!("pool.{mode}")]).unwrap();
        let difference = difference.abs().unwrap().max(None).unwrap();
        let difference = difference.item_exact::<f32>();
        assert!(difference < 2e-4, "{mode} differs by {difference}");
    }
}

#[test]
fn pools_stand_end_to_end() {
    let _turn = mlx();
    let switches = json!({
        "pooling_mode_mean_tokens": false,
        "pooling_mode_max_tokens": true,
        "pooling_mode_cls_token": true,
    });
    let folder = encoder("bert").with_file("1_Pooling/config.json", switches);
    let both = load(&folder).unwrap().encoder;
    assert_eq!(both.features(), 64);
    let named = json!({"pooling_mode": ["cls", "max", "mean"]});
    let folder = encoder("bert").with_file("1_Pooling/config.json", named);
    let three = load(&folder).unwrap().encoder;
    assert_eq!((three.features(), read(&*three).len()), (96, 96));
}

#[test]
fn modules_that_are_not_understood() {
    let _turn = mlx();
    let plain = [("", "Transformer"), ("1_Pooling", "Pooling")];
    let with = |more: &[(&'static str, &'static str)]| [&plain, more].concat();
    let cases = [
        (vec![("", "StaticEmbedding")], "no `Transformer`"),
        (
            vec![("0_Transformer", "Transformer"), plain[1]],
            "no `Transformer`",
        ),
        (vec![plain[0]], "no `Pooling`"),
        (vec![plain[0], ("", "Normalize"), plain[1]], "no `Pooling`"),
        (with(&[("2_CNN", "CNN")]), "CNN"),
    ];
    for (kinds, named) in cases {
        let folder = encoder("bert");
        modules(&folder, &kinds);
        assert!(
            error(&folder).contains(named),
            "{named}: {}",
            error(&folder)
        );
    }
    let folder = encoder("bert");
    modules(&folder, &with(&[("", "Dropout"), ("", "Normalize")]));
    load(&folder).unwrap();

    let pooling = |settings| encoder("bert").with_file("1_Pooling/config.json", settings);
    let error_of = |settings| error(&pooling(settings));
    assert!(error_of(json!({"include_prompt": false})).contains("include_prompt"));
    assert!(error_of(json!({"pooling_mode": "median"})).contains("median"));

    let dense = |settings| error(&encoder("bert-dense").with_file("2_Dense/config.json", settings));
    let class = "torch.nn.modules.activation.Softplus";
    assert!(dense(json!({"activation_function": class})).contains("Softplus"));
    assert!(dense(json!({"use_residual": true})).contains("use_residual"));
    assert!(dense(json!({"in_features": 31})).contains("31 features"));
    assert!(dense(json!({"module_input_name": "token_embeddings"})).contains("token_embeddings"));
    assert!(dense(json!({"bias": false})).contains("`linear.bias` is not used"));
}

#[test]
fn settings_that_would_change_the_output_are_refused() {
    let _turn = mlx();
    let cases = [
        (
            "bert",
            json!({"hidden_act": "quick_gelu"}),
            "hidden_act = quick_gelu",
        ),
        (
            "bert",
            json!({"position_embedding_type": "relative_key"}),
            "relative_key",
        ),
        ("bert", json!({"is_decoder": true}), "is_decoder"),
        (
            "bert",
            json!({"architectures": ["BertForTokenClassification"]}),
            "BertForTokenClassification",
        ),
        (
            "modernbert",
            json!({"layer_types": ["full_attention"]}),
            "layer_types",
        ),
        (
            "modernbert-score",
            json!({"classifier_pooling": "max"}),
            "classifier_pooling = max",
        ),
        (
            "nomic_bert-authors",
            json!({"num_experts": 8}),
            "num_experts",
        ),
        (
            "nomic_bert-authors",
            json!({"rotary_emb_interleaved": true}),
            "rotary_emb_interleaved",
        ),
        ("nomic_bert-authors", json!({"prenorm": true}), "prenorm"),
    ];
    for (fixture, settings, named) in cases {
        let error = load(&encoder(fixture).with(settings)).expect_err(named);
        assert!(matches!(error, ModelError::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains(named), "{named}: {error}");
    }
}

#[test]
fn several_labels_are_refused_with_their_count() {
    let _turn = mlx();
    for (fixture, head) in [
        ("bert-score", "classifier"),
        ("roberta-score", "classifier.out_proj"),
        ("distilbert-score", "classifier"),
        ("modernbert-score", "classifier"),
        ("nomic_bert-score", "classifier"),
        ("qwen3-score", "score"),
    ] {
        let folder = encoder(fixture).with_tensors(|tensors| {
            let weight = tensors.get_mut(&format!("{head}.weight")).unwrap();
            *weight = ops::concatenate(&[&*weight, &*weight, &*weight], 0).unwrap();
        });
        assert!(
            error(&folder).contains("num_labels = 3"),
            "{fixture}: {}",
            error(&folder)
        );
    }
}

#[test]
fn tensors_are_used_ignored_by_name_or_named() {
    let _turn = mlx();
    let zeros = || ops::zeros::<f32>(&[1]).unwrap();
    let with = |fixture: &str, key: &str| {
        encoder(fixture).with_tensors(|tensors: &mut HashMap<_, _>| {
            tensors.insert(key.to_owned(), zeros());
        })
    };
    for (fixture, key) in [
        ("bert", "cls.predictions.bias"),
        ("bert-plain", "bert.pooler.dense.bias"),
        ("roberta", "lm_head.bias"),
        ("distilbert", "vocab_transform.weight"),
        ("modernbert", "decoder.bias"),
        ("qwen3-causal", "lm_head.weight"),
    ] {
        load(&with(fixture, key)).unwrap();
    }
    let folder = with("bert", "encoder.layer.0.adapter.weight");
    assert!(error(&folder).contains("`encoder.layer.0.adapter.weight` is not used"));
    let folder = encoder("bert-score").with_tensors(|tensors| {
        tensors.remove("classifier.weight").unwrap();
    });
    assert!(error(&folder).contains("`classifier.weight` is missing"));
}

#[test]
fn old_names_of_norms() {
    let _turn = mlx();
    let expected = read(&*load(&encoder("bert")).unwrap().encoder);
    let folder = encoder("bert").with_tensors(|tensors| {
        let names: Vec<_> = tensors
            .keys()
            .filter(|key| key.contains("LayerNorm."))
            .cloned()
            .collect();
        for name in names {
            let old = name.replace(".weight", ".gamma").replace(".bias", ".beta");
            let tensor = tensors.remove(&name).unwrap();
            tensors.insert(old, tensor);
        }
    });
    assert_eq!(read(&*load(&folder).unwrap().encoder), expected);
}

#[test]
fn answers_are_for_generators_without_a_head() {
    let _turn = mlx();
    let with = |fixture: &str, yes| {
        let options = EncoderOptions {
            answers: Some(AnswerTokens { yes, no: 50 }),
            ..EncoderOptions::default()
        };
        load_encoder(&encoder(fixture).path, &options)
    };
    assert_eq!(with("qwen3-answers", 7).unwrap().encoder.features(), 1);
    let error = with("qwen3-answers", 64).unwrap_err().to_string();
    assert!(error.contains("token 64"), "{error}");
    let error = with("bert", 7).unwrap_err().to_string();
    assert!(error.contains("cannot rerank"), "{error}");
    // Without them the same checkpoint makes vectors.
    assert_eq!(
        load(&encoder("qwen3-answers")).unwrap().encoder.features(),
        32
    );
}

#[test]
fn texts_that_would_read_past_a_table() {
    let _turn = mlx();
    for (fixture, limit) in [
        ("bert", 40),
        ("roberta", 38),
        ("distilbert", 40),
        ("qwen3", 40),
    ] {
        let LoadedEncoder { encoder, facts } = load(&encoder(fixture)).unwrap();
        assert_eq!(facts.context_length, Some(limit), "{fixture}");
        let tokens = vec![5; limit as usize + 1];
        let longest = encoder.forward(&[text(&tokens[1..])]).unwrap();
        longest.eval().unwrap();
        let error = encoder.forward(&[text(&tokens)]).unwrap_err();
        assert!(
            matches!(error, ModelError::TextTooLong { tokens, .. } if tokens == limit as usize + 1),
            "{error}"
        );
        let error = encoder.forward(&[text(&[1, 64])]).unwrap_err();
        assert!(
            matches!(
                error,
                ModelError::UnknownToken {
                    token: 64,
                    vocab: 64
                }
            ),
            "{error}"
        );
        assert_eq!(encoder.forward(&[]).unwrap().shape(), [0, 32]);
    }
    // What stretches beyond its training by the text's own length is read up to there only.
    let stretched = json!({"rotary_scaling_factor": 2, "max_trained_positions": 16});
    let facts = load(&encoder("nomic_bert-authors").with(stretched))
        .unwrap()
        .facts;
    assert_eq!(facts.context_length, Some(16));
}

#[test]
fn facts_of_encoders() {
    let _turn = mlx();
    let facts = load(&encoder("bert-q8")).unwrap().facts;
    assert_eq!((facts.model_type.as_str(), facts.vocab_size), ("bert", 64));
    assert!(facts.weights.starts_with("8-bit"), "{}", facts.weights);
    let with_dense = load(&encoder("bert-dense")).unwrap();
    let without = load(&encoder("bert-gelu-new")).unwrap();
    let more = with_dense.facts.weights_bytes - without.facts.weights_bytes;
    assert_eq!(more, 4 * (32 * 16 + 16));
    assert_eq!(with_dense.encoder.features(), 16);
    assert_eq!(with_dense.encoder.vocab_size(), 64);
}

#[test]
fn files_of_a_folder_are_read_however_they_are_written() {
    let _turn = mlx();
    let folder = encoder("bert");
    modules(&folder, &[("", "Transformer"), ("1_Pooling", "Pooling")]);
    let index = json!({"weight_map": {"any": "model.safetensors"}}).to_string();
    fs::write(folder.path.join("model.safetensors.index.json"), index).unwrap();
    let plain = read(&*load(&folder).unwrap().encoder);
    for name in [
        "config.json",
        "modules.json",
        "1_Pooling/config.json",
        "model.safetensors.index.json",
    ] {
        let path = folder.path.join(name);
        let text = fs::read_to_string(&path).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        for (way, bytes) in ways_of_writing(&document, Source::Model) {
            fs::write(&path, bytes).unwrap();
            let loaded = load(&folder).unwrap_or_else(|error| panic!("{name}, {way}: {error}"));
            assert_eq!(read(&*loaded.encoder), plain, "{name}, {way}");
        }
        fs::write(path, text).unwrap();
    }
}

#[test]
fn the_longest_text_is_known_before_weights_are_loaded() {
    let _turn = mlx();
    for fixture in [
        "bert",
        "xlm-roberta",
        "distilbert",
        "modernbert",
        "nomic_bert",
        "nomic_bert-authors",
    ] {
        let folder = encoder(fixture);
        let config = fs::read_to_string(folder.path.join("config.json")).unwrap();
        let config: Value = serde_json::from_str(&config).unwrap();
        let positions = encoder_positions(&config).map(|positions| positions as u32);
        assert!(positions.is_some(), "{fixture}");
        assert_eq!(
            load(&folder).unwrap().facts.context_length,
            positions,
            "{fixture}"
        );
    }
    assert_eq!(encoder_positions(&json!({"model_type": "llama"})), None);
    assert_eq!(encoder_positions(&json!({"model_type": "bert"})), None);
    assert_eq!(encoder_positions(&json!({})), None);
}
