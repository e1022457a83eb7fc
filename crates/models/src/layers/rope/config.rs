//! What config.json says about rotation, in the spellings of several transformers versions.

use serde::Deserialize;

use super::{Rope, RopeScaling, Yarn};
use crate::{ModelError, Result, compute::Compute};

/// The settings of rotation, for `#[serde(flatten)]` in an architecture's config.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct RopeConfig {
    rope_theta: Option<f32>,
    #[serde(default)]
    rope_traditional: bool,
    rope_scaling: Option<Settings>,
    /// Where newer versions of transformers nest all of it.
    rope_parameters: Option<Settings>,
    max_position_embeddings: Option<f64>,
    original_max_position_embeddings: Option<f64>,
    partial_rotary_factor: Option<f32>,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct Settings {
    #[serde(rename = "type")]
    old_type: Option<String>,
    rope_type: Option<String>,
    rope_theta: Option<f32>,
    partial_rotary_factor: Option<f32>,
    factor: Option<f64>,
    original_max_position_embeddings: Option<f64>,
    low_freq_factor: Option<f32>,
    high_freq_factor: Option<f32>,
    beta_fast: Option<f64>,
    beta_slow: Option<f64>,
    mscale: Option<f64>,
    mscale_all_dim: Option<f64>,
    attention_factor: Option<f64>,
    truncate: Option<bool>,
    long_factor: Option<Vec<f32>>,
    long_mscale: Option<f32>,
    /// Settings by kind of layer, as gemma3 nests them.
    full_attention: Option<Box<Settings>>,
    sliding_attention: Option<Box<Settings>>,
}

impl RopeConfig {
    /// Rotation of heads of `head_dim`, with `default_theta` where config.json has no base.
    pub(crate) fn build(
        &self,
        head_dim: i32,
        default_theta: f32,
        compute: Compute,
    ) -> Result<Rope> {
        let nested = self.rope_parameters.as_ref();
        let nested = nested.map(|settings| settings.full_attention.as_deref().unwrap_or(settings));
        let scaling = self.rope_scaling.as_ref().or(nested);
        let theta = self
            .rope_theta
            .or(nested.and_then(|settings| settings.rope_theta));
        let partial = self.partial_rotary_factor;
        let partial = partial.or(nested.and_then(|settings| settings.partial_rotary_factor));
        let dims = partial.map_or(head_dim, |part| (head_dim as f32 * part) as i32);
        let scaling = match scaling {
            Some(settings) => self.scaling(settings, dims)?,
            None => RopeScaling::None,
        };
        let theta = theta.unwrap_or(default_theta);
        Rope::new(
            (dims, head_dim),
            theta,
            self.rope_traditional,
            &scaling,
            compute,
        )
    }

    /// Positions that the model was made for, where config.json says.
    pub(crate) fn positions(&self) -> Option<usize> {
        self.max_position_embeddings
            .map(|positions| positions as usize)
    }

    /// The base for layers with a window, where it is nested.
    pub(crate) fn sliding_theta(&self) -> Option<f32> {
        self.rope_parameters
            .as_ref()?
            .sliding_attention
            .as_ref()?
            .rope_theta
    }

    /// Refuses the kinds of scaling that mlx-lm's phi3 does not compute.
    pub(crate) fn check_phi3(&self) -> Result<()> {
        let settings = self.rope_scaling.as_ref().or(self.rope_parameters.as_ref());
        match settings.and_then(Settings::kind) {
            None | Some("default" | "longrope" | "su" | "linear") => Ok(()),
            Some(other) => Err(unsupported(
                &format!("type = {other}"),
                "phi3 checkpoints use longrope, su or linear",
            )),
        }
    }

    fn scaling(&self, settings: &Settings, dims: i32) -> Result<RopeScaling> {
        let factor = || required("factor", settings.factor);
        Ok(match settings.kind().unwrap_or("default") {
            "default" => RopeScaling::None,
            "linear" => RopeScaling::Linear {
                factor: factor()? as f32,
            },
            "llama3" => RopeScaling::Llama3 {
                factor: factor()? as f32,
                low_factor: settings.low_freq_factor.unwrap_or(1.0),
                high_factor: settings.high_freq_factor.unwrap_or(4.0),
                original_length: settings.original_max_position_embeddings.unwrap_or(8192.0) as f32,
            },
            "yarn" => {
                let yarn = Yarn {
                    factor: factor()?,
                    original_length: settings.original_max_position_embeddings.unwrap_or(4096.0),
                    beta_fast: settings.beta_fast.unwrap_or(32.0),
                    beta_slow: settings.beta_slow.unwrap_or(1.0),
                    mscale: settings.mscale.unwrap_or(1.0),
                    mscale_all_dim: settings.mscale_all_dim.unwrap_or(0.0),
                };
                if settings.truncate == Some(false) {
                    return Err(unsupported(
                        "truncate = false",
                        "yarn rounds its range here",
                    ));
                }
                settings.check_magnitude(yarn.magnitude())?;
                RopeScaling::Yarn(yarn)
            }
            "longrope" | "su" => {
                let factors = required("long_factor", settings.long_factor.clone())?;
                if factors.len() as i32 != dims / 2 {
                    let reason = format!("{} factors for {} features", factors.len(), dims / 2);
                    return Err(unsupported("long_factor", reason));
                }
                let original = settings.original_max_position_embeddings;
                let original = original
                    .or(self.original_max_position_embeddings)
                    .unwrap_or(4096.0);
                let stretch = self.max_position_embeddings.unwrap_or(131_072.0) / original;
                let magnitude = if stretch <= 1.0 {
                    1.0
                } else {
                    (1.0 + stretch.ln() / original.ln()).sqrt() as f32
                };
                let magnitude = settings.long_mscale.unwrap_or(magnitude);
                settings.check_magnitude(magnitude)?;
                RopeScaling::LongRope { factors, magnitude }
            }
            other => {
                let known = "known are default, linear, llama3, yarn, longrope and su";
                return Err(unsupported(&format!("rope_type = {other}"), known));
            }
        })
    }
}

impl Settings {
    fn kind(&self) -> Option<&str> {
        self.old_type.as_deref().or(self.rope_type.as_deref())
    }

    /// Refuses an `attention_factor` that says otherwise than the rule that mlx-lm applies.
    fn check_magnitude(&self, magnitude: f32) -> Result<()> {
        match self.attention_factor {
            Some(factor) if (factor as f32 - magnitude).abs() > 1e-4 => Err(unsupported(
                &format!("attention_factor = {factor}"),
                format!("its other settings give {magnitude}"),
            )),
            _ => Ok(()),
        }
    }
}

fn required<T>(name: &str, value: Option<T>) -> Result<T> {
    value.ok_or_else(|| unsupported(name, "it is missing"))
}

fn unsupported(setting: &str, reason: impl Into<String>) -> ModelError {
    ModelError::unsupported(format!("rope_scaling.{setting}"), reason)
}
