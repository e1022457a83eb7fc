//! `<seed:tool_call><function=f><parameter=p>…</parameter></function></seed:tool_call>`: Seed-OSS.

use super::qwen3_coder::FUNCTION_TAGS;
use crate::readers::tagged_format::Tagged;

pub(super) static SEED_OSS: Tagged = Tagged {
    name: "seed_oss",
    detect: |template| template.contains("seed:tool_call"),
    open: &["<seed:tool_call>"],
    close: "</seed:tool_call>",
    tags: FUNCTION_TAGS,
    shares_block: false,
};
