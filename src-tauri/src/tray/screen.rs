//! An item that opens the window at one of its screens.

use tauri::{
    AppHandle, Wry,
    menu::{IsMenuItem, MenuItem},
};

use super::{Item, View};
use crate::{strings::Strings, window};

pub(super) struct Screen {
    id: &'static str,
    entry: MenuItem<Wry>,
    text: fn(&Strings) -> &'static str,
    /// Without one the window shows what it showed last.
    route: Option<&'static str>,
}

impl Screen {
    pub(super) fn build(
        app: &AppHandle,
        id: &'static str,
        text: fn(&Strings) -> &'static str,
        route: Option<&'static str>,
    ) -> tauri::Result<Box<dyn Item>> {
        Ok(Box::new(Self {
            id,
            entry: MenuItem::with_id(app, id, "", true, None::<&str>)?,
            text,
            route,
        }))
    }
}

impl Item for Screen {
    fn id(&self) -> &'static str {
        self.id
    }

    fn entry(&self) -> &dyn IsMenuItem<Wry> {
        &self.entry
    }

    fn refresh(&self, _app: &AppHandle, view: View<'_>) -> tauri::Result<()> {
        self.entry.set_text((self.text)(view.strings))
    }

    fn handle(&self, app: &AppHandle, _argument: &str) {
        window::show(app, self.route);
    }
}
