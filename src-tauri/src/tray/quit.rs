//! Quits, after a question when answers are being generated.

use tauri::{
    AppHandle, Wry,
    menu::{IsMenuItem, MenuItem},
};

use super::{Item, View};
use crate::{end, strings::fill};

/// The application menu of macOS has this item too.
pub(crate) const ID: &str = "quit";

struct Quit(MenuItem<Wry>);

pub(super) fn build(app: &AppHandle) -> tauri::Result<Box<dyn Item>> {
    let entry = MenuItem::with_id(app, ID, "", true, None::<&str>)?;
    Ok(Box::new(Quit(entry)))
}

impl Item for Quit {
    fn id(&self) -> &'static str {
        ID
    }

    fn entry(&self) -> &dyn IsMenuItem<Wry> {
        &self.0
    }

    fn refresh(&self, _app: &AppHandle, View { state, strings }: View<'_>) -> tauri::Result<()> {
        match state.throughput.running {
            0 => self.0.set_text(strings.quit),
            count => {
                let values = [("count", &*count.to_string())];
                self.0.set_text(fill(strings.quit_while_answering, &values))
            }
        }
    }

    fn handle(&self, app: &AppHandle, _argument: &str) {
        end::ask(app);
    }
}
