"""What the bookkeeping of a round costs as the conversation grows: printed as times and as a ratio.

    python -m evals.speed.round_cost

A round is what the program does beside asking the model and running tools: it makes room (counting tokens, reading the
server's count), folds the reply and the result into the conversation, and asks for what is visible. Recording to the
disk is left out: it costs the same at any length, and more than all of this. The cost must not grow with the length.
"""

from __future__ import annotations

import statistics
import time

from mini_agent.context.budget import Budget
from mini_agent.context.compressor import Compressor
from mini_agent.context.tokens import TokenCounter
from mini_agent.conversation.conversation import Conversation
from mini_agent.conversation.events import AssistantMessageAdded, InstructionsSet, ToolResultAdded, UserMessageAdded
from mini_agent.conversation.messages import AssistantMessage, ToolCall, Usage
from mini_agent.model.chat_model import ModelReply

LENGTHS = (100, 1_000, 10_000)  # in messages
ROUNDS = 400
RUNS = 5
TOOLS = tuple(
    {"name": f"tool_{number}", "description": "It reads a file. " * 20, "parameters": {"type": "object"}}
    for number in range(5)
)


class Session:
    """A conversation that grows round by round, and what keeps it inside a window that it never fills."""

    def __init__(self) -> None:
        self.conversation = Conversation()
        self.counter = TokenCounter()
        self.compressor = Compressor(Budget.for_window(10**9), self.counter)
        self.rounds = 0
        self.conversation.apply(InstructionsSet("You are a coding agent. " * 100, TOOLS, "1"))
        self.conversation.apply(UserMessageAdded("Go on."))

    def round(self) -> None:
        """Do what a round with one tool call does."""
        self.rounds += 1
        conversation, call_id = self.conversation, f"call_{self.rounds}"
        self.compressor(conversation, conversation.apply, never)
        len(conversation.visible_messages())
        message = AssistantMessage("I look.", (ToolCall(call_id, "tool_1", "{}", {}),))
        conversation.apply(AssistantMessageAdded(message, Usage(self.rounds * 150 + 900, 20), "m", "url"))
        conversation.apply(ToolResultAdded(call_id, "tool_1", "text " * 100, False, f"tool_1 {self.rounds}"))


def never(messages: object) -> ModelReply:
    """Stand for the model, which is not asked here."""
    raise AssertionError("nothing is to be compressed")


def microseconds_at(length: int) -> float:
    """Return the median time of a round where the conversation has so many messages."""
    session, times = Session(), []
    while len(session.conversation.visible_messages()) < length:
        session.round()
    for _ in range(ROUNDS if length > 1_000 else 50):  # a short conversation is not to grow long meanwhile
        start = time.perf_counter()
        session.round()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


if __name__ == "__main__":
    medians = {length: statistics.median(microseconds_at(length) for _ in range(RUNS)) for length in LENGTHS}
    for length, median in medians.items():
        print(f"{length:6,} messages: {median:6.1f} µs a round = {median / medians[LENGTHS[0]]:.2f} x")
