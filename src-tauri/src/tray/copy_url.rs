//! Copies the server's address.

use arboard::Clipboard;
use parking_lot::Mutex;
use tauri::{
    AppHandle, Wry,
    menu::{IsMenuItem, MenuItem},
};

use super::{Item, View, state::DoorState};

const ID: &str = "copy_url";

struct CopyUrl {
    entry: MenuItem<Wry>,
    url: Mutex<Option<String>>,
    /// Kept, since on X11 the one who copied must be there when others paste.
    clipboard: Mutex<Option<Clipboard>>,
}

pub(super) fn build(app: &AppHandle) -> tauri::Result<Box<dyn Item>> {
    Ok(Box::new(CopyUrl {
        entry: MenuItem::with_id(app, ID, "", false, None::<&str>)?,
        url: Mutex::default(),
        clipboard: Mutex::default(),
    }))
}

impl Item for CopyUrl {
    fn id(&self) -> &'static str {
        ID
    }

    fn entry(&self) -> &dyn IsMenuItem<Wry> {
        &self.entry
    }

    fn refresh(&self, _app: &AppHandle, View { state, strings }: View<'_>) -> tauri::Result<()> {
        let url = (state.door.state == DoorState::Open)
            .then(|| state.door.url.clone())
            .flatten();
        self.entry.set_enabled(url.is_some())?;
        *self.url.lock() = url;
        self.entry.set_text(strings.copy_url)
    }

    fn handle(&self, _app: &AppHandle, _argument: &str) {
        let url = self.url.lock();
        let Some(url) = url.as_deref() else { return };
        if let Err(error) = self.copy(url) {
            tracing::warn!(%error, "the server's address cannot be copied");
        }
    }
}

impl CopyUrl {
    fn copy(&self, text: &str) -> Result<(), arboard::Error> {
        let mut clipboard = self.clipboard.lock();
        let clipboard = match &mut *clipboard {
            Some(clipboard) => clipboard,
            none => none.insert(Clipboard::new()?),
        };
        clipboard.set_text(text)
    }
}
