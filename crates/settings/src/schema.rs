//! The settings themselves: one field each, its default, and its row on the screen.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    HostPattern, OriginPattern, ToolPolicy,
    setting::{Control, Group, Setting, Unit, null, number, setting, text},
};

/// Settings as `settings.json` holds them, in the key spelling of existing macMLX installations.
///
/// Keys that are not here stay in the file untouched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Settings {
    /// Address the server binds. Anything but loopback needs an API key.
    pub server_host: String,
    pub server_port: u16,
    /// Key clients must send; none or empty: no key. Read and never shown.
    #[serde(rename = "serverAPIKey", skip_serializing)]
    pub server_api_key: Option<String>,
    /// Names under which the server may be reached beside those of this machine, such as
    /// `mini.example.org`, `*.example.org` or `*`.
    #[schema(value_type = Vec<String>)]
    pub allowed_hosts: Vec<HostPattern>,
    /// Web pages that may call client routes beside those of this machine, such as
    /// `https://chat.example.org`, `http://192.168.1.*`, `chrome-extension://*` or `*`.
    #[schema(value_type = Vec<String>)]
    pub allowed_origins: Vec<OriginPattern>,
    /// Model the server loads at start, `run` uses when none is named, and that answers to unknown
    /// names.
    pub default_model: Option<String>,
    /// Other names for models: name and the reference it stands for.
    pub model_aliases: BTreeMap<String, String>,
    /// How requests for models that are not here, such as `gpt-4o`, are answered.
    pub unknown_models: UnknownModels,
    /// Models whose chat template takes no tools are told about them in the system turn.
    pub generic_tools: bool,
    /// Folder of the models, in place of `models/` in the home.
    pub model_directory: Option<String>,
    /// Hub, or a mirror of it.
    pub hf_endpoint: String,
    /// Sequences that are decoded together.
    pub max_batch_size: u32,
    /// Requests that may wait before new ones are turned away.
    pub max_waiting_requests: u32,
    /// Prompt tokens computed between two decode steps.
    pub prefill_chunk_tokens: u32,
    /// On a CPU, quantized weights are held dequantized when they need no more than this; 0 keeps
    /// them quantized.
    #[serde(rename = "dequantizeBudgetGB")]
    pub dequantize_budget_gb: f64,
    /// Bits of the KV cache (4 or 8); none keeps it in the model's precision.
    pub kv_bits: Option<u8>,
    /// Values that share a scale in a quantized KV cache.
    pub kv_group_size: u32,
    /// Tokens of a sequence after which its KV cache is quantized.
    pub kv_quantization_start: u32,
    /// Upper bound for the weights of all models in memory: a model that exceeds it is not loaded.
    /// None: as much as there is.
    #[serde(rename = "maxResidentMemoryGB")]
    pub max_resident_memory_gb: Option<f64>,
    /// Days after which log files are removed.
    pub log_retention_days: u32,
    /// The app opens the door when it starts.
    pub auto_start_server: bool,
    /// The first run was seen through.
    pub onboarding_complete: bool,
    /// Language of the UI.
    pub language: Language,
    pub theme: Theme,
    /// What MCP tools (`server__tool`) may do; those that are not here are asked about.
    pub tool_policies: BTreeMap<String, ToolPolicy>,
}

/// How requests for unknown models are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum UnknownModels {
    /// The default model answers, and says so.
    #[default]
    Default,
    /// They are refused.
    Refuse,
}

/// Language of the UI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub enum Language {
    /// The system's, or English where that is not translated to.
    #[default]
    #[serde(rename = "system")]
    System,
    #[serde(rename = "en")]
    English,
    #[serde(rename = "zh-Hans")]
    SimplifiedChinese,
}

/// Colours of the UI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Theme {
    #[default]
    System,
    Light,
    Dark,
}

/// The settings that have a row on the screen, in the order they are shown.
pub const SETTINGS: &[Setting] = &[
    setting(
        Group::General,
        "language",
        Control::Choice {
            options: &[
                text("system", "Match the system"),
                text("en", "English"),
                text("zh-Hans", "简体中文"),
            ],
        },
        "Language",
        "Of this window and the menu bar.",
    ),
    setting(
        Group::General,
        "theme",
        Control::Choice {
            options: &[
                text("system", "Match the system"),
                text("light", "Light"),
                text("dark", "Dark"),
            ],
        },
        "Theme",
        "Light, dark, or what the system has.",
    ),
    setting(
        Group::General,
        "modelDirectory",
        Control::Path,
        "Models folder",
        "Where downloads go and models are looked for. Models that are elsewhere are not moved.",
    ).at_start(),
    setting(
        Group::Models,
        "hfEndpoint",
        Control::Url,
        "Hub address",
        "Where models are searched and downloaded; a mirror has the same layout.",
    ),
    setting(
        Group::Models,
        "defaultModel",
        Control::Model,
        "Default model",
        "Loaded when the server starts, and answers requests that name no model.",
    ),
    setting(
        Group::Models,
        "unknownModels",
        Control::Choice {
            options: &[
                text("default", "The default model answers"),
                text("refuse", "Refuse them"),
            ],
        },
        "Requests for unknown models",
        "Many clients ask for names such as gpt-4o that no local model has. Without a default model, the model in use answers, or else the newest.",
    ),
    setting(
        Group::Models,
        "genericTools",
        Control::Switch,
        "Tools for every chat model",
        "Models whose chat template takes no tools are told about them in a notation that is the same for all. Off, requests with tools are refused for them.",
    ),
    setting(
        Group::Server,
        "autoStartServer",
        Control::Switch,
        "Start the server with the app",
        "Switches the server on as soon as the app starts.",
    ),
    setting(
        Group::Server,
        "serverPort",
        Control::Port,
        "Port",
        "From 1 to 65535. Holds when the server is switched on.",
    ),
    setting(
        Group::Server,
        "serverHost",
        Control::Host,
        "Host",
        "127.0.0.1 is this computer only, 0.0.0.0 every network. Holds when the server is switched on.",
    ),
    setting(
        Group::Server,
        "allowedHosts",
        Control::List,
        "Allowed hosts",
        "Names this server answers to beside those of this computer, such as mini.example.org or *.example.org. * is any name.",
    ),
    setting(
        Group::Server,
        "allowedOrigins",
        Control::List,
        "Allowed origins",
        "Web pages that may use this server beside those of this computer, such as https://chat.example.org, http://192.168.1.* or chrome-extension://*. * is any page.",
    ),
    setting(
        Group::Performance,
        "maxBatchSize",
        Control::Whole {
            least: 1,
            unit: None,
        },
        "Requests at once",
        "Requests that are answered at the same time.",
    ).at_start(),
    setting(
        Group::Performance,
        "maxWaitingRequests",
        Control::Whole {
            least: 0,
            unit: None,
        },
        "Waiting requests",
        "More than these are turned away and may try again later.",
    ).at_start(),
    setting(
        Group::Performance,
        "prefillChunkTokens",
        Control::Whole {
            least: 1,
            unit: Some(Unit::Tokens),
        },
        "Prefill chunk",
        "Tokens of a prompt that are read between two steps of running answers. Less keeps those smoother, more reads faster.",
    ).at_start(),
    setting(
        Group::Performance,
        "kvBits",
        Control::Choice {
            options: &[
                null("Full precision"),
                number(8, "8 bits"),
                number(4, "4 bits"),
            ],
        },
        "KV cache",
        "Fewer bits hold longer conversations in the same memory, at some loss of quality.",
    ).at_start(),
    setting(
        Group::Performance,
        "kvGroupSize",
        Control::Choice {
            options: &[
                number(32, "32"),
                number(64, "64"),
                number(128, "128"),
            ],
        },
        "KV cache group size",
        "Values that share a scale in a quantized KV cache.",
    ).at_start(),
    setting(
        Group::Performance,
        "kvQuantizationStart",
        Control::Whole {
            least: 0,
            unit: Some(Unit::Tokens),
        },
        "Quantize the KV cache after",
        "The first tokens of a conversation stay in full precision.",
    ).at_start(),
    setting(
        Group::Performance,
        "dequantizeBudgetGB",
        Control::Decimal {
            is_zero_allowed: true,
            unit: Some(Unit::Gigabytes),
        },
        "Dequantize up to",
        "On CPUs, quantized weights up to this size are held dequantized, which is much faster. 0 never does that.",
    ).at_start(),
    setting(
        Group::Performance,
        "maxResidentMemoryGB",
        Control::Decimal {
            is_zero_allowed: false,
            unit: Some(Unit::Gigabytes),
        },
        "Memory limit",
        "For the weights of all models in memory. A model that exceeds it is not loaded. Empty: as much as there is.",
    ).at_start(),
    setting(
        Group::Logs,
        "logRetentionDays",
        Control::Whole {
            least: 0,
            unit: Some(Unit::Days),
        },
        "Keep logs for",
        "Older log files are deleted.",
    ),
];

impl Settings {
    /// [`Self::dequantize_budget_gb`] in bytes.
    pub fn dequantize_budget_bytes(&self) -> u64 {
        bytes_of_gb(self.dequantize_budget_gb)
    }

    /// [`Self::max_resident_memory_gb`] in bytes.
    pub fn max_resident_memory_bytes(&self) -> Option<u64> {
        self.max_resident_memory_gb.map(bytes_of_gb)
    }
}

/// Gigabytes are those of memory, of 1024 × 1024 × 1024 bytes. Less than none is none.
fn bytes_of_gb(gigabytes: f64) -> u64 {
    (gigabytes.max(0.0) * f64::from(1 << 30)) as u64
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            server_host: "127.0.0.1".into(),
            server_port: 8000,
            server_api_key: None,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            default_model: None,
            model_aliases: BTreeMap::new(),
            unknown_models: UnknownModels::Default,
            generic_tools: true,
            model_directory: None,
            hf_endpoint: "https://huggingface.co".into(),
            max_batch_size: 32,
            max_waiting_requests: 256,
            prefill_chunk_tokens: 512,
            dequantize_budget_gb: 4.0,
            kv_bits: None,
            kv_group_size: 64,
            kv_quantization_start: 0,
            max_resident_memory_gb: None,
            log_retention_days: 7,
            auto_start_server: false,
            onboarding_complete: false,
            language: Language::System,
            theme: Theme::System,
            tool_policies: BTreeMap::new(),
        }
    }
}

impl Settings {
    /// The key clients must send, if any.
    pub fn api_key(&self) -> Option<&str> {
        self.server_api_key.as_deref().filter(|key| !key.is_empty())
    }
}
