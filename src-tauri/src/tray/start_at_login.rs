//! Whether the app starts with the session: off until asked for.

use tauri::{
    AppHandle, Wry, async_runtime,
    menu::{CheckMenuItem, IsMenuItem},
};
use tauri_plugin_autostart::ManagerExt as _;

use super::{Item, View};

const ID: &str = "start_at_login";

struct StartAtLogin(CheckMenuItem<Wry>);

pub(super) fn build(app: &AppHandle) -> tauri::Result<Box<dyn Item>> {
    let is_on = app.autolaunch().is_enabled().unwrap_or(false);
    let entry = CheckMenuItem::with_id(app, ID, "", true, is_on, None::<&str>)?;
    Ok(Box::new(StartAtLogin(entry)))
}

impl Item for StartAtLogin {
    fn id(&self) -> &'static str {
        ID
    }

    fn entry(&self) -> &dyn IsMenuItem<Wry> {
        &self.0
    }

    fn refresh(&self, _app: &AppHandle, view: View<'_>) -> tauri::Result<()> {
        self.0.set_text(view.strings.start_at_login)
    }

    fn handle(&self, app: &AppHandle, _argument: &str) {
        let app = app.clone();
        let entry = self.0.clone();
        async_runtime::spawn_blocking(move || {
            // The system has already turned the mark: it shows what is wanted.
            let changed = match entry.is_checked() {
                Ok(true) => app.autolaunch().enable(),
                _ => app.autolaunch().disable(),
            };
            if let Err(error) = changed {
                tracing::warn!(%error, "the login item cannot be changed");
            }
            let is_on = app.autolaunch().is_enabled().unwrap_or(false);
            if let Err(error) = entry.set_checked(is_on) {
                tracing::warn!(%error, "the login item cannot be shown");
            }
        });
    }
}
