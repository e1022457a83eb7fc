"""Makes terminal.svg: runs real commands against a running `macmlx serve` and draws what they print.

    pip install rich openai && python docs/terminal.py target/release/macmlx http://127.0.0.1:8000
"""

import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

MODEL = "SmolLM2-135M-Instruct"
PYTHON = f"""\
from openai import OpenAI
client = OpenAI(base_url="URL/v1", api_key="unused")
stream = client.chat.completions.create(model="{MODEL}", temperature=0, stream=True,
    messages=[dict(role="user", content="What is the capital of France?")])
for chunk in stream:
    print(chunk.choices[0].delta.content or "", end="|")"""


def output_of(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.rstrip()


def main() -> None:
    binary, url = sys.argv[1:3]
    python = PYTHON.replace("URL", url)
    steps = [
        ("macmlx list", output_of(binary, "list")),
        ("macmlx ps", output_of(binary, "ps")),
        (
            f'macmlx run {MODEL} "Name a colour." --temperature 0',
            output_of(binary, "run", MODEL, "Name a colour.", "--temperature", "0"),
        ),
        (f"python -c '{python}'", output_of(sys.executable, "-c", python)),
    ]
    console = Console(record=True, width=116, file=open("/dev/null", "w"))
    for command, output in steps:
        console.print(Text("$ ", style="bold green") + Text(command, style="bold"))
        console.print(Text.from_ansi(output))
        console.print()
    svg = console.export_svg(title="macMLX")
    # The reader's own monospace font does; a picture in a README should fetch nothing.
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    Path(__file__).with_name("terminal.svg").write_text(svg)


if __name__ == "__main__":
    main()
