//! Opens the settings.

use tauri::AppHandle;

use super::{Item, screen::Screen};

pub(super) fn build(app: &AppHandle) -> tauri::Result<Box<dyn Item>> {
    Screen::build(
        app,
        "settings",
        |strings| strings.settings,
        Some("#/settings"),
    )
}
