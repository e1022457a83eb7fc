//! The switch of the server, with its address.

use http::Method;
use tauri::{
    AppHandle, Wry,
    menu::{CheckMenuItem, IsMenuItem},
};

use super::{
    Item, View,
    state::{Door, DoorState},
};
use crate::{
    router,
    strings::{Strings, fill},
};

const ID: &str = "server";

struct Server(CheckMenuItem<Wry>);

pub(super) fn build(app: &AppHandle) -> tauri::Result<Box<dyn Item>> {
    let entry = CheckMenuItem::with_id(app, ID, "", false, false, None::<&str>)?;
    Ok(Box::new(Server(entry)))
}

impl Item for Server {
    fn id(&self) -> &'static str {
        ID
    }

    fn entry(&self) -> &dyn IsMenuItem<Wry> {
        &self.0
    }

    fn refresh(&self, _app: &AppHandle, View { state, strings }: View<'_>) -> tauri::Result<()> {
        self.0.set_enabled(state.is_started)?;
        self.0.set_checked(state.door.state == DoorState::Open)?;
        self.0.set_text(text(&state.door, strings))
    }

    fn handle(&self, app: &AppHandle, _argument: &str) {
        // The system has already turned the mark: it shows what is wanted.
        let path = match self.0.is_checked() {
            Ok(true) => "/x/door/open",
            Ok(false) => "/x/door/close",
            Err(_) => return,
        };
        router::act(app, Method::POST, path.to_owned(), None);
    }
}

fn text(door: &Door, strings: &Strings) -> String {
    match (door.state, &door.url) {
        (DoorState::Open, Some(url)) => fill(strings.server_on, &[("url", url)]),
        (DoorState::Failed, _) => fill(
            strings.server_failed,
            &[("error", door.error.as_deref().unwrap_or_default())],
        ),
        _ => strings.server_off.to_owned(),
    }
}
