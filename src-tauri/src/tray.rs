//! The menu bar: an icon with a state, and a menu of items that each live in a file of their own.
//!
//! Nothing here knows more than the routes tell, and nothing acts but through them.

mod copy_url;
mod downloads;
mod icon;
mod logs;
mod models;
mod open;
pub(crate) mod quit;
mod rows;
mod screen;
mod separator;
mod server;
mod settings;
mod start_at_login;
mod state;
mod status;
mod watch;

use parking_lot::{Mutex, MutexGuard};
use tauri::{
    AppHandle, Manager as _, Wry,
    menu::{IsMenuItem, Menu, MenuId},
    tray::{TrayIcon, TrayIconBuilder},
};

pub(crate) use self::{
    state::{State, Status},
    watch::watch,
};
use crate::strings::{self, Strings};

type Build = fn(&AppHandle) -> tauri::Result<Box<dyn Item>>;

/// Top to bottom.
const ITEMS: &[Build] = &[
    status::build,
    separator::build,
    server::build,
    copy_url::build,
    separator::build,
    models::build,
    downloads::build,
    separator::build,
    open::build,
    settings::build,
    logs::build,
    separator::build,
    start_at_login::build,
    quit::build,
];

/// An entry of the menu.
trait Item: Send + Sync {
    /// Events of the entry carry this, or `id:argument`.
    fn id(&self) -> &'static str;

    fn entry(&self) -> &dyn IsMenuItem<Wry>;

    /// Makes the entry tell what is.
    fn refresh(&self, app: &AppHandle, view: View<'_>) -> tauri::Result<()>;

    /// Runs when the item is chosen.
    fn handle(&self, app: &AppHandle, argument: &str);
}

/// What an entry tells of, and in which words.
#[derive(Clone, Copy)]
struct View<'a> {
    state: &'a State,
    strings: &'static Strings,
}

/// The icon and its menu.
pub(crate) struct Tray {
    icon: TrayIcon,
    items: Vec<Box<dyn Item>>,
    shown: Mutex<Shown>,
}

/// What the menu bar shows by now.
#[derive(Default)]
struct Shown {
    icon: Option<icon::Kind>,
    strings: Option<&'static Strings>,
}

/// Puts the icon into the menu bar.
pub(crate) fn build(app: &AppHandle) -> tauri::Result<()> {
    let items = ITEMS
        .iter()
        .map(|build| build(app))
        .collect::<tauri::Result<Vec<_>>>()?;
    let menu = Menu::new(app)?;
    for item in &items {
        menu.append(item.entry())?;
    }
    let icon = TrayIconBuilder::with_id("macmlx")
        .menu(&menu)
        .show_menu_on_left_click(true)
        .icon(icon::Kind::Stopped.image()?)
        .icon_as_template(true)
        .build(app)?;
    let tray = Tray {
        icon,
        items,
        shown: Mutex::default(),
    };
    app.manage(tray);
    app.state::<Tray>().show(&State::default());
    Ok(())
}

/// Hands the choice of an entry to its item. Entries of other menus use the same ids.
pub(crate) fn handle(app: &AppHandle, id: &MenuId) {
    let (id, argument) = id.0.split_once(':').unwrap_or((id.0.as_str(), ""));
    let tray = app.state::<Tray>();
    if let Some(item) = tray.items.iter().find(|item| item.id() == id) {
        item.handle(app, argument);
    }
}

impl Tray {
    /// Makes icon and menu tell of this state. On the main thread only.
    pub(crate) fn show(&self, state: &State) {
        let strings = strings::of(state.language.as_deref());
        let view = View { state, strings };
        self.shown().strings = Some(strings);
        let app = self.icon.app_handle();
        for item in &self.items {
            if let Err(error) = item.refresh(app, view) {
                tracing::warn!(item = item.id(), %error, "a menu item cannot be changed");
            }
        }
        if let Err(error) = self.show_icon(view) {
            tracing::warn!(%error, "the menu bar's icon cannot be changed");
        }
    }

    fn show_icon(&self, view: View<'_>) -> tauri::Result<()> {
        self.icon.set_tooltip(Some(status::tooltip(view)))?;
        let kind = icon::Kind::of(view.state);
        if self.shown().icon != Some(kind) {
            self.icon
                .set_icon_with_as_template(Some(kind.image()?), true)?;
            self.shown().icon = Some(kind);
        }
        Ok(())
    }

    /// The words in the language that the settings ask for.
    pub(crate) fn strings(&self) -> &'static Strings {
        let shown = self.shown().strings;
        shown.unwrap_or_else(|| strings::of(None))
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock()
    }
}
