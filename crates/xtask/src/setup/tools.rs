//! The programs and system libraries a build needs, and how to get them.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Result, bail};

use crate::{pypi, shell};

/// A system library or program: the package that brings it on each family of distributions, and
/// whether it is here already.
struct Need {
    debian: &'static str,
    fedora: &'static str,
    arch: &'static str,
    suse: &'static str,
    is_present: fn() -> bool,
}

/// What linking and running need, checked on every set-up.
const TO_LINK: &[Need] = &[Need {
    debian: "g++",
    fedora: "gcc-c++",
    arch: "gcc",
    suse: "gcc-c++",
    is_present: || shell::find_program("c++").is_some(),
}];

/// What building MLX's bindings needs besides, checked only when they are built.
const TO_BUILD: &[Need] = &[
    Need {
        debian: "cmake",
        fedora: "cmake",
        arch: "cmake",
        suse: "cmake",
        is_present: || shell::find_program("cmake").is_some(),
    },
    Need {
        debian: "make",
        fedora: "make",
        arch: "make",
        suse: "make",
        is_present: || shell::find_program("make").is_some(),
    },
    Need {
        debian: "libfmt-dev",
        fedora: "fmt-devel",
        arch: "fmt",
        suse: "fmt-devel",
        is_present: || compiles("#include <format>") || compiles("#include <fmt/format.h>"),
    },
    Need {
        debian: "libclang-dev",
        fedora: "clang-devel",
        arch: "clang",
        suse: "clang-devel",
        is_present: has_libclang,
    },
    Need {
        debian: "python3-pip",
        fedora: "python3-pip",
        arch: "python-pip",
        suse: "python3-pip",
        is_present: || shell::succeeds(pypi::python().args(["-m", "pip", "--version"])),
    },
];

/// What Python environments need besides.
const TO_MAKE_ENVIRONMENTS: &[Need] = &[Need {
    debian: "python3-venv",
    fedora: "python3",
    arch: "python",
    suse: "python3",
    is_present: || shell::succeeds(pypi::python().args(["-c", "import ensurepip, venv"])),
}];

/// What type-checking for macOS on Linux needs besides: there libclang finds its own headers only
/// with the compiler's help.
const TO_CHECK_MACOS: &[Need] = &[Need {
    debian: "clang",
    fedora: "clang",
    arch: "clang",
    suse: "clang",
    is_present: || shell::find_program("clang").is_some(),
}];

/// What the desktop app links besides.
const TO_BUILD_DESKTOP: &[Need] = &[
    Need {
        debian: "libwebkit2gtk-4.1-dev",
        fedora: "webkit2gtk4.1-devel",
        arch: "webkit2gtk-4.1",
        suse: "webkit2gtk3-devel",
        is_present: || has_library("webkit2gtk-4.1"),
    },
    Need {
        debian: "libayatana-appindicator3-dev",
        fedora: "libayatana-appindicator-gtk3-devel",
        arch: "libayatana-appindicator",
        suse: "libayatana-appindicator3-devel",
        is_present: || has_library("ayatana-appindicator3-0.1"),
    },
    Need {
        debian: "librsvg2-dev",
        fedora: "librsvg2-devel",
        arch: "librsvg",
        suse: "librsvg-devel",
        is_present: || has_library("librsvg-2.0"),
    },
];

/// What driving the desktop app without a display needs besides.
const TO_TEST_DESKTOP: &[Need] = &[
    Need {
        debian: "webkit2gtk-driver",
        fedora: "webkit2gtk-driver",
        arch: "webkit2gtk-4.1",
        suse: "webkit2gtk-driver",
        is_present: || shell::find_program("WebKitWebDriver").is_some(),
    },
    Need {
        debian: "xvfb",
        fedora: "xorg-x11-server-Xvfb",
        arch: "xorg-server-xvfb",
        suse: "xorg-x11-server-Xvfb",
        is_present: || shell::find_program("Xvfb").is_some(),
    },
    Need {
        debian: "dbus",
        fedora: "dbus-daemon",
        arch: "dbus",
        suse: "dbus-1",
        is_present: || shell::find_program("dbus-run-session").is_some(),
    },
];

/// What driving the UI in a browser needs.
const TO_TEST_IN_A_BROWSER: &[Need] = &[
    Need {
        debian: "chromium",
        fedora: "chromium",
        arch: "chromium",
        suse: "chromium",
        is_present: || chromium().is_some(),
    },
    // The UI has Chinese text, and pictures are taken of it.
    Need {
        debian: "fonts-noto-cjk",
        fedora: "google-noto-sans-cjk-fonts",
        arch: "noto-fonts-cjk",
        suse: "noto-sans-cjk-fonts",
        is_present: || {
            shell::output(Command::new("fc-list").arg(":lang=zh"))
                .is_ok_and(|fonts| !fonts.trim().is_empty())
        },
    },
];

/// Chromium or a browser made of it.
pub(crate) fn chromium() -> Option<PathBuf> {
    ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find_map(shell::find_program)
        .or_else(|| {
            let bundle = Path::new("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome");
            bundle.is_file().then(|| bundle.to_owned())
        })
}

fn has_library(name: &str) -> bool {
    shell::succeeds(Command::new("pkg-config").args(["--exists", name]))
}

/// Whether everything is there that the desktop app links.
pub(crate) fn can_build_desktop() -> bool {
    !cfg!(target_os = "linux") || TO_BUILD_DESKTOP.iter().all(|need| (need.is_present)())
}

pub(crate) fn ensure_to_build_desktop() -> Result<()> {
    if cfg!(target_os = "linux") {
        ensure(TO_BUILD_DESKTOP)
    } else {
        Ok(())
    }
}

pub(crate) fn ensure_to_test_desktop() -> Result<()> {
    ensure(TO_TEST_DESKTOP)
}

pub(crate) fn ensure_to_test_in_a_browser() -> Result<()> {
    ensure(TO_TEST_IN_A_BROWSER)
}

pub(crate) fn ensure_to_link() -> Result<()> {
    ensure(TO_LINK)
}

pub(crate) fn ensure_to_build() -> Result<()> {
    ensure(TO_BUILD)
}

pub(crate) fn ensure_to_make_environments() -> Result<()> {
    if cfg!(target_os = "linux") {
        ensure(TO_MAKE_ENVIRONMENTS)
    } else {
        Ok(())
    }
}

pub(crate) fn ensure_to_check_macos() -> Result<()> {
    ensure(TO_CHECK_MACOS)
}

/// Installs what is absent where that is ours to do (root on Debian and its kin), else says what
/// to install.
fn ensure(needs: &[Need]) -> Result<()> {
    let missing: Vec<&Need> = needs.iter().filter(|need| !(need.is_present)()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let packages = |name: fn(&Need) -> &'static str| {
        missing
            .iter()
            .map(|need| name(need))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let debian = packages(|need| need.debian);
    if shell::find_program("apt-get").is_some() {
        if !is_root() {
            bail!("packages are missing; run: sudo apt-get install {debian}");
        }
        apt_install(&debian)?;
        if let Some(need) = missing.iter().find(|need| !(need.is_present)()) {
            bail!(
                "{} is installed and still not found; is another one first?",
                need.debian
            );
        }
        return Ok(());
    }
    for (program, command, name) in [
        (
            "dnf",
            "sudo dnf install",
            (|need| need.fedora) as fn(&Need) -> &'static str,
        ),
        ("pacman", "sudo pacman -S", |need| need.arch),
        ("zypper", "sudo zypper install", |need| need.suse),
    ] {
        if shell::find_program(program).is_some() {
            bail!("packages are missing; run: {command} {}", packages(name));
        }
    }
    bail!("install what your distribution calls these Debian packages: {debian}");
}

fn apt_install(packages: &str) -> Result<()> {
    println!("setup: installing {packages}");
    let apt = || {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive").args([
            "-q",
            "-o",
            "DPkg::Lock::Timeout=300",
        ]);
        command
    };
    shell::run(apt().arg("update"))?;
    shell::run(
        apt()
            .args(["install", "-y", "--no-install-recommends"])
            .args(packages.split_whitespace()),
    )
}

fn is_root() -> bool {
    shell::output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

/// Whether the C++ compiler takes a line of source, as C++20.
fn compiles(line: &str) -> bool {
    shell::succeeds(
        Command::new("sh")
            .arg("-c")
            .arg("printf '%s\\n' \"$0\" | c++ -std=c++20 -fsyntax-only -x c++ -")
            .arg(line),
    )
}

/// Whether libclang is where bindgen looks for it.
fn has_libclang() -> bool {
    shell::variable("LIBCLANG_PATH").is_some()
        || [
            "/usr/lib64",
            "/usr/lib",
            "/usr/lib/x86_64-linux-gnu",
            "/usr/lib/aarch64-linux-gnu",
            "/usr/local/lib",
        ]
        .into_iter()
        .any(|folder| holds_libclang(Path::new(folder)))
        || std::fs::read_dir("/usr/lib").is_ok_and(|entries| {
            entries
                .flatten()
                .filter(|entry| entry.file_name().to_string_lossy().starts_with("llvm"))
                .any(|entry| holds_libclang(&entry.path().join("lib")))
        })
}

fn holds_libclang(folder: &Path) -> bool {
    std::fs::read_dir(folder).is_ok_and(|entries| {
        entries.flatten().any(|entry| {
            let name = entry.file_name();
            is_libclang(&name.to_string_lossy())
        })
    })
}

/// `libclang.so.14`, `libclang-14.so.1`; `libclang-cpp.so.14` is another library.
fn is_libclang(name: &str) -> bool {
    name.strip_prefix("libclang").is_some_and(|rest| {
        rest.starts_with(".so")
            || rest.starts_with('-') && rest.contains(".so") && !rest.starts_with("-cpp")
    })
}

/// Says what is missing on macOS, where nothing is installed for the user.
pub(crate) fn check_macos() -> Result<()> {
    let mut missing = Vec::new();
    if !shell::succeeds(Command::new("xcode-select").arg("-p")) {
        missing.push("Xcode's command line tools: xcode-select --install");
    } else if !shell::succeeds(Command::new("xcrun").args(["-sdk", "macosx", "metal", "-v"])) {
        missing.push(
            "the Metal compiler: install Xcode, then \
             `xcodebuild -downloadComponent MetalToolchain`",
        );
    }
    if shell::find_program("cmake").is_none() {
        missing.push("CMake: brew install cmake");
    }
    if shell::find_program("node").is_none() {
        missing.push("Node.js: brew install node");
    }
    if missing.is_empty() {
        println!("setup: everything is here");
        return Ok(());
    }
    bail!("these are missing:\n  {}", missing.join("\n  "));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpp_library_of_clang_is_not_libclang() {
        for name in ["libclang.so", "libclang.so.14", "libclang-14.so.1"] {
            assert!(is_libclang(name), "{name}");
        }
        for name in ["libclang-cpp.so.14", "libclang_rt.so", "clang.so"] {
            assert!(!is_libclang(name), "{name}");
        }
    }
}
