//! Real MCP servers out of packages, for the tests of the client.

use std::path::PathBuf;

use anyhow::Result;

use crate::{npm, venv, workspace};

/// Where the tests find them: variables and their values.
pub(super) fn servers() -> Result<[(&'static str, PathBuf); 3]> {
    let folder = workspace::root().join("tests/mcp");
    Ok([
        (
            "MACMLX_MCP_PACKAGES",
            npm::ensure(&folder)?.join("node_modules"),
        ),
        ("MACMLX_MCP_NODE", npm::node()?.join("node")),
        (
            "MACMLX_MCP_PYTHON",
            venv::ensure(&folder.join("requirements.txt"))?,
        ),
    ])
}
