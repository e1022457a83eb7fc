//! What sentence-transformers' files say follows the encoder: pooling, projections, normalization.

use std::path::{Path, PathBuf};

use serde::{Deserialize, de::DeserializeOwned};

use super::{
    Pool,
    head::{Step, VectorHead},
};
use crate::{
    ModelError, Result,
    compute::Compute,
    layers::{Activation, LayerNorm, Linear},
    weights::{Weights, load_arrays, read_json},
};

const MODULES: &str = "modules.json";

/// Pooling and the modules after it.
#[derive(Debug)]
pub(crate) struct SentenceModules {
    pools: Vec<Pool>,
    steps: Vec<Module>,
}

/// A line of modules.json.
#[derive(Debug, Deserialize)]
struct Module {
    #[serde(skip)]
    folder: PathBuf,
    #[serde(default)]
    path: String,
    /// A Python class; versions differ in everything before its name.
    r#type: String,
}

impl Module {
    fn kind(&self) -> &str {
        self.r#type.rsplit('.').next().unwrap_or_default()
    }

    fn config<T: DeserializeOwned>(&self) -> Result<T> {
        let path = self.folder.join("config.json");
        read_json(&path)
    }

    fn unsupported(&self, reason: impl Into<String>) -> ModelError {
        ModelError::unsupported(format!("{MODULES}: {}", self.kind()), reason)
    }
}

#[derive(Debug, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "as the file has them")]
struct PoolingConfig {
    /// What newer versions write instead of the switches.
    pooling_mode: Option<OneOrMore>,
    #[serde(default)]
    pooling_mode_cls_token: bool,
    #[serde(default)]
    pooling_mode_max_tokens: bool,
    #[serde(default)]
    pooling_mode_mean_tokens: bool,
    #[serde(default)]
    pooling_mode_mean_sqrt_len_tokens: bool,
    #[serde(default)]
    pooling_mode_weightedmean_tokens: bool,
    #[serde(default)]
    pooling_mode_lasttoken: bool,
    include_prompt: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

#[derive(Debug, Deserialize)]
struct DenseConfig {
    in_features: i32,
    out_features: i32,
    #[serde(default = "yes")]
    bias: bool,
    activation_function: Option<String>,
    module_input_name: Option<String>,
    module_output_name: Option<String>,
    #[serde(default)]
    use_residual: bool,
}

fn yes() -> bool {
    true
}

#[derive(Debug, Deserialize)]
struct LayerNormConfig {
    dimension: i32,
}

impl SentenceModules {
    /// Reads modules.json of `folder`; `None` where it has none.
    pub(crate) fn read(folder: &Path) -> Result<Option<Self>> {
        let path = folder.join(MODULES);
        if !path.is_file() {
            return Ok(None);
        }
        let mut modules: Vec<Module> = read_json(&path)?;
        for module in &mut modules {
            module.folder = folder.join(&module.path);
        }
        let mut modules = modules.into_iter();
        match modules.next() {
            Some(module) if module.kind() == "Transformer" && module.path.is_empty() => {}
            _ => {
                let reason = "its first module is no `Transformer` in the folder itself";
                return Err(ModelError::unsupported(MODULES, reason));
            }
        }
        let Some(pooling) = modules.next().filter(|module| module.kind() == "Pooling") else {
            let reason = "no `Pooling` comes second, so that this makes no vectors of texts";
            return Err(ModelError::unsupported(MODULES, reason));
        };
        Ok(Some(Self {
            pools: pools(&pooling)?,
            steps: modules.collect(),
        }))
    }

    /// What stands in for files that a folder lacks: vectors of length 1.
    pub(crate) fn plain(pool: Pool) -> Self {
        Self {
            pools: vec![pool],
            steps: vec![Module {
                folder: PathBuf::new(),
                path: String::new(),
                r#type: "Normalize".to_owned(),
            }],
        }
    }

    /// The head for hidden states of `hidden` features. Its tensors count as part of `weights`.
    pub(crate) fn load(&self, hidden: i32, weights: &mut Weights) -> Result<VectorHead> {
        let mut features = hidden * self.pools.len() as i32;
        let mut steps = Vec::new();
        for module in &self.steps {
            let unsupported = |width: i32| {
                module.unsupported(format!(
                    "it takes {width} features and there are {features}"
                ))
            };
            steps.push(match module.kind() {
                "Normalize" => Step::Normalize,
                // Training only.
                "Dropout" => continue,
                "Dense" => {
                    let config: DenseConfig = module.config()?;
                    let activation = activation(module, &config, weights.compute)?;
                    let (inputs, outputs) = (config.in_features, config.out_features);
                    if inputs != features {
                        return Err(unsupported(inputs));
                    }
                    features = outputs;
                    let linear = weights.beside(load_arrays(&module.folder)?, |weights| {
                        Linear::load(&mut weights.at("linear"), inputs, outputs, config.bias)
                    })?;
                    Step::Dense(linear, activation)
                }
                "LayerNorm" => {
                    let LayerNormConfig { dimension } = module.config()?;
                    if dimension != features {
                        return Err(unsupported(dimension));
                    }
                    let norm = weights.beside(load_arrays(&module.folder)?, |weights| {
                        LayerNorm::load(&mut weights.at("norm"), dimension, 1e-5, true)
                    })?;
                    Step::LayerNorm(norm)
                }
                _ => {
                    let known = "known are Pooling, Dense, LayerNorm, Dropout and Normalize";
                    return Err(module.unsupported(known));
                }
            });
        }
        Ok(VectorHead {
            pools: self.pools.clone(),
            steps,
            features,
        })
    }
}

/// Ways of pooling in the order in which their vectors stand end to end.
fn pools(module: &Module) -> Result<Vec<Pool>> {
    let config: PoolingConfig = module.config()?;
    if config.include_prompt == Some(false) {
        return Err(
            module.unsupported("include_prompt = false: prompts are read as part of a text")
        );
    }
    let pool = |name: &str| {
        Ok(match name {
            "cls" => Pool::First,
            "max" => Pool::Max,
            "mean" => Pool::Mean,
            "mean_sqrt_len_tokens" => Pool::MeanSqrtLength,
            "weightedmean" => Pool::WeightedMean,
            "lasttoken" => Pool::Last,
            _ => return Err(module.unsupported(format!("pooling_mode = {name} is not known"))),
        })
    };
    let pools = match config.pooling_mode {
        Some(OneOrMore::One(name)) => vec![pool(&name)?],
        Some(OneOrMore::More(names)) => {
            names.iter().map(|name| pool(name)).collect::<Result<_>>()?
        }
        None => [
            (config.pooling_mode_cls_token, Pool::First),
            (config.pooling_mode_max_tokens, Pool::Max),
            (config.pooling_mode_mean_tokens, Pool::Mean),
            (
                config.pooling_mode_mean_sqrt_len_tokens,
                Pool::MeanSqrtLength,
            ),
            (config.pooling_mode_weightedmean_tokens, Pool::WeightedMean),
            (config.pooling_mode_lasttoken, Pool::Last),
        ]
        .into_iter()
        .filter_map(|(is_on, pool)| is_on.then_some(pool))
        .collect(),
    };
    // As sentence-transformers does where no way is chosen.
    Ok(if pools.is_empty() {
        vec![Pool::Mean]
    } else {
        pools
    })
}

fn activation(
    module: &Module,
    config: &DenseConfig,
    compute: Compute,
) -> Result<Option<Activation>> {
    if config.use_residual {
        return Err(module.unsupported("use_residual = true is not computed here"));
    }
    let names = [&config.module_input_name, &config.module_output_name];
    for name in names.into_iter().flatten() {
        if name != "sentence_embedding" {
            return Err(module.unsupported(format!("it works on `{name}`, not on pooled vectors")));
        }
    }
    let class = config.activation_function.as_deref().unwrap_or("Tanh");
    let name = match class.rsplit('.').next().unwrap_or_default() {
        "Identity" => return Ok(None),
        "Tanh" => "tanh",
        "ReLU" => "relu",
        "GELU" => "gelu",
        "SiLU" => "silu",
        "Sigmoid" => "sigmoid",
        _ => return Err(module.unsupported(format!("activation_function = {class} is not known"))),
    };
    Ok(Some(Activation::named(
        "activation_function",
        name,
        compute,
    )?))
}
