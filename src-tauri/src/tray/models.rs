//! The loaded models, each with its size and unloaded by a click.

use http::Method;
use serde_json::json;
use tauri::{AppHandle, Wry, menu::IsMenuItem};

use super::{Item, View, rows::Rows};
use crate::{
    router,
    strings::{self, fill},
};

const ID: &str = "models";

struct Models(Rows);

pub(super) fn build(app: &AppHandle) -> tauri::Result<Box<dyn Item>> {
    Ok(Box::new(Models(Rows::new(
        app,
        ID,
        strings::of(None).models,
    )?)))
}

impl Item for Models {
    fn id(&self) -> &'static str {
        ID
    }

    fn entry(&self) -> &dyn IsMenuItem<Wry> {
        &self.0.submenu
    }

    fn refresh(&self, app: &AppHandle, View { state, strings }: View<'_>) -> tauri::Result<()> {
        self.0.submenu.set_text(strings.models)?;
        let rows: Vec<_> = state
            .models
            .iter()
            .map(|model| {
                let size = gigabytes(model.memory_bytes);
                let values = [("model", model.id.as_str()), ("size", &size)];
                (format!("{ID}:{}", model.id), fill(strings.unload, &values))
            })
            .collect();
        self.0.show(app, &rows)
    }

    fn handle(&self, app: &AppHandle, model: &str) {
        router::act(
            app,
            Method::POST,
            "/x/models/unload".to_owned(),
            Some(json!({ "model": model })),
        );
    }
}

fn gigabytes(bytes: u64) -> String {
    format!("{:.1} GB", bytes as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_one_decimal() {
        assert_eq!(gigabytes(1_549_000_000), "1.5 GB");
        assert_eq!(gigabytes(90_000_000), "0.1 GB");
    }
}
