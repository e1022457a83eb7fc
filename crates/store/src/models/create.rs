//! A model made of another: a copy of its folder, with what is said of the new one.

use std::{fs, io, path::Path, sync::Arc};

use macmlx_inference::{ModelCard, Modelfile, NewModel};

use super::{
    CopyError, Library,
    copy::{self, Staging},
    description::{is_license, json},
};

/// Holds a [`Modelfile`].
const FILE: &str = "modelfile.json";

const TEMPLATE: &str = "chat_template.jinja";

/// A model that is whole, but has no place in the library yet.
#[derive(Debug)]
pub struct Prepared {
    staging: Staging,
    card: ModelCard,
}

impl Prepared {
    /// The model as it is going to be.
    pub fn card(&self) -> &ModelCard {
        &self.card
    }
}

/// What a model's folder says of the model, if it was made from another.
pub(super) fn modelfile(folder: &Path) -> Result<Option<Arc<Modelfile>>, String> {
    let path = folder.join(FILE);
    if !path.is_file() {
        return Ok(None);
    }
    macmlx_json::read(&json(&path))
        .map(|modelfile| Some(Arc::new(modelfile)))
        .map_err(|error| format!("{FILE} is damaged: {error}"))
}

/// Text that tells a model that was made from another from that one; empty for other models.
pub(super) fn identity(folder: &Path) -> String {
    match fs::read_to_string(folder.join(FILE)) {
        Ok(said) => said + &fs::read_to_string(folder.join(TEMPLATE)).unwrap_or_default(),
        Err(_) => String::new(),
    }
}

impl Library {
    /// Makes a model of another. A model of the same name must have been made so, too.
    pub fn prepare(&self, new: &NewModel) -> Result<Prepared, CopyError> {
        let parent = self.resolve(&new.modelfile.from)?;
        let id = copy::new_id(&new.name)?;
        let target = self.root().join(id);
        if target.exists() {
            let there = self.find(id)?;
            let was_made = there.card().is_some_and(|card| card.modelfile.is_some());
            if there.path != target || !was_made {
                return Err(CopyError::Taken(id.to_owned()));
            }
        }
        let inherited = parent.modelfile.as_deref().cloned().unwrap_or_default();
        let modelfile = Modelfile {
            from: parent.id.clone(),
            ..new.modelfile.clone()
        }
        .or(inherited);
        let failed = |source| CopyError::Io {
            path: target.clone(),
            source,
        };
        let staging = copy::stage(&parent.path, self.root()).map_err(failed)?;
        let folder = staging.model();
        write(&folder, new, &modelfile).map_err(failed)?;
        let card = ModelCard {
            id: id.to_owned(),
            path: folder,
            modelfile: Some(Arc::new(modelfile)),
            ..parent
        };
        Ok(Prepared { staging, card })
    }

    /// Puts a model that was made into its place.
    pub fn put(&self, prepared: &Prepared) -> Result<(), CopyError> {
        copy::put(&prepared.staging, self.root(), &prepared.card.id)
    }
}

fn write(folder: &Path, new: &NewModel, modelfile: &Modelfile) -> io::Result<()> {
    let text = serde_json::to_vec_pretty(modelfile)?;
    fs::write(folder.join(FILE), text)?;
    if let Some(template) = &new.template {
        fs::write(folder.join(TEMPLATE), template)?;
        // It would be used beside the new one where there are tools.
        let others = folder.join("additional_chat_templates");
        if others.is_dir() {
            fs::remove_dir_all(others)?;
        }
    }
    if let Some(license) = &new.license {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_name().to_str().is_some_and(is_license) {
                fs::remove_file(entry.path())?;
            }
        }
        fs::write(folder.join("LICENSE"), license)?;
    }
    Ok(())
}
