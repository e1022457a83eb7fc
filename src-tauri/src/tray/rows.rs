//! A submenu whose rows come and go.

use parking_lot::Mutex;
use tauri::{
    AppHandle, Wry,
    menu::{MenuItem, Submenu},
};

pub(super) struct Rows {
    pub(super) submenu: Submenu<Wry>,
    shown: Mutex<Vec<MenuItem<Wry>>>,
}

impl Rows {
    /// An empty submenu. On Linux its title stays the first one.
    pub(super) fn new(app: &AppHandle, id: &str, title: &str) -> tauri::Result<Self> {
        Ok(Self {
            submenu: Submenu::with_id(app, id, title, false)?,
            shown: Mutex::default(),
        })
    }

    /// Shows these rows, each an id and a text. Rows that stay are changed in place, so that an open
    /// menu does not flicker.
    pub(super) fn show(&self, app: &AppHandle, rows: &[(String, String)]) -> tauri::Result<()> {
        let mut shown = self.shown.lock();
        let is_same = shown.len() == rows.len()
            && shown
                .iter()
                .zip(rows)
                .all(|(item, (id, _))| item.id().0 == *id);
        if is_same {
            for (item, (_, text)) in shown.iter().zip(rows) {
                item.set_text(text)?;
            }
            return Ok(());
        }
        for item in shown.drain(..) {
            self.submenu.remove(&item)?;
        }
        for (id, text) in rows {
            let item = MenuItem::with_id(app, id, text, true, None::<&str>)?;
            self.submenu.append(&item)?;
            shown.push(item);
        }
        self.submenu.set_enabled(!rows.is_empty())
    }
}
