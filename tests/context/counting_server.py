"""A double for a chat server that counts what it is sent and refuses what is over its window."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Callable

from mini_agent.context.compressor import problem_with
from mini_agent.context.tokens import message_tokens, tools_tokens
from mini_agent.conversation.messages import AssistantMessage, JsonObject, Message, ToolCall, UserMessage
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
    ) -> None:
        self.window_tokens, self.factor, self.names_window = window_tokens, factor, names_window
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
            self.refusals += 1
            raise ContextOverflow(f"{size} tokens are too many", self.window_tokens if self.names_window else None)
        if not tools:
            return ModelReply(AssistantMessage(self.summary()))
        self.sizes.append(size)
        problem = problem_with([], messages)
        assert not problem, problem
        return ModelReply(self.answer(messages))


class TellTool:
    """A tool whose result is as long as it is asked to be."""

    name = "tell"
    description = "Return a text."
    parameters = (Parameter("number", "integer", "which", required=True), Parameter("size", "integer", "length", 10))
    time_limit_seconds = 60.0
    narrowing = ""
    only_reads = True

    def run(self, arguments: Any) -> ToolOutcome:
        return ToolOutcome(words(random.Random(arguments["number"]), arguments["size"]))


def tell(number: int, size: int) -> ToolCall:
    arguments = {"number": number, "size": size}
    return ToolCall("", "tell", f'{{"number": {number}, "size": {size}}}', arguments)


def words(chance: random.Random, size: int, alphabet: str = "abcdefgh \n") -> str:
    """Return a text of `size` characters, cheap to make."""
    piece = "".join(chance.choices(alphabet, k=min(size, 97))) or " "
    return (f"{chance.randrange(10**6)} " + piece * (size // len(piece) + 1))[:size]


def own_words(messages: Sequence[Message]) -> list[str]:
    return [message.text for message in messages if isinstance(message, UserMessage)]
