//! Every encoder fixture of `tests/parity` against what transformers and sentence-transformers
//! computed with it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
};

use macmlx_models::{
    AnswerTokens, ComputePolicy, EncoderOptions, EncoderText, LoadOptions, LoadedEncoder,
    ModelError, load_encoder,
};
use mlx_rs::{Array, ops};
use parking_lot::{Mutex, MutexGuard};
use serde::Deserialize;

/// Float32 on both sides of vectors of length 1 and of scores up to 1.
const FLOAT32: f32 = 2e-5;

/// Tolerance for float16 and bfloat16; the latter keeps 8 bits.
const HALF: f32 = 0.05;

#[derive(Deserialize)]
struct Expected {
    texts: Vec<Text>,
    answers: Option<Answers>,
}

#[derive(Deserialize)]
struct Text {
    tokens: Vec<u32>,
    second_segment: Option<usize>,
}

#[derive(Deserialize)]
struct Answers {
    yes: u32,
    no: u32,
}

struct Fixture {
    name: String,
    path: PathBuf,
    expected: Expected,
    arrays: HashMap<String, Array>,
}

impl Fixture {
    fn read(path: PathBuf) -> Self {
        let expected = fs::read_to_string(path.join("expected.json")).unwrap();
        Self {
            name: path.file_name().unwrap().to_string_lossy().into_owned(),
            expected: serde_json::from_str(&expected).unwrap(),
            arrays: Array::load_safetensors(path.join("expected.safetensors")).unwrap(),
            path,
        }
    }

    fn texts(&self) -> Vec<EncoderText<'_>> {
        let texts = self.expected.texts.iter();
        texts
            .map(|text| EncoderText {
                tokens: &text.tokens,
                second_segment: text.second_segment,
            })
            .collect()
    }

    fn options(&self, load: LoadOptions) -> EncoderOptions {
        let answers = self.expected.answers.as_ref();
        EncoderOptions {
            load,
            answers: answers.map(|&Answers { yes, no }| AnswerTokens { yes, no }),
        }
    }

    fn load(&self, load: LoadOptions) -> Result<LoadedEncoder, ModelError> {
        load_encoder(&self.path, &self.options(load))
    }
}

/// MLX has one default stream; tests take turns.
fn mlx() -> MutexGuard<'static, ()> {
    static MLX: Mutex<()> = Mutex::new(());
    MLX.lock()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/parity/encoders")
}

fn fixtures() -> Vec<Fixture> {
    let entries = fs::read_dir(folder()).unwrap();
    let mut fixtures: Vec<_> = entries
        .map(|entry| Fixture::read(entry.unwrap().path()))
        .collect();
    fixtures.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(fixtures.len() >= 30, "fixtures are missing");
    fixtures
}

/// Float32 with weights dequantized, and with weights held quantized.
fn float32_policies() -> [LoadOptions; 2] {
    [u64::MAX, 0].map(|dequantize_budget_bytes| LoadOptions {
        compute: ComputePolicy::Float32,
        dequantize_budget_bytes,
    })
}

#[track_caller]
fn assert_close(name: &str, actual: &Array, expected: &Array, tolerance: f32) {
    assert_eq!(actual.shape(), expected.shape(), "{name}");
    let difference = actual.subtract(expected).unwrap().abs().unwrap();
    let difference = difference.max(None).unwrap().item_exact::<f32>();
    assert!(difference <= tolerance, "{name} differs by {difference}");
}

#[test]
fn all_texts_together() {
    let _turn = mlx();
    for fixture in fixtures() {
        for options in float32_policies() {
            let encoder = fixture.load(options).unwrap().encoder;
            let rows = encoder.forward(&fixture.texts()).unwrap();
            assert_close(&fixture.name, &rows, &fixture.arrays["texts"], FLOAT32);
        }
    }
}

/// Neither order nor company changes what a text becomes.
#[test]
fn texts_alone_and_turned_round() {
    let _turn = mlx();
    for fixture in fixtures() {
        let encoder = fixture.load(float32_policies()[0]).unwrap().encoder;
        let mut texts = fixture.texts();
        let alone = texts.iter().map(|&text| encoder.forward(&[text]).unwrap());
        let alone = ops::concatenate(&alone.collect::<Vec<_>>(), 0).unwrap();
        assert_close(&fixture.name, &alone, &fixture.arrays["texts"], FLOAT32);
        texts.reverse();
        let turned = encoder.forward(&texts).unwrap();
        let order: Vec<_> = (0..texts.len() as i32).rev().collect();
        let order = Array::from_slice(&order, &[texts.len() as i32]);
        let turned = turned.take_axis(order, 0).unwrap();
        assert_close(&fixture.name, &turned, &fixture.arrays["texts"], FLOAT32);
    }
}

#[test]
fn checkpoint_dtype() {
    let _turn = mlx();
    for fixture in fixtures() {
        let options = LoadOptions {
            compute: ComputePolicy::Checkpoint,
            ..LoadOptions::default()
        };
        let encoder = fixture.load(options).unwrap().encoder;
        let rows = encoder.forward(&fixture.texts()).unwrap();
        assert_close(&fixture.name, &rows, &fixture.arrays["texts"], HALF);
    }
}
