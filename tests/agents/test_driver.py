"""What the driver itself must get right, or its table would say nothing."""

import json
import re
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory

from driver import fixtures, scenario, verdict, wire
from driver.sandbox import Outcome

REQUEST = b"POST /v1/messages?beta=true HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"
CHUNKED = (
    b"POST /api/chat HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n"
)
REPLY = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc"
STREAM = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
HEAD = b"HEAD / HTTP/1.1\r\n\r\n"
HEAD_REPLY = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


def exchange(status: int, message: str = "") -> wire.Exchange:
    reply = json.dumps({"error": {"message": message}}).encode()
    return wire.Exchange("POST", "/v1/messages", {}, b"{}", status, reply)


class Wire(unittest.TestCase):
    def test_pairs_requests_and_replies_of_a_connection(self):
        found = wire.exchanges(REQUEST + HEAD + CHUNKED, CONTINUE + STREAM + HEAD_REPLY + REPLY)
        self.assertEqual(
            [(each.method, each.path, each.body, each.status, each.reply) for each in found],
            [
                ("POST", "/v1/messages", b"{}", 200, b"abc"),
                ("HEAD", "/", b"", 200, b""),
                ("POST", "/api/chat", b"{}", 200, b"abc"),
            ],
        )

    def test_takes_what_came_of_a_cut_connection(self):
        for length in range(len(STREAM)):
            (found,) = wire.exchanges(REQUEST, STREAM[:length])
            self.assertTrue(b"abc".startswith(found.reply))
        for length in range(len(CHUNKED)):
            self.assertEqual(wire.exchanges(CHUNKED[:length], b""), [])


class Verdict(unittest.TestCase):
    def setUp(self):
        folder = TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = Path(folder.name) / scenario.FILE
        self.file.write_text(scenario.WANTED)

    def edited(self, exit_code=0, output=scenario.FINAL, exchanges=(exchange(200),)):
        return verdict.edited(Outcome(exit_code, output, 1), list(exchanges), self.file)

    def told(self, output: str, status=400, message="`tools` is not supported"):
        outcome = Outcome(1, output, 1)
        return verdict.told(outcome, [exchange(status, message)], re.compile("tools"))

    def test_an_edit_is_well_only_if_all_of_it_is(self):
        self.assertEqual(self.edited(), [])
        self.assertTrue(self.edited(exit_code=1))
        self.assertTrue(self.edited(exit_code=None))
        self.assertTrue(self.edited(output="All done."))
        self.assertTrue(self.edited(exchanges=()))
        self.assertTrue(self.edited(exchanges=[exchange(200), exchange(400)]))
        self.assertTrue(self.edited(exchanges=[exchange(200), exchange(500)]))
        self.file.write_text(scenario.CONTENT)
        self.assertTrue(self.edited())

    def test_a_user_is_told_only_what_can_be_seen(self):
        self.assertEqual(self.told("\x1b[91mError:\x1b[0m `tools` is\n  not supported"), [])
        self.assertTrue(self.told("Something went wrong."))
        self.assertTrue(self.told("`tools` is not supported", status=500))
        self.assertTrue(self.told("no such model", message="no such model"))


    def test_an_answer_counts_only_to_a_request_with_tools(self):
        outcome = Outcome(0, "Hello.", 1)

        def faults(body: bytes, status=200, offers_tools=True):
            found = wire.Exchange("POST", "/v1/messages", {}, body, status, b"{}")
            return verdict.answered(outcome, [found], offers_tools=offers_tools)

        self.assertEqual(faults(b'{"tools": [{}]}'), [])
        self.assertEqual(faults(b"{}", offers_tools=False), [])
        self.assertTrue(faults(b'{"tools": []}'))
        self.assertTrue(faults(b"[]"))
        self.assertTrue(faults(b'{"tools": [{}]}', status=400))

    def test_a_context_is_told_with_both_numbers_and_a_model(self):
        advice = "; take a model with a longer context, such as `a/b` (9 tokens)"
        for words in (
            "this model's maximum context length is 8 tokens, but the prompt has 9 tokens",
            "prompt is too long: 9 tokens > 8 maximum",
            "the input length of 9 tokens exceeds the context length of 8 tokens",
        ):
            self.assertTrue(verdict.refused([exchange(400, words + advice)], verdict.TOO_LONG))
            self.assertFalse(verdict.refused([exchange(400, words)], verdict.TOO_LONG))
            self.assertFalse(verdict.refused([exchange(200, words + advice)], verdict.TOO_LONG))


class Fixtures(unittest.TestCase):
    def test_paths_ids_and_prose_are_replaced(self):
        scratch = Path("/tmp/macmlx-agents-x1")
        scrubbed = fixtures.Scrubber(scratch).scrub(
            {
                "path": f"{scratch}/pi-chat-edit/work/crane.txt",
                "home": f"{scratch}/pi-chat-edit/home/.pi",
                "session": "0a1b2c3d-0000-1111-2222-333344445555",
                "ids": ["0a1b2c3d-0000-1111-2222-333344445556", "x0a1b2c3d-0000-1111-2222-333344445555"],
                "content": "You are an agent. " * 40,
                "tool": {"name": "read", "description": "Short."},
                "messages": [{"content": scenario.PROMPT}],
            }
        )
        self.assertEqual(scrubbed["path"], "/home/user/project/crane.txt")
        self.assertEqual(scrubbed["home"], "/home/user")
        self.assertEqual(scrubbed["session"], "00000000-0000-0000-0000-000000000001")
        self.assertEqual(
            scrubbed["ids"],
            ["00000000-0000-0000-0000-000000000002", "x00000000-0000-0000-0000-000000000001"],
        )
        self.assertTrue(scrubbed["content"].startswith("Lorem ipsum"))
        self.assertEqual(len(scrubbed["content"]), fixtures.KEPT_CHARACTERS)
        self.assertEqual(scrubbed["tool"], {"name": "read", "description": "Short."})
        self.assertEqual(scrubbed["messages"], [{"content": scenario.PROMPT}])


if __name__ == "__main__":
    unittest.main()
