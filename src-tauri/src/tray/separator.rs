//! A line between groups of items.

use tauri::{
    AppHandle, Wry,
    menu::{IsMenuItem, PredefinedMenuItem},
};

use super::{Item, View};

struct Separator(PredefinedMenuItem<Wry>);

pub(super) fn build(app: &AppHandle) -> tauri::Result<Box<dyn Item>> {
    Ok(Box::new(Separator(PredefinedMenuItem::separator(app)?)))
}

impl Item for Separator {
    fn id(&self) -> &'static str {
        "separator"
    }

    fn entry(&self) -> &dyn IsMenuItem<Wry> {
        &self.0
    }

    fn refresh(&self, _app: &AppHandle, _view: View<'_>) -> tauri::Result<()> {
        Ok(())
    }

    fn handle(&self, _app: &AppHandle, _argument: &str) {}
}
