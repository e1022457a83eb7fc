//! Copies of fixtures to spoil.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
};

use mlx_rs::Array;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;

/// MLX has one default stream; tests take turns.
pub(crate) fn mlx() -> MutexGuard<'static, ()> {
    static MLX: Mutex<()> = Mutex::new(());
    MLX.lock()
}

/// A copy of a parity fixture to spoil.
pub(crate) struct Folder {
    _home: tempfile::TempDir,
    pub(crate) path: PathBuf,
}

impl Folder {
    /// Copies `fixture` below `tests/parity`.
    pub(crate) fn of(fixture: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/parity");
        copy(&source.join(fixture), home.path());
        Self {
            path: home.path().to_owned(),
            _home: home,
        }
    }

    /// Sets settings of config.json, or removes them by `null`.
    pub(crate) fn with(self, settings: Value) -> Self {
        self.with_file("config.json", settings)
    }

    /// Sets settings of a JSON file, or removes them by `null`.
    pub(crate) fn with_file(self, file: &str, settings: Value) -> Self {
        let path = self.path.join(file);
        let mut config: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let config_map = config.as_object_mut().unwrap();
        let Value::Object(settings) = settings else {
            panic!("settings are an object")
        };
        for (name, value) in settings {
            if value.is_null() {
                config_map.shift_remove(&name);
            } else {
                config_map.insert(name, value);
            }
        }
        fs::write(path, config.to_string()).unwrap();
        self
    }

    /// Changes the tensors.
    pub(crate) fn with_tensors(self, change: impl FnOnce(&mut HashMap<String, Array>)) -> Self {
        let path = self.path.join("model.safetensors");
        let mut tensors = Array::load_safetensors(&path).unwrap();
        mlx_rs::transforms::eval(tensors.values()).unwrap();
        change(&mut tensors);
        Array::save_safetensors(tensors.iter(), None, &path).unwrap();
        self
    }
}

fn copy(source: &Path, target: &Path) {
    fs::create_dir_all(target).unwrap();
    for entry in fs::read_dir(source).unwrap() {
        let entry = entry.unwrap();
        let target = target.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
