//! Every fixture of `tests/parity` against what mlx-lm computed with it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
};

use macmlx_models::{
    ComputePolicy, LoadOptions, LogitsRows, Model, Segment,
    cache::{CacheOptions, KvQuantization, SequenceCache},
    load, model_types,
};
use mlx_rs::{Array, ops};
use parking_lot::{Mutex, MutexGuard};
use serde::Deserialize;

/// Float32 on both sides: what is left is the order of sums, about 1e-6 of logits up to 10, twice
/// over through a few layers.
const FLOAT32: f32 = 2e-4;

/// Half precision keeps 8 (bfloat16) to 11 bits, and the two sides round at different places.
const HALF: f32 = 0.25;

/// Quantized keys differ by a whole step of 8 bits where float32 rounding tips them over.
const KV_QUANTIZED: f32 = 0.02;

#[derive(Deserialize)]
struct Expected {
    prompt: Vec<u32>,
    chunks: Vec<usize>,
    greedy: Vec<u32>,
    batch: Vec<Generation>,
    continuation: Vec<u32>,
    kv: Kv,
}

#[derive(Deserialize)]
struct Generation {
    prompt: Vec<u32>,
    greedy: Vec<u32>,
}

#[derive(Deserialize)]
struct Kv {
    bits: u8,
    group_size: u32,
}

struct Fixture {
    name: String,
    path: PathBuf,
    expected: Expected,
    logits: HashMap<String, Array>,
}

/// MLX has one default stream; tests take turns.
fn mlx() -> MutexGuard<'static, ()> {
    static MLX: Mutex<()> = Mutex::new(());
    MLX.lock()
}

fn fixtures() -> Vec<Fixture> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/parity/fixtures");
    let mut fixtures: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let expected = fs::read_to_string(path.join("expected.json")).unwrap();
            Fixture {
                name: path.file_name().unwrap().to_string_lossy().into_owned(),
                expected: serde_json::from_str(&expected).unwrap(),
                logits: Array::load_safetensors(path.join("expected.safetensors")).unwrap(),
                path,
            }
        })
        .collect();
    fixtures.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(fixtures.len() > 20, "fixtures are missing");
    fixtures
}

/// Float32 with weights dequantized, and with weights held quantized.
fn float32_policies() -> [LoadOptions; 2] {
    [u64::MAX, 0].map(|dequantize_budget_bytes| LoadOptions {
        compute: ComputePolicy::Float32,
        dequantize_budget_bytes,
    })
}

/// Runs `check` on each fixture under both float32 policies.
fn for_each(check: impl Fn(&Fixture, &dyn Model)) {
    let _turn = mlx();
    for fixture in fixtures() {
        for options in float32_policies() {
            let loaded = load(&fixture.path, &options).unwrap();
            check(&fixture, &*loaded.model);
        }
    }
}

fn tokens(ids: &[u32]) -> Array {
    Array::from_slice(ids, &[ids.len() as i32])
}

fn new_cache(model: &dyn Model) -> SequenceCache {
    model.new_cache(&CacheOptions::default()).unwrap()
}

/// Logits of all of `ids`, `[ids, vocab]` in float32.
fn run(model: &dyn Model, ids: &[u32], cache: &mut SequenceCache) -> Array {
    let segment = Segment {
        length: ids.len(),
        cache,
        logits: LogitsRows::All,
    };
    let logits = model.forward(&tokens(ids), &mut [segment]).unwrap();
    logits.as_type::<f32>().unwrap()
}

/// Index of the largest logit in each row.
fn best(logits: &Array) -> Vec<u32> {
    ops::indexing::argmax_axis(logits, -1, false)
        .unwrap()
        .as_slice::<u32>()
        .to_vec()
}

#[track_caller]
fn assert_close(name: &str, actual: &Array, expected: &Array, tolerance: f32) {
    assert_eq!(actual.shape(), expected.shape(), "{name}");
    let difference = actual
        .subtract(expected)
        .unwrap()
        .abs()
        .unwrap()
        .max(None)
        .unwrap();
    let difference = difference.item_exact::<f32>();
    assert!(
        difference <= tolerance,
        "{name}: logits differ by {difference}"
    );
}

#[test]
fn every_architecture_has_a_checkpoint() {
    let types: Vec<_> = fixtures()
        .iter()
        .map(|fixture| {
            let config = fs::read_to_string(fixture.path.join("config.json")).unwrap();
            let config: serde_json::Value = serde_json::from_str(&config).unwrap();
            config["model_type"].as_str().unwrap().to_owned()
        })
        .collect();
    let without: Vec<_> = model_types()
        .filter(|known| !types.iter().any(|own| own == known))
        .collect();
    assert_eq!(without, [""; 0], "see tests/parity/make.py");
}

#[test]
fn whole_prompt() {
    for_each(|fixture, model| {
        let logits = run(model, &fixture.expected.prompt, &mut new_cache(model));
        assert_close(&fixture.name, &logits, &fixture.logits["prompt"], FLOAT32);
    });
}

#[test]
fn chunked_prefill() {
    for_each(|fixture, model| {
        let mut cache = new_cache(model);
        let mut rest = &*fixture.expected.prompt;
        let mut logits = Vec::new();
        for &length in &fixture.expected.chunks {
            let (chunk, after) = rest.split_at(length);
            logits.push(run(model, chunk, &mut cache));
            rest = after;
        }
        let logits = ops::concatenate(&logits, 0).unwrap();
        assert_close(&fixture.name, &logits, &fixture.logits["chunked"], FLOAT32);
        assert_close(&fixture.name, &logits, &fixture.logits["prompt"], FLOAT32);
    });
}

#[test]
fn prefill_token_by_token() {
    for_each(|fixture, model| {
        let mut cache = new_cache(model);
        let prompt = &fixture.expected.prompt;
        let logits: Vec<_> = prompt
            .iter()
            .map(|&id| run(model, &[id], &mut cache))
            .collect();
        let logits = ops::concatenate(&logits, 0).unwrap();
        assert_close(&fixture.name, &logits, &fixture.logits["prompt"], FLOAT32);
    });
}

#[test]
fn greedy_decode() {
    for_each(|fixture, model| {
        let mut cache = new_cache(model);
        let mut input = fixture.expected.prompt.clone();
        let mut ids = Vec::new();
        for _ in 0..fixture.expected.greedy.len() {
            let logits = run(model, &input, &mut cache);
            let id = *best(&logits).last().unwrap();
            ids.push(id);
            input = vec![id];
        }
        assert_eq!(ids, fixture.expected.greedy, "{}", fixture.name);
    });
}

/// Three sequences: prefilled in one forward, then decoded together; all ids as if alone.
#[test]
fn ragged_batch() {
    for_each(|fixture, model| {
        let batch = &fixture.expected.batch;
        let mut caches: Vec<_> = batch.iter().map(|_| new_cache(model)).collect();
        let mut inputs: Vec<_> = batch.iter().map(|each| each.prompt.clone()).collect();
        let mut ids = vec![Vec::new(); batch.len()];
        for _ in 0..batch[0].greedy.len() {
            let best = batch_step(model, &inputs, &mut caches);
            inputs = best.iter().map(|&id| vec![id]).collect();
            ids.iter_mut()
                .zip(&best)
                .for_each(|(ids, &id)| ids.push(id));
        }
        let expected: Vec<_> = batch.iter().map(|each| each.greedy.clone()).collect();
        assert_eq!(ids, expected, "{}", fixture.name);
    });
}

/// A prompt joins while the others decode: one forward with rows of both kinds.
#[test]
fn joining_batch() {
    for_each(|fixture, model| {
        let batch = &fixture.expected.batch;
        let mut caches: Vec<_> = batch.iter().map(|_| new_cache(model)).collect();
        let mut ids = vec![Vec::new(); batch.len()];
        let mut inputs: Vec<_> = batch.iter().map(|each| each.prompt.clone()).collect();
        for joined in 1..=batch.len() {
            for _ in 0..3 {
                let best = batch_step(model, &inputs[..joined], &mut caches[..joined]);
                for (index, id) in best.into_iter().enumerate() {
                    inputs[index] = vec![id];
                    ids[index].push(id);
                }
            }
        }
        for (ids, each) in ids.iter().zip(batch) {
            assert_eq!(*ids, each.greedy[..ids.len()], "{}", fixture.name);
        }
    });
}

/// Greedy ids that follow each input.
fn batch_step(model: &dyn Model, inputs: &[Vec<u32>], caches: &mut [SequenceCache]) -> Vec<u32> {
    let mut segments: Vec<_> = inputs
        .iter()
        .zip(caches)
        .map(|(input, cache)| Segment {
            length: input.len(),
            cache,
            logits: LogitsRows::Last,
        })
        .collect();
    best(
        &model
            .forward(&tokens(&inputs.concat()), &mut segments)
            .unwrap(),
    )
}

#[test]
fn logits_only_where_asked() {
    for_each(|fixture, model| {
        let prompts: Vec<_> = fixture
            .expected
            .batch
            .iter()
            .map(|each| &each.prompt)
            .collect();
        let wanted = [LogitsRows::All, LogitsRows::None, LogitsRows::Last];
        let mut caches: Vec<_> = prompts.iter().map(|_| new_cache(model)).collect();
        let mut segments: Vec<_> = prompts
            .iter()
            .zip(&mut caches)
            .zip(wanted)
            .map(|((prompt, cache), logits)| Segment {
                length: prompt.len(),
                cache,
                logits,
            })
            .collect();
        let all: Vec<_> = prompts
            .iter()
            .flat_map(|prompt| prompt.iter().copied())
            .collect();
        let logits = model.forward(&tokens(&all), &mut segments).unwrap();
        let first = run(model, prompts[0], &mut new_cache(model));
        let last = run(model, prompts[2], &mut new_cache(model));
        let last = last
            .split_at_indices(&[last.dim(0) - 1], 0)
            .unwrap()
            .remove(1);
        let alone = ops::concatenate(&[first, last], 0).unwrap();
        assert_close(&fixture.name, &logits, &alone, FLOAT32);

        let mut cache = new_cache(model);
        let segment = Segment {
            length: all.len(),
            cache: &mut cache,
            logits: LogitsRows::None,
        };
        let none = model.forward(&tokens(&all), &mut [segment]).unwrap();
        assert_eq!(none.shape(), [0, model.vocab_size() as i32]);
        assert_eq!(cache.offset(), all.len());
    });
}

#[test]
fn checkpoint_dtype() {
    let _turn = mlx();
    for fixture in fixtures() {
        let options = LoadOptions {
            compute: ComputePolicy::Checkpoint,
            ..LoadOptions::default()
        };
        let loaded = load(&fixture.path, &options).unwrap();
        let model = &*loaded.model;
        let logits = run(model, &fixture.expected.prompt, &mut new_cache(model));
        let tolerance = if fixture.name == "llama-float32" {
            FLOAT32
        } else {
            HALF
        };
        assert_close(
            &fixture.name,
            &logits,
            &fixture.logits["checkpoint_dtype"],
            tolerance,
        );
    }
}

#[test]
fn quantized_kv() {
    for_each(|fixture, model| {
        let Some(expected) = fixture.logits.get("kv_quantized") else {
            assert!(has_windows(fixture), "{}", fixture.name);
            return;
        };
        let Expected {
            prompt,
            chunks,
            continuation,
            kv: Kv { bits, group_size },
            ..
        } = &fixture.expected;
        let quantization = KvQuantization {
            bits: *bits,
            group_size: *group_size,
            start: chunks[0],
        };
        let options = CacheOptions {
            quantization: Some(quantization),
        };
        let mut cache = model.new_cache(&options).unwrap();
        let (first, mut rest) = prompt.split_at(chunks[0]);
        run(model, first, &mut cache);
        let mut logits = Vec::new();
        for &length in &chunks[1..] {
            let (chunk, after) = rest.split_at(length);
            logits.push(run(model, chunk, &mut cache));
            rest = after;
        }
        logits.extend(continuation.iter().map(|&id| run(model, &[id], &mut cache)));
        let logits = ops::concatenate(&logits, 0).unwrap();
        assert_close(&fixture.name, &logits, expected, KV_QUANTIZED);
    });
}

fn has_windows(fixture: &Fixture) -> bool {
    fixture.name.starts_with("gemma3") || fixture.name == "llama-sliding"
}

/// Trimming what was appended, and writing into a duplicate, leave the original as it was.
#[test]
fn trim_and_duplicate() {
    for_each(|fixture, model| {
        for quantization in [
            None,
            Some(KvQuantization {
                bits: 8,
                group_size: 32,
                start: 4,
            }),
        ] {
            let mut cache = model.new_cache(&CacheOptions { quantization }).unwrap();
            // Shorter than any window, so that every kind can still trim.
            let (prompt, next) = fixture.expected.prompt[..6].split_at(5);
            run(model, prompt, &mut cache);
            let mut copy = cache.duplicate();
            let expected = run(model, next, &mut cache);
            assert!(cache.layers.iter_mut().all(|layer| layer.trim(1)));
            run(model, &[1, 2, 3], &mut copy);
            let again = run(model, next, &mut cache);
            assert_close(&fixture.name, &again, &expected, FLOAT32);
            assert!(copy.layers.iter_mut().all(|layer| !layer.trim(9)));
            assert_eq!((cache.offset(), copy.offset()), (6, 8));
        }
    });
}
