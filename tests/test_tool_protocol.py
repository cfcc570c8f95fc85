"""The way in which tools are called, over whole turns against a server: as it is set, and as it is found out."""

from __future__ import annotations

import json
from typing import Any

from mini_agent.composition import Agent, open_agent
from mini_agent.conversation.events import InstructionsSet, Notice
from mini_agent.session.event_log import EventLog
from mini_agent.settings import Settings
from tests.command_line import CommandLineTestCase
from tests.model.loopback import Answer, Loopback, completion, plain

BLOCK = '```tool_call\n{"name": "read_file", "arguments": {"path": "a.txt"}}\n```'
FENCE = BLOCK.replace("tool_call", "json")
REFUSED = plain(400, '{"error": {"message": "registry.ollama.ai/library/m does not support tools"}}')


class ToolProtocolTest(CommandLineTestCase):
    def run_turn(self, protocol: str, *answers: Answer) -> tuple[Any, Agent, list[Any]]:
        (self.workspace / "a.txt").write_text("port 8123\n", encoding="utf-8")
        with Loopback(*answers) as server:
            settings = Settings(
                self.workspace, "m", base_url=server.base_url, context_window_tokens=8192, tool_protocol=protocol
            )
            agent = open_agent(settings)
            result = agent.run_turn("Which port?")
            agent.close()
        return result, agent, [json.loads(body) for body in server.bodies]

    def events(self, agent: Agent, kind: type) -> list[Any]:
        return [entry.event for entry in EventLog(agent.files.log_path).entries if isinstance(entry.event, kind)]

    def test_in_text_a_call_and_its_result_go_as_text(self) -> None:
        result, agent, requests = self.run_turn("text", completion(BLOCK), completion("8123"))
        self.assertEqual((result.status, result.answer), ("completed", "8123"))
        self.assertNotIn("tools", requests[1])
        self.assertEqual(
            [message["role"] for message in requests[1]["messages"]], ["system", "user", "assistant", "user"]
        )
        self.assertEqual(requests[1]["messages"][2]["content"], BLOCK)
        self.assertIn("port 8123", requests[1]["messages"][3]["content"])
        self.assertIn("- read_file: ", requests[0]["messages"][0]["content"])
        self.assertEqual(requests[0]["messages"], requests[1]["messages"][:2])
        [instructions] = self.events(agent, InstructionsSet)
        self.assertEqual(instructions.tools, ())

    def test_auto_goes_over_to_text_where_the_server_refuses_tools_and_says_so(self) -> None:
        result, agent, requests = self.run_turn("auto", REFUSED, completion(BLOCK), completion("8123"))
        self.assertEqual((result.status, result.answer, len(requests)), ("completed", "8123", 3))
        self.assertEqual(["tools" in request for request in requests], [True, False, False])
        self.assertIn("- read_file: ", requests[1]["messages"][0]["content"])
        [notice] = self.events(agent, Notice)
        self.assertIn("does not support tools", notice.text)
        self.assertEqual(len(self.events(agent, InstructionsSet)), 2)

    def test_auto_goes_over_to_text_when_the_model_has_twice_written_its_call_as_text(self) -> None:
        result, agent, requests = self.run_turn("auto", completion(FENCE), completion(FENCE), completion("8123"))
        self.assertEqual(result.answer, "8123")
        self.assertEqual(["tools" in request for request in requests], [True, True, False])
        self.assertIn("- read_file: ", requests[2]["messages"][0]["content"])
        self.assertEqual(
            [message["role"] for message in requests[2]["messages"][1:]], ["user"] + ["assistant", "user"] * 2
        )
        self.assertIn("as text", self.events(agent, Notice)[0].text)

    def test_auto_puts_a_call_that_cannot_be_run_aside_and_goes_over_to_text_at_once(self) -> None:
        echo = '<tools>\n{"type": "function", "function": {"name": "read_file", "description": "…"}}\n</tools>'
        made_up = f"{FENCE}\nIt says:\n```\nport = 1\n```\nSo the port is 1."
        for unusable in (echo, made_up, FENCE.replace("path", "file")):
            with self.subTest(unusable):
                result, agent, requests = self.run_turn(
                    "auto", completion(unusable), completion(BLOCK), completion("8123")
                )
                self.assertEqual((result.status, result.answer), ("completed", "8123"))
                self.assertEqual(["tools" in request for request in requests], [True, False, False])
                self.assertEqual([message["role"] for message in requests[1]["messages"]], ["system", "user"])
                self.assertTrue(any(unusable in notice.text for notice in self.events(agent, Notice)))
                _, _, requests = self.run_turn("native", completion(unusable), completion("8123"))
                self.assertTrue(all("tools" in request for request in requests))
                self.assertIn("it was not run", requests[1]["messages"][-1]["content"])

    def test_a_model_that_has_made_a_call_may_talk_of_calls(self) -> None:
        talk = f"Like so:\n{FENCE}\nand it says\n```\nport\n```\nthen."
        result, _, requests = self.run_turn("auto", completion(FENCE), completion(talk))
        self.assertEqual((result.status, result.answer, len(requests)), ("completed", talk, 2))

    def test_auto_tells_a_model_that_may_know_no_tools_another_way_to_call_them(self) -> None:
        for protocol, told in (("auto", True), ("native", False)):
            _, _, requests = self.run_turn(protocol, completion(BLOCK), completion("8123"))
            self.assertEqual("no other way" in requests[0]["messages"][0]["content"], told)
            self.assertEqual([message["role"] for message in requests[1]["messages"][2:]], ["assistant", "tool"])

    def test_native_stays_native(self) -> None:
        result, _, requests = self.run_turn("native", REFUSED)
        self.assertEqual((result.status, result.kind, len(requests)), ("failed", "bad_request", 1))
        self.assertIn("MINI_AGENT_TOOL_PROTOCOL=text", result.reason)
        _, _, requests = self.run_turn("native", *[completion(FENCE)] * 3, completion("8123"))
        self.assertTrue(all("tools" in request for request in requests))

    def test_another_model_begins_anew(self) -> None:
        (self.workspace / "a.txt").write_text("port 8123\n", encoding="utf-8")
        with Loopback(REFUSED, completion("one"), completion("two")) as server:
            agent = open_agent(Settings(self.workspace, "m", base_url=server.base_url, context_window_tokens=8192))
            agent.run_turn("one")
            agent.change_model("n")
            agent.run_turn("two")
            agent.close()
        requests = [json.loads(body) for body in server.bodies]
        self.assertEqual(["tools" in request for request in requests], [True, False, True])
        self.assertNotIn("- read_file: ", requests[2]["messages"][0]["content"])
