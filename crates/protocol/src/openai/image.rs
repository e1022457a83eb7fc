//! Images, which OpenAI's dialect always names by an address.

use macmlx_inference::{ContentPart, Image, ImageSource};

/// The image at `url`, which stands at `path` of the request.
pub(super) fn part(url: &str, path: &str) -> ContentPart {
    ContentPart::Image(Image {
        source: source(url),
        param: path.to_owned(),
    })
}

/// `data:image/png;base64,…` is in the request, anything else is elsewhere.
fn source(url: &str) -> ImageSource {
    url.strip_prefix("data:")
        .and_then(|data| data.split_once(";base64,"))
        .map_or_else(
            || ImageSource::Url(url.to_owned()),
            |(media_type, data)| ImageSource::Inline {
                media_type: media_type.to_owned(),
                data: data.to_owned(),
            },
        )
}
