"""What the comparison with transformers found, in numbers."""

import collections

import pytest

RECORD = collections.defaultdict(list)


@pytest.fixture(scope="session")
def record():
    return RECORD


def pytest_terminal_summary(terminalreporter):
    terminalreporter.section("prompts")
    for kind, names in sorted(RECORD.items()):
        terminalreporter.write_line(f"{kind}: {len(names)}")
        if kind.startswith("prefix") and kind.endswith(("changed", "refused")):
            terminalreporter.write_line(f"    {', '.join(names)}")
