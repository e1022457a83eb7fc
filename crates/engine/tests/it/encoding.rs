//! Real encoders through the engine: judged by what transformers computed, alone and in company.

use futures::future::join3;
use macmlx_engine::EngineOptions;
use macmlx_inference::{Backend, EmbedRequest, EncoderInput, ModelTask, Overflow, RerankRequest};
use serde_json::Value;

use crate::support::{Home, Named, encoder_fixtures, expected, greedy, ids, run};

const EMBEDDERS: [&str; 4] = ["bert", "modernbert", "nomic_bert", "qwen3"];

fn home(generators: &[&str], embedders: &[&str]) -> Home {
    let mut home = Home::new(generators);
    for name in embedders {
        home.add_encoder(name, ModelTask::Embed);
    }
    home.add_encoder("bert-score", ModelTask::Rerank);
    home
}

/// The texts of a fixture that are no pairs, with the rows that are expected of them.
fn judged(name: &str) -> Vec<(Vec<u32>, Vec<f32>)> {
    let folder = encoder_fixtures().join(name);
    let text = std::fs::read_to_string(folder.join("expected.json")).unwrap();
    let expected: Value = serde_json::from_str(&text).unwrap();
    let bytes = std::fs::read(folder.join("expected.safetensors")).unwrap();
    let (length, rest) = bytes.split_first_chunk().unwrap();
    let (header, data) = rest.split_at(u64::from_le_bytes(*length) as usize);
    let header: Value = serde_json::from_slice(header).unwrap();
    assert_eq!(header["texts"]["dtype"], "F32");
    let place = |index: usize| {
        let place = &header["texts"]["data_offsets"][index];
        usize::try_from(place.as_u64().unwrap()).unwrap()
    };
    let numbers: Vec<f32> = data[place(0)..place(1)]
        .as_chunks()
        .0
        .iter()
        .map(|bytes| f32::from_le_bytes(*bytes))
        .collect();
    let texts = expected["texts"].as_array().unwrap();
    let rows = numbers.chunks_exact(numbers.len() / texts.len());
    texts
        .iter()
        .zip(rows)
        .filter(|(text, _)| text["second_segment"].is_null())
        .map(|(text, row)| (ids(&text["tokens"]), row.to_vec()))
        .collect()
}

fn request(model: &str, texts: impl IntoIterator<Item = Vec<u32>>) -> EmbedRequest {
    EmbedRequest {
        model: model.into(),
        inputs: texts.into_iter().map(EncoderInput::Tokens).collect(),
        token_limit: None,
        overflow: Overflow::Refuse,
        dimensions: None,
    }
}

fn distance(left: &[f32], right: &[f32]) -> f32 {
    assert_eq!(left.len(), right.len());
    let differences = left
        .iter()
        .zip(right)
        .map(|(left, right)| (left - right).abs());
    differences.fold(0.0, f32::max)
}

async fn check(engine: &Named, name: &str) {
    let (texts, rows): (Vec<_>, Vec<_>) = judged(name).into_iter().unzip();
    assert!(rows.len() >= 3, "{name}");
    let together = engine.embed(request(name, texts.clone())).await.unwrap();
    for (index, row) in rows.iter().enumerate() {
        let off = distance(&together.vectors[index], row);
        assert!(off < 2e-5, "{name}: text {index} is off by {off}");
        let alone = engine.embed(request(name, [texts[index].clone()])).await;
        let off = distance(&alone.unwrap().vectors[0], row);
        assert!(off < 2e-5, "{name}: text {index} alone is off by {off}");
    }
}

#[tokio::test]
async fn vectors_are_those_of_the_reference() {
    let home = home(&[], &EMBEDDERS);
    let engine = home.engine(EngineOptions {
        prefill_chunk: 48,
        ..EngineOptions::default()
    });
    for name in EMBEDDERS {
        check(&engine, name).await;
    }
    let loaded = engine.loaded();
    assert_eq!(loaded.len(), 3, "{loaded:?}");
    assert!(
        loaded.iter().all(|model| model.memory_bytes > 1000),
        "{loaded:?}"
    );
}

#[tokio::test]
async fn documents_are_scored_alike_alone_and_in_company() {
    let home = home(&[], &[]);
    let engine = home.engine(EngineOptions::default());
    let documents = ["A CAT", "", "THE DOG SAT", "CATS AND DOGS", "X"];
    let rank = async |documents: &[&str], overflow| {
        let request = RerankRequest {
            model: "bert-score".into(),
            query: "WHICH?".into(),
            documents: documents.iter().map(|text| (*text).to_owned()).collect(),
            document_tokens: None,
            token_limit: None,
            overflow,
        };
        engine.rerank(request).await
    };
    let together = rank(&documents, Overflow::Refuse).await.unwrap();
    assert_eq!(together.prompt_tokens, 5 * 6 + 5 + 11 + 13 + 1);
    for (index, document) in documents.iter().enumerate() {
        let alone = rank(&[document], Overflow::Refuse).await.unwrap();
        assert!(distance(&alone.scores, &together.scores[index..=index]) < 2e-5);
    }
    let mut different = together.scores.clone();
    different.sort_by(f32::total_cmp);
    different.dedup();
    assert_eq!(different.len(), documents.len(), "{together:?}");
    assert!(
        together
            .scores
            .iter()
            .all(|score| (0.0..=1.0).contains(score))
    );
    let long = "A CAT WHO READS MUCH MORE THAN FITS";
    assert!(rank(&[long], Overflow::Refuse).await.is_err());
    let cut = rank(&[long], Overflow::Truncate).await.unwrap();
    let fits = rank(&[&long[..24 - 6]], Overflow::Refuse).await.unwrap();
    assert_eq!((cut.prompt_tokens, cut.scores), (24, fits.scores));
}

#[tokio::test]
async fn a_chat_says_the_same_while_texts_are_embedded() {
    let home = home(&["llama"], &["bert"]);
    let engine = home.engine(EngineOptions {
        prefill_chunk: 24,
        ..EngineOptions::default()
    });
    let (texts, rows): (Vec<_>, Vec<_>) = judged("bert").into_iter().unzip();
    let library: Vec<_> = texts.iter().cycle().take(60).cloned().collect();
    let prompt = ids(&expected("llama")["prompt"]);
    let length = ids(&expected("llama")["greedy"]).len() as u32;
    let rerank = RerankRequest {
        model: "bert-score".into(),
        query: "WHICH?".into(),
        documents: vec!["A".into(); 20],
        document_tokens: None,
        token_limit: None,
        overflow: Overflow::Refuse,
    };
    let (answer, embeddings, relevance) = join3(
        run(&engine, greedy("llama", &prompt, length)),
        engine.embed(request("bert", library)),
        engine.rerank(rerank),
    )
    .await;
    assert_eq!(answer.ids(0), ids(&expected("llama")["greedy"]));
    let vectors = embeddings.unwrap().vectors;
    for (vector, row) in vectors.iter().zip(rows.iter().cycle()) {
        assert!(distance(vector, row) < 2e-5);
    }
    assert_eq!((vectors.len(), relevance.unwrap().scores.len()), (60, 20));
    assert_eq!(engine.loaded().len(), 3);
}
