//! One line on what goes on, which is the icon's tooltip as well.

use tauri::{
    AppHandle, Wry,
    menu::{IsMenuItem, MenuItem},
};

use super::{
    Item, View,
    state::{DoorState, Model},
};
use crate::strings::fill;

const ID: &str = "status";

struct Status(MenuItem<Wry>);

pub(super) fn build(app: &AppHandle) -> tauri::Result<Box<dyn Item>> {
    let entry = MenuItem::with_id(app, ID, "", false, None::<&str>)?;
    Ok(Box::new(Status(entry)))
}

impl Item for Status {
    fn id(&self) -> &'static str {
        ID
    }

    fn entry(&self) -> &dyn IsMenuItem<Wry> {
        &self.0
    }

    fn refresh(&self, _app: &AppHandle, view: View<'_>) -> tauri::Result<()> {
        self.0.set_text(line(view))
    }

    fn handle(&self, _app: &AppHandle, _argument: &str) {}
}

fn line(View { state, strings }: View<'_>) -> String {
    if !state.is_started {
        return strings.starting.to_owned();
    }
    let names = || {
        let names: Vec<&str> = state.models.iter().map(Model::name).collect();
        names.join(", ")
    };
    if state.throughput.running > 0 {
        let rate = format!("{:.1}", state.throughput.decode_tokens_per_second);
        return fill(strings.generating, &[("model", &names()), ("rate", &rate)]);
    }
    if let Some(model) = state.loading.first() {
        return fill(strings.loading, &[("model", model)]);
    }
    if let Some(model) = &state.failed {
        return fill(strings.load_failed, &[("model", model)]);
    }
    if state.models.is_empty() {
        strings.idle.to_owned()
    } else {
        names()
    }
}

/// The line, after the name of the app and where it serves.
pub(super) fn tooltip(view: View<'_>) -> String {
    let mut parts = vec!["macMLX".to_owned()];
    if view.state.door.state == DoorState::Open {
        parts.extend(view.state.door.url.clone());
    }
    parts.push(line(view));
    parts.join(" · ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        strings,
        tray::state::{
            State,
            tests::{event, started},
        },
    };

    #[test]
    fn the_line_tells_what_goes_on() {
        let strings = strings::of(Some("en"));
        let told = |state: &State| line(View { state, strings });
        assert_eq!(told(&State::default()), "Starting…");
        let mut state = started();
        assert_eq!(told(&state), "b");
        state.apply(event(json!({ "type": "throughput", "throughput":
            { "decode_tokens_per_second": 12.34, "running": 1 } })));
        assert_eq!(told(&state), "b: 12.3 tok/s");
        let view = View {
            state: &state,
            strings,
        };
        assert_eq!(
            tooltip(view),
            "macMLX · http://127.0.0.1:8000 · b: 12.3 tok/s"
        );
    }
}
