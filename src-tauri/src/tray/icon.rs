//! The icon's states.

use tauri::image::Image;

use super::state::{DoorState, State};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// No server; the window works all the same.
    Stopped,
    Idle,
    Loading,
    Generating,
    Error,
}

impl Kind {
    /// What people wait for comes first, then what went wrong.
    pub(super) fn of(state: &State) -> Self {
        if state.throughput.running > 0 {
            return Self::Generating;
        }
        if !state.loading.is_empty() {
            return Self::Loading;
        }
        if state.failed.is_some() {
            return Self::Error;
        }
        match state.door.state {
            DoorState::Failed => Self::Error,
            DoorState::Open => Self::Idle,
            DoorState::Closed => Self::Stopped,
        }
    }

    /// Black with alpha, which macOS colours as its menu bar needs it. Elsewhere panels may be dark
    /// or light, so there the icon has a colour that can be seen on both.
    pub(super) fn image(self) -> tauri::Result<Image<'static>> {
        let png: &[u8] = match self {
            Self::Stopped => include_bytes!("../../../icons/tray/stopped@2x.png"),
            Self::Idle => include_bytes!("../../../icons/tray/idle@2x.png"),
            Self::Loading => include_bytes!("../../../icons/tray/loading@2x.png"),
            Self::Generating => include_bytes!("../../../icons/tray/generating@2x.png"),
            Self::Error => include_bytes!("../../../icons/tray/error@2x.png"),
        };
        let image = Image::from_bytes(png)?;
        if cfg!(target_os = "macos") {
            return Ok(image);
        }
        let mut rgba = image.rgba().to_vec();
        for pixel in rgba.chunks_exact_mut(4) {
            pixel[..3].copy_from_slice(&[0x8b, 0x7f, 0xf5]);
        }
        Ok(Image::new_owned(rgba, image.width(), image.height()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tray::state::tests::{event, started};

    #[test]
    fn each_state_has_its_icon() {
        let mut state = State::default();
        assert_eq!(Kind::of(&state), Kind::Stopped);
        state = started();
        assert_eq!(Kind::of(&state), Kind::Idle);
        let mut seen = |happened| {
            state.apply(event(happened));
            Kind::of(&state)
        };
        let model = |state: &str| json!({ "type": "model", "id": "a/b", "state": state });
        let throughput = |running| {
            json!({ "type": "throughput", "throughput":
                { "decode_tokens_per_second": 9.5, "running": running } })
        };
        let door = |state: &str| json!({ "type": "door", "door": { "state": state } });
        assert_eq!(seen(model("loading")), Kind::Loading);
        assert_eq!(seen(model("failed")), Kind::Error);
        assert_eq!(seen(model("loading")), Kind::Loading);
        assert_eq!(seen(model("loaded")), Kind::Idle);
        assert_eq!(seen(throughput(2)), Kind::Generating);
        assert_eq!(seen(door("failed")), Kind::Generating);
        assert_eq!(seen(throughput(0)), Kind::Error);
        assert_eq!(seen(door("closed")), Kind::Stopped);
    }

    #[test]
    fn all_icons_can_be_read_and_differ() {
        let images = [
            Kind::Stopped,
            Kind::Idle,
            Kind::Loading,
            Kind::Generating,
            Kind::Error,
        ]
        .map(|kind| kind.image().unwrap().rgba().to_vec());
        for (index, image) in images.iter().enumerate() {
            assert_eq!(image.len(), 36 * 36 * 4);
            assert!(!images[..index].contains(image));
        }
    }
}
