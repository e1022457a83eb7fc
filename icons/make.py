"""Draws the icons: an M of five bars, in colour for the app and as templates for the menu bar.

    python -m pip install -r icons/requirements.txt
    python icons/make.py

The results are committed, since builds need them; run this after changing a drawing.
"""

import io
from pathlib import Path

import resvg_py
from PIL import Image

HERE = Path(__file__).parent

# The M, in a square of 18: x, top and bottom of each bar, 2 wide with gaps of 1.
BARS = [(2, 3, 15), (5, 4.5, 10), (8, 7.5, 13), (11, 4.5, 10), (14, 3, 15)]
BAR_WIDTH = 2

# Sizes that bundles of macOS and Linux ask for, by file name.
PNGS = {"32x32.png": 32, "128x128.png": 128, "128x128@2x.png": 256, "icon.png": 512}
ICNS_SIZES = [16, 32, 64, 128, 256, 512, 1024]
TRAY_SIZES = {"": 18, "@2x": 36}


def bar(x: float, top: float, bottom: float, opacity: float = 1.0, colour: str = "#000") -> str:
    fade = "" if opacity == 1 else f' opacity="{opacity}"'
    return (
        f'<rect x="{x:g}" y="{top:g}" width="{BAR_WIDTH}" height="{bottom - top:g}" rx=".9"'
        f' fill="{colour}"{fade}/>'
    )


def square(content: str, side: int = 18) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {side} {side}">\n{content}\n</svg>\n'
    )


def app() -> str:
    """The M on a rounded square, with the margin that macOS icons have (100 of 1024)."""
    colours = ["#fff", "#ded9ff", "#b9aeff", "#ded9ff", "#fff"]
    bars = "".join(bar(*place, colour=colour) for place, colour in zip(BARS, colours, strict=True))
    return square(
        f"""<defs><linearGradient id="ground" x1="0" y1="0" x2="0" y2="1">
<stop offset="0" stop-color="#6557e6"/><stop offset="1" stop-color="#2f2484"/>
</linearGradient></defs>
<rect x="100" y="100" width="824" height="824" rx="186" fill="url(#ground)"/>
<rect x="103" y="103" width="818" height="818" rx="183" fill="none" stroke="#fff"
 stroke-opacity=".16" stroke-width="6"/>
<g transform="translate(143 143) scale(41)">{bars}</g>""",
        1024,
    )


def stopped() -> str:
    """Faint: nothing listens."""
    return square("\n".join(bar(*place, opacity=0.45) for place in BARS))


def idle() -> str:
    return square("\n".join(bar(*place) for place in BARS))


def loading() -> str:
    """Filled from the left, as weights arrive."""
    opacities = [1, 1, 0.7, 0.4, 0.25]
    return square(
        "\n".join(bar(*place, opacity) for place, opacity in zip(BARS, opacities, strict=True))
    )


def generating() -> str:
    """Bars at work, like a level meter."""
    levels = [(7, 15), (3, 15), (9, 15), (5, 15), (11, 15)]
    return square("\n".join(bar(x, *level) for (x, _, _), level in zip(BARS, levels, strict=True)))


def error() -> str:
    """The M with a mark of exclamation cut into its corner."""
    bars = "\n".join(bar(*place) for place in BARS)
    return square(
        f"""<mask id="cut"><rect width="18" height="18" fill="#fff"/>
<circle cx="13.2" cy="13.2" r="5.4" fill="#000"/></mask>
<g mask="url(#cut)">{bars}</g>
<path fill-rule="evenodd" d="M13.2 8.8a4.4 4.4 0 1 0 0 8.8a4.4 4.4 0 1 0 0 -8.8z
M12.5 10.4h1.4v3.6h-1.4z M12.5 14.8h1.4v1.4h-1.4z"/>"""
    )


TRAY = {drawing.__name__: drawing for drawing in (stopped, idle, loading, generating, error)}


def image(svg: str, size: int) -> Image.Image:
    png = resvg_py.svg_to_bytes(svg_string=svg, width=size, height=size)
    return Image.open(io.BytesIO(bytes(png))).convert("RGBA")


def template(svg: str, size: int) -> Image.Image:
    """Black with alpha only, which compresses to next to nothing."""
    grey = Image.new("LA", (size, size), (0, 0))
    grey.putalpha(image(svg, size).getchannel("A"))
    return grey


def main() -> None:
    svg = app()
    (HERE / "macmlx.svg").write_text(svg)
    for name, size in PNGS.items():
        image(svg, size).save(HERE / name, optimize=True)
    images = [image(svg, size) for size in ICNS_SIZES]
    images[-1].save(HERE / "icon.icns", append_images=images[:-1])
    (HERE / "tray").mkdir(exist_ok=True)
    for name, drawing in TRAY.items():
        for suffix, size in TRAY_SIZES.items():
            template(drawing(), size).save(HERE / "tray" / f"{name}{suffix}.png", optimize=True)


if __name__ == "__main__":
    main()
