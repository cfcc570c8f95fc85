from __future__ import annotations

import signal
import subprocess
import unittest
from pathlib import Path

from mini_agent.conversation.conversation import Conversation
from mini_agent.prompt_loop import RequestReader
from mini_agent.session.event_log import read_log
from tests.command_line import CommandLineTestCase, call
from tests.model.loopback import Loopback, completion, silent

PATCH = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-old\n+new\n"
FIELDS = ["answer", "status", "error", "rounds", "usage", "seconds", "session", "record", "files_changed"]


class OneShotTest(CommandLineTestCase):
    def setUp(self) -> None:
        super().setUp()
        (self.workspace / "a.txt").write_text("old\n")

    def test_only_the_answer_goes_to_the_output(self) -> None:
        self.script({"text": "I look.", **call("read_file", path="a.txt")}, "It says old.")
        ran = self.run_here("-p", "What does it say?")
        self.assertEqual((ran.code, ran.out), (0, "It says old.\n"))
        self.assertIn("* read_file a.txt", ran.err)
        self.assertIn("script.json", ran.err)

    def test_what_was_said_on_the_way_to_a_failure_is_no_answer(self) -> None:
        self.script({"text": "I look.", **call("read_file", path="a.txt")}, {"error": "refused", "text": "no credit"})
        ran = self.run_here("-p", "x")
        self.assertEqual((ran.code, ran.out), (1, ""))
        self.assertIn("error: no credit", ran.err)

    def test_the_request_can_come_from_stdin(self) -> None:
        self.script("the answer")
        self.assertEqual(self.run_here("-p", "-", stdin="größer\nals\n".encode()).out, "the answer\n")
        self.assertEqual(self.log()[2].event.to_json()["text"], "größer\nals\n")

    def test_a_request_of_nothing_is_refused(self) -> None:
        self.script("the answer")
        for prompt, stdin in (("", b""), (" \n", b""), ("-", b""), ("-", b" \n")):
            ran = self.run_here("-p", prompt, stdin=stdin)
            self.assertEqual((ran.code, ran.out), (2, ""))
            self.assertIn("error: --prompt is empty", ran.err)
        self.assertEqual(self.log_paths(), [])

    def test_the_object_tells_a_completed_turn(self) -> None:
        usage = {"input": 100, "output": 10, "cached": 60}
        self.script({**call("apply_patch", patch=PATCH), "usage": usage}, {"text": "ok", "usage": usage})
        ran = self.run_here("-p", "x", "--output", "json")
        told = ran.json
        self.assertEqual((ran.code, list(told)), (0, FIELDS))
        self.assertEqual([told[name] for name in FIELDS[:4]], ["ok", "completed", None, 2])
        self.assertEqual(told["usage"], {"input_tokens": 200, "output_tokens": 20, "cached_tokens": 120})
        self.assertEqual((told["session"], told["files_changed"]), (str(self.log_paths()[0]), ["a.txt"]))
        self.assertTrue(Path(told["record"]).is_file())

    def test_the_object_tells_a_failed_turn(self) -> None:
        self.script({"error": "rate_limited", "text": "later"})
        ran = self.run_here("-p", "x", "--output", "json")
        self.assertEqual((ran.code, list(ran.json)), (1, FIELDS))
        self.assertEqual(ran.json["status"], "failed")
        self.assertEqual(ran.json["error"], {"kind": "rate_limited", "message": "later"})

    def test_the_object_tells_a_turn_that_ran_out_of_rounds(self) -> None:
        self.script(call("read_file", path="a.txt"), "half done")
        ran = self.run_here("-p", "x", "--output", "json", "--max-rounds", "1")
        self.assertEqual((ran.code, ran.json["status"], ran.json["answer"]), (1, "round_limit", "half done"))
        self.assertIsNone(ran.json["error"])

    def test_each_event_is_printed_as_the_line_that_is_in_the_log(self) -> None:
        self.script("a\x7f\u2028b")
        ran = self.run_here("-p", "x", "--output", "events")
        self.assertEqual((ran.code, ran.out), (0, self.log_paths()[0].read_text()))

    def test_without_a_terminal_the_answer_to_a_question_is_no(self) -> None:
        self.script(call("apply_patch", patch=PATCH), "refused")
        self.assertEqual(self.run_here("-p", "x", "--ask-writes", stdin=b"yes\n").code, 0)
        self.assertEqual((self.workspace / "a.txt").read_text(), "old\n")

    def test_ctrl_c_in_the_turn_leaves_a_whole_object_and_a_whole_session(self) -> None:
        with Loopback(silent) as server:
            flags = ["--base-url", server.base_url, "--model", "m", "--context-window", "9000"]
            process = self.start("-p", "x", "--output", "json", *flags)
            self.wait_until(lambda: server.requests)
            process.send_signal(signal.SIGINT)
            ran = self.end_of(process)
        self.assertEqual((ran.code, list(ran.json), ran.json["status"]), (130, FIELDS, "interrupted"), ran.err)
        self.assertEqual(ran.json["error"]["kind"], "interrupted")
        self.assertNotIn("Traceback", ran.err)
        self.assertEqual(self.log()[-1].event.to_json()["status"], "interrupted")


class SeveralProcessesTest(CommandLineTestCase):
    """Processes that are killed, and processes that run at the same time."""

    def test_a_process_that_was_killed_in_a_turn_leaves_a_session_that_goes_on(self) -> None:
        with Loopback(silent) as server:
            flags = ["--base-url", server.base_url, "--model", "m", "--context-window", "9000"]
            process = self.start("-p", "the first", *flags)
            self.wait_until(lambda: server.requests)
            process.kill()
            process.wait()
        self.script("the answer")
        ran = self.run_here("-p", "go on", "--resume")
        self.assertEqual((ran.code, ran.out), (0, "the answer\n"))
        conversation = Conversation()
        for entry in self.log():
            conversation.apply(entry.event)
        self.assertEqual(conversation.turn_count, 2)
        self.assertIn("the program ended in the middle of this turn", self.log_paths()[0].read_text())

    def test_two_processes_in_one_workspace_keep_apart(self) -> None:
        self.script(call("list_files"), "the answer")
        processes = [self.start("-p", f"request {number}") for number in range(2)]
        self.assertEqual([self.end_of(process).out for process in processes], ["the answer\n"] * 2)
        self.assertEqual([len(read_log(path)) for path in self.log_paths()], [7, 7])


class PipedTurnsTest(CommandLineTestCase):
    def requests(self) -> list[str]:
        return [entry.event.to_json()["text"] for entry in self.log() if entry.event.type == "user_message_added"]

    def test_each_line_is_a_turn_of_one_session(self) -> None:
        self.script("one", "two")
        ran = self.run_here(stdin=b"first\r\n\n  \nsecond")
        self.assertEqual((ran.code, ran.out, self.requests()), (0, "one\ntwo\n", ["first", "second"]))

    def test_a_line_that_ends_in_a_backslash_goes_on_in_the_next(self) -> None:
        self.script("one", "two")
        self.run_here(stdin=b"first\\\n more\nsecond\\\n")
        self.assertEqual(self.requests(), ["first\n more", "second"])

    def test_a_leaving_word_ends_it_in_any_case(self) -> None:
        for word in ("exit", "QUIT", "Et", " /Exit ", "/quit"):
            self.script("one")
            ran = self.run_here(stdin=f"first\n{word}\nnever\n".encode())
            self.assertEqual((ran.code, ran.out), (0, "one\n"), word)

    def test_the_worst_turn_gives_the_exit_code(self) -> None:
        self.script("one", {"error": "refused", "text": "no"}, "three")
        ran = self.run_here(stdin=b"1\n2\n3\n")
        self.assertEqual((ran.code, ran.out), (1, "one\nthree\n"))

    def test_ctrl_c_ends_them_all(self) -> None:
        with Loopback(completion("one"), silent) as server:
            flags = ["--base-url", server.base_url, "--model", "m", "--context-window", "9000"]
            process = self.start(*flags, stdin=subprocess.PIPE)
            process.stdin.write(b"1\n2\n3\n")
            process.stdin.flush()
            self.wait_until(lambda: len(server.requests) == 2)
            process.send_signal(signal.SIGINT)
            ran = self.end_of(process)
        self.assertEqual((ran.code, ran.out, self.requests()), (130, "one\n", ["1", "2"]))
        self.assertNotIn("once more", ran.err)

    def test_commands_are_answered_and_unknown_ones_named(self) -> None:
        self.script()
        ran = self.run_here(stdin=b"/diff\n/undo all\n/contxt\n/etc/hosts\n/\n")
        self.assertEqual(ran.code, 0)
        lines = ran.out.splitlines()
        self.assertEqual([line.split(";")[0] for line in lines], [f"unknown command {name}" for name in
                         ("/diff", "/undo", "/contxt", "/etc/hosts", "/")])  # fmt: skip
        self.assertIn("nearest: /context", lines[2])
        self.assertEqual(self.requests(), [])


class RequestReaderTest(unittest.TestCase):
    def read(self, text: str, blocks: bool = True) -> list[str]:
        lines = iter(text.split("\n"))
        reader = RequestReader(lambda continued: next(lines, None), blocks=blocks)
        return list(iter(reader.next, None))

    def test_blocks_keep_what_is_between_the_quotes(self) -> None:
        cases = {
            '"""\na\n  b\n\nc\n"""\nd': ["a\n  b\n\nc", "d"],
            '"""a\nb"""': ["a\nb"],
            '"""one line"""': ["one line"],
            '  """\na\\\n/exit\n"""': ["a\\\n/exit"],
            '"""""" ': [""],
            '"""\nthe end is missing': ["the end is missing"],
            '"""': [""],
        }
        for text, requests in cases.items():
            self.assertEqual(self.read(text), requests, text)

    def test_without_blocks_quotes_are_text(self) -> None:
        self.assertEqual(self.read('"""\na', blocks=False), ['"""', "a"])

    def test_backslashes_at_the_end_go_on(self) -> None:
        self.assertEqual(self.read("a\\\nb\\\n\nc\\d\ne\\"), ["a\nb\n", "c\\d", "e"])


class ResumeTest(CommandLineTestCase):
    def setUp(self) -> None:
        super().setUp()
        for request in ("first", "second"):
            self.script(f"to the {request}")
            self.run_here("-p", request)
        self.script("went on")
        self.first, self.second = (path.stem[len("session-") :] for path in self.log_paths())

    def resumed(self, *name: str) -> list[str]:
        """Return the stamps of the sessions that grew when this one was resumed."""
        before = {path: path.stat().st_size for path in self.log_paths()}
        ran = self.run_here("-p", "go on", "--resume", *name)
        self.assertEqual((ran.code, ran.out), (0, "went on\n"), ran.err)
        return [path.stem[len("session-") :] for path in self.log_paths() if path.stat().st_size != before[path]]

    def test_without_a_name_the_last_session_goes_on(self) -> None:
        self.assertEqual(self.resumed(), [self.second])

    def test_a_session_is_found_by_stamp_by_path_and_by_a_beginning_that_only_it_has(self) -> None:
        length = next(n for n in range(len(self.first) + 1) if self.first[:n] != self.second[:n])
        path = self.log_paths()[0]
        for name in (self.first, str(path), str(path.with_suffix(".md")), self.first[:length]):
            self.assertEqual(self.resumed(name), [self.first], name)

    def test_a_name_that_is_not_clear_is_refused_with_candidates(self) -> None:
        for name in ("2", "nope", "/no/such.jsonl", "\udcff"):
            ran = self.run_here("-p", "x", "--resume", name)
            self.assertEqual((ran.code, ran.out), (2, ""), name)
            self.assertRegex(ran.err.splitlines()[-1], rf"^error: .*{self.second}, {self.first}")

    def test_a_damaged_log_is_refused_with_its_line_and_what_to_do(self) -> None:
        path = self.log_paths()[1]
        lines = path.read_bytes().splitlines(True)
        path.write_bytes(b"".join([lines[0], b"\xff\n", *lines[2:]]))
        ran = self.run_here("-p", "x", "--resume")
        self.assertEqual((ran.code, ran.out), (2, ""))
        self.assertRegex(ran.err.splitlines()[-1], rf"^error: {path}, line 2: .*new session")

    def test_sessions_are_listed_without_a_key(self) -> None:
        del self.environment["MINI_AGENT_SCRIPT"]
        ran = self.run_here("--list-sessions")
        self.assertEqual((ran.code, ran.err), (0, ""))
        self.assertRegex(ran.out, rf"\A{self.second}  .*  second\n{self.first}  .*  first\n\Z")

    def test_where_there_is_no_session_it_says_so(self) -> None:
        empty = self.folder / "empty"
        empty.mkdir()
        self.assertIn("no sessions", self.run_here("-w", str(empty), "--list-sessions").out)
        self.assertEqual(self.run_here("-w", str(empty), "-p", "x", "--resume").code, 2)
        self.assertEqual(list(empty.iterdir()), [])
