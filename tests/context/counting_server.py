"""A double for a chat server that counts what it is sent and refuses what is over its window."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Callable

from mini_agent.context.compressor import problem_with
from mini_agent.context.tokens import message_tokens, tools_tokens
from mini_agent.conversation.messages import AssistantMessage, JsonObject, Message, ToolCall, Usage, UserMessage
from mini_agent.model.chat_model import ContextOverflow, ModelReply, Watch
from mini_agent.tools.tool import Parameter, ToolOutcome

Answer = Callable[[Sequence[Message]], AssistantMessage]


class CountingServer:
    """Answer with what `answer` and `summary` return, once a request fits."""

    def __init__(
        self,
        window_tokens: int,
        answer: Answer,
        summary: Callable[[], str] = lambda: "## Goal\nto go on",
        *,
        factor: float = 1.0,
        names_window: bool = True,
        counts: bool = False,
    ) -> None:
        self.window_tokens, self.factor = window_tokens, factor  # of its tokens to our estimate
        self.names_window, self.counts = names_window, counts  # what it tells: in a refusal, and with each answer
        self.answer, self.summary = answer, summary
        self.requests: list[list[Message]] = []  # those with tools, taken or refused
        self.summary_requests: list[list[Message]] = []
        self.sizes: list[int] = []  # of those with tools that were taken
        self.refusals = 0

    def reply(
        self, messages: Sequence[Message], tools: Sequence[JsonObject], watch: Watch, may_call_tools: bool = True
    ) -> ModelReply:
        (self.requests if tools else self.summary_requests).append(list(messages))
        size = int(self.factor * (sum(map(message_tokens, messages)) + tools_tokens(tools)))
        if size > self.window_tokens:
            self.refusals += 1 if tools else 0
            raise ContextOverflow(f"{size} tokens are too many", self.window_tokens if self.names_window else None)
        usage = Usage(size, 1) if self.counts else None
        if not tools:
            return ModelReply(AssistantMessage(self.summary()), usage)
        self.sizes.append(size)
        problem = problem_with([], messages)
        assert not problem, problem
        return ModelReply(self.answer(messages), usage)


class TellTool:
    """A tool whose result is as long as it is asked to be."""

    name = "tell"
    description = "Return a text."
    parameters = (Parameter("number", "integer", "which", required=True), Parameter("size", "integer", "length", 10))
    time_limit_seconds = 60.0
    narrowing = ""
    only_reads = True

    def __init__(self, beginning: Callable[[int], str] = lambda number: "") -> None:
        self._beginning = beginning  # of the text with this number

    def run(self, arguments: Any) -> ToolOutcome:
        number = arguments["number"]
        return ToolOutcome(self._beginning(number) + words(random.Random(number), arguments["size"]))


def tell(number: int, size: int) -> ToolCall:
    arguments = {"number": number, "size": size}
    return ToolCall("", "tell", f'{{"number": {number}, "size": {size}}}', arguments)


def words(chance: random.Random, size: int, alphabet: str = "abcdefgh \n") -> str:
    """Return a text of `size` characters, cheap to make."""
    piece = "".join(chance.choices(alphabet, k=min(size, 97))) or " "
    return (f"{chance.randrange(10**6)} " + piece * (size // len(piece) + 1))[:size]


def own_words(messages: Sequence[Message]) -> list[str]:
    return [message.text for message in messages if isinstance(message, UserMessage)]
