//! Opens the logs.

use tauri::AppHandle;

use super::{Item, screen::Screen};

pub(super) fn build(app: &AppHandle) -> tauri::Result<Box<dyn Item>> {
    Screen::build(app, "logs", |strings| strings.logs, Some("#/logs"))
}
