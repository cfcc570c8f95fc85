"""Random sessions against a server that refuses everything over its window: nothing may break, whatever happens.

Each has a window and a way of counting of its own, and a model that makes calls side by side and again, writes as much
as it likes, fails at summaries in every way, and is interrupted; the user's requests may be larger than the window, and
the session is closed and resumed in between.
"""

from __future__ import annotations

import os
import random
import tempfile
import unittest
from collections.abc import Sequence
from pathlib import Path

from mini_agent.agent.guards import TurnLimits
from mini_agent.agent.runner import AgentRunner
from mini_agent.context.budget import Budget
from mini_agent.context.compressor import Compressor, problem_with
from mini_agent.context.tokens import TokenCounter, message_tokens, tools_tokens
from mini_agent.conversation.conversation import Conversation
from mini_agent.conversation.events import AssistantMessageAdded, HistorySummarized, InstructionsSet
from mini_agent.conversation.messages import AssistantMessage, Message, ToolCall, ToolResult, UserMessage
from mini_agent.model.chat_model import BadReply, ContextOverflow, RateLimited, ServerFailed
from mini_agent.session.event_log import EventLog, LogEntry
from mini_agent.session.session import Session
from mini_agent.tools.toolbox import Toolbox
from tests.context.counting_server import CountingServer, TellTool, own_words, tell, words

SESSIONS = 5000 if os.environ.get("MINI_AGENT_LONG_TESTS") == "1" else 200
WINDOWS = [2048, 2048, 2048, 3000, 3000, 4096, 4096, 8192, 20000]
ALPHABETS = ["abcdefgh \n", "abcdefgh \n", "一二三四五六七八九十，。", "a\n", "aé中\U0001f600\udc80 "]
JSON_SUMMARY = '{"goal": "to go on", "done": ["this", "that"], "next_step": null}'
SUMMARIES = [
    "",
    "  \n",
    "as long as it likes",
    JSON_SUMMARY,
    f"So:\n```json\n{JSON_SUMMARY}\n```",
    "[" * 5000,
    '{"goal": " "}',
]


class RandomSession:
    """One session with a will of its own, checked at every request and after every turn."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.chance = random.Random(seed)
        self.window = 1_000_000 if seed % 200 == 7 else self.chance.choice(WINDOWS)
        self.path = folder / f"{seed}.jsonl"
        self.said: list[str] = []
        self.calls = self.rounds_left = 0
        names_window, counts = self.chance.random() < 0.8, self.chance.random() < 0.7
        factors = [1.0, 0.4, 0.7, 1.5, 2.5] if counts and names_window else [1.0, 1.0, 0.8, 1.2]
        factor = self.chance.choice(factors)  # of the server's counts to the estimate
        self.server = CountingServer(
            self.window, self.answer, self.summary, factor=factor, names_window=names_window, counts=counts
        )
        self.assumed = self.window * self.chance.choice([1, 1, 1, 2, 8 if names_window else 1])
        self.toolbox = Toolbox([TellTool()], result_limit_bytes=lambda: self.compressor.budget.result_limit_bytes)
        self.shortening = self.chance.random() < 0.5
        self.why: list[str] = []  # the compressions since the last reply
        self.sent: tuple[int, Sequence[Message]] = (-1, ())  # the last request, and the generation it was of
        self.replayed = Conversation()
        self.open_session()
        self.session.record(InstructionsSet(words(self.chance, 1000), self.toolbox.schemas(), "1"))

    def open_session(self) -> None:
        """Begin, or go on as a new process does, which has to learn of the server anew."""
        self.counter = TokenCounter()
        self.compressor = Compressor(Budget.for_window(self.assumed), self.counter, True, self.shortening)
        self.server.refusals = 0
        self.session = Session(EventLog(self.path))
        self.session.listen(self.follow)

    def run(self) -> None:
        for _ in range(self.chance.choice([1, 2, 4])):
            self.said.append(words(self.chance, 20 + self.size(1.3), self.chance.choice(ALPHABETS)))
            self.rounds_left = self.chance.choice([0, 1, 3, 10])
            limits = TurnLimits(max_rounds=15)
            runner = AgentRunner(self.server, self.toolbox, self.session, self.compressor, limits=limits)
            result = runner.run_turn(self.said[-1])
            assert result.status in ("completed", "interrupted", "round_limit"), result
            assert self.server.refusals <= 1, f"{self.server.refusals} requests were over the window"
            if self.chance.random() < 0.1:
                self.compress_now()
            assert self.replayed == self.session.conversation, "live is not replayed"
            if self.chance.random() < 0.1:
                self.session.log.close()
                self.open_session()
        self.session.log.close()
        log = EventLog(self.path)
        assert Session(log).conversation == self.replayed, "what the disk holds is not what was live"
        log.close()

    def compress_now(self) -> None:
        session = self.session
        try:
            self.compressor.compress_now(session.conversation, session.record, lambda m: self.server.reply(m, (), None))
        except KeyboardInterrupt:
            pass

    # what the model does

    def answer(self, messages: Sequence[Message]) -> AssistantMessage:
        self.check_request(messages)
        self.check_only_grown(messages)
        if self.chance.random() < 0.02:
            raise KeyboardInterrupt
        self.rounds_left -= 1
        text = words(self.chance, self.size(0.02), self.chance.choice(ALPHABETS))
        if self.rounds_left < 0:
            return AssistantMessage(text.strip() or "done")
        return AssistantMessage(text, tuple(self.call() for _ in range(self.chance.choice([1, 1, 1, 2, 5]))))

    def call(self) -> ToolCall:
        if self.calls and self.chance.random() < 0.1:  # once more
            return tell(self.chance.randrange(self.calls) + 1, 3000)
        self.calls += 1
        if self.chance.random() < 0.03:  # a patch as large as they come
            return ToolCall("", "tell", "x" * self.size(0.5), None, "unreadable")
        return tell(self.calls, self.size(0.5))

    def size(self, most: float) -> int:
        """Return a number of characters: mostly little, at times up to `most` of the window."""
        return int(self.window * 4 * most * self.chance.random() ** 4)

    def summary(self) -> str:
        if self.chance.random() < 0.1:
            raise KeyboardInterrupt
        if self.chance.random() < 0.3:
            errors = [ContextOverflow("too large"), RateLimited("wait"), ServerFailed(""), BadReply("?")]
            raise self.chance.choice(errors)
        if self.chance.random() < 0.4:
            return words(self.chance, self.size(0.3), self.chance.choice(ALPHABETS))
        return self.chance.choice(SUMMARIES)

    # what must hold

    def check_request(self, messages: Sequence[Message]) -> None:
        problem = problem_with([UserMessage(text) for text in self.said], messages)
        assert not problem, problem
        left = iter(self.said)
        for text in own_words(messages):
            assert any(text == said or ("are left out here" in text or "[…]" in text) for said in left), (
                "the user's words are out of order"
            )
        numbers = [int(m.call_id.split("_")[1]) for m in messages if isinstance(m, ToolResult)]
        assert numbers == sorted(numbers), "results are out of order"

    def check_only_grown(self, messages: Sequence[Message]) -> None:
        generation, before = self.sent
        self.sent = (self.session.conversation.generation, list(messages))
        assert generation != self.sent[0] or self.sent[1][: len(before)] == before, "what was sent was changed"

    def follow(self, entry: LogEntry) -> None:
        """Fold the events beside the session; from the disk they are read at its end."""
        event = entry.event
        self.replayed.apply(event)
        if isinstance(event, AssistantMessageAdded):
            self.why = []
        if isinstance(event, HistorySummarized):
            visible = self.replayed.visible_messages()
            tokens = sum(map(message_tokens, visible)) + tools_tokens(self.replayed.tools)
            after = self.counter.scaled(tokens)
            assert after == event.tokens_after < event.tokens_before, "the compression tells wrong numbers"
            self.why.append(event.reason.partition(".")[0])
            assert len(set(self.why)) == len(self.why), f"twice in one round: {self.why}"


class RandomSessions(unittest.TestCase):
    def test_a_session_survives_whatever_happens_to_it(self) -> None:
        compressions = 0
        with tempfile.TemporaryDirectory() as folder:
            for seed in range(SESSIONS):
                with self.subTest(seed=seed):
                    session = RandomSession(seed, Path(folder))
                    session.run()
                    compressions += len(session.server.summary_requests)
                    session.path.unlink()
        self.assertGreater(compressions, SESSIONS)  # or it would have proved nothing


if __name__ == "__main__":
    unittest.main()
