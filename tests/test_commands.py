from __future__ import annotations

import json

from mini_agent.commands import COMMANDS
from tests.command_line import CommandLineTestCase, call
from tests.model.loopback import Loopback, completion


class CommandsTest(CommandLineTestCase):
    def told(self, *lines: str) -> str:
        """Return what is printed when these lines are piped in."""
        ran = self.run_here(stdin="\n".join(lines).encode())
        self.assertEqual(ran.code, 0, ran.err)
        return ran.out

    def test_context_shows_exactly_what_the_model_is_sent(self) -> None:
        (self.workspace / "a.txt").write_text("one\n\n\ttwo `\n")
        answers = [completion("It says one.")] * 2
        with Loopback(*answers) as server:
            flags = ["--base-url", server.base_url, "--model", "m", "--context-window", "9000"]
            ran = self.run_here(*flags, stdin=b"first\n/context\n")
            again = self.run_here(*flags, "--resume", "-p", "second")
        self.assertEqual((ran.code, again.code), (0, 0))
        messages = json.loads(server.bodies[1])["messages"]
        position = ran.out.index("--- 1. ")
        for message in messages[:-1]:
            position = ran.out.index(message["content"], position)
        self.assertIn("of a window of 9,000", ran.out)

    def test_context_tells_the_lines_the_savings_and_what_a_compression_would_do(self) -> None:
        (self.workspace / "a.txt").write_text("a line of words\n" * 200)
        replacement = {"tool_name": "read_file", "tool_arguments": {"path": "a.txt"}, "replace_content": "words"}
        usage = {"input": 3000, "output": 20, "cached": 0}
        steps = [call("read_file", path="a.txt"), call("compress_tool", replacements=[replacement]), "Words."]
        self.script(*steps, {"text": "Done.", "usage": usage})
        told = self.told("What is in it?", "And now?", "/context")
        self.assertRegex(told, r"of a window of 32,768; compressed above 24,576, to \d\d,\d\d\d at most\n")
        self.assertRegex(told, r"the server counts [12]\.\d\d tokens for each that is estimated\n")
        self.assertIn("tool results shown shorter than they came: 1, which saves 3,1", told)
        self.assertRegex(
            told, r"a compression now would be: Summarized: \d messages .* Kept: \d of the user's messages"
        )

    def test_too_large_instructions_are_told_at_the_start_with_numbers(self) -> None:
        self.script("Done.")
        ran = self.run_here("--context-window", "2048", "-p", "go")
        self.assertRegex(
            ran.err, r"instructions and tools alone take about 1,\d\d\d of the window's 2,048 tokens: \d+ are left"
        )

    def test_usage_adds_up(self) -> None:
        usage = {"input": 1000, "output": 20, "cached": 600}
        self.script(
            {**call("list_files"), "usage": usage}, {"text": "a", "usage": usage}, {"text": "b", "usage": usage}
        )
        told = self.told("1", "2", "/usage")
        self.assertIn("last turn: 1,000 tokens in (600 cached), 20 out; rounds: 1;", told)
        self.assertIn("session: 3,000 tokens in (1,800 cached), 60 out; rounds: 3;", told)
        self.assertRegex(told, r"the last request: 1,000 tokens in by the server's count, about [\d,]+ by our estimate")

    def test_compress_makes_it_smaller_and_says_so(self) -> None:
        self.script("word " * 3000, "word " * 3000, "short", summaries=["All was said."])
        told = self.told("1", "2", "3", "/compress", "/compress", "/context")
        self.assertRegex(told, r"about [\d,]+ tokens before, [\d,]+ now\nthere is nothing that would become smaller")
        self.assertIn("All was said.", told)

    def test_tools_are_listed_with_their_arguments(self) -> None:
        self.script()
        self.assertIn("\nread_file(path, offset?, limit?): ", self.told("/tools"))

    def test_another_model_of_the_server_answers_from_then_on(self) -> None:
        with Loopback(completion("one")) as server:
            flags = ["--base-url", server.base_url, "--model", "m", "--context-window", "9000"]
            ran = self.run_here(*flags, stdin=b"1\n/model\n/model bad\x01name\n/Model other\n/model\n2\n")
        self.assertIn("the model is m;", ran.out)
        self.assertIn("no control characters", ran.out)
        self.assertIn("the model is other;", ran.out)
        self.assertEqual([b'"model":"%s"' % name in body.replace(b": ", b":") for name, body in
                          zip((b"m", b"other"), server.bodies)], [True, True])  # fmt: skip

    def test_the_help_names_every_command(self) -> None:
        self.script()
        told = self.told("/help")
        for name in [*COMMANDS, "/resume", "/exit"]:
            self.assertIn(f"{name} ", told)

    def test_a_session_that_cannot_be_resumed_leaves_this_one_open(self) -> None:
        self.script("one", "two")
        self.run_here("-p", "before")
        path = self.log_paths()[0]
        path.write_bytes(b"garbage\n" + path.read_bytes())
        told = self.told(f"/resume {path}", "/resume nope", "go on")
        self.assertIn(f"{path}, line 1: ", told)
        self.assertIn("no session begins with 'nope'", told)
        self.assertTrue(told.endswith("one\n"))
