from __future__ import annotations

import random
import unittest
from unittest import mock

from mini_agent.context.tokens import TokenCounter, cut_to_tokens, fair_share, message_tokens, text_tokens, tools_tokens
from mini_agent.conversation.conversation import Conversation
from mini_agent.conversation.events import (
    AssistantMessageAdded,
    HistorySummarized,
    InstructionsSet,
    ToolOutputCompressed,
    ToolResultAdded,
    UserMessageAdded,
)
from mini_agent.conversation.messages import AssistantMessage, Summary, ToolCall, ToolResult, UserMessage

TOOLS = ({"name": "tell", "description": "Return a text.", "parameters": {"type": "object"}},)


def conversation_of(exchanges: int) -> Conversation:
    conversation = Conversation()
    conversation.apply(InstructionsSet("Help.", TOOLS, "1"))
    conversation.apply(UserMessageAdded("Go on."))
    for number in range(exchanges):
        add_exchange(conversation, f"call_{number}")
    return conversation


def add_exchange(conversation: Conversation, call_id: str) -> None:
    call = ToolCall(call_id, "tell", "{}", {})
    conversation.apply(AssistantMessageAdded(AssistantMessage("I look.", (call,)), None, "", ""))
    conversation.apply(ToolResultAdded(call_id, "tell", "text " * 20, False, "tell {}"))


def counted_anew(conversation: Conversation) -> int:
    return sum(map(message_tokens, conversation.visible_messages())) + tools_tokens(conversation.tools)


class Estimates(unittest.TestCase):
    def test_ascii_counts_as_a_quarter_of_its_characters_rounded_up(self) -> None:
        self.assertEqual([text_tokens("a" * size) for size in (0, 1, 4, 5, 400)], [0, 1, 1, 2, 100])

    def test_a_chinese_character_counts_as_three_quarters_of_a_token(self) -> None:
        self.assertEqual(text_tokens("你好世界" * 100), 300)

    def test_a_lone_surrogate_is_counted_and_breaks_nothing(self) -> None:
        self.assertEqual(text_tokens("\udc80"), 1)

    def test_calls_and_provider_fields_are_counted_with_the_message(self) -> None:
        bare = message_tokens(AssistantMessage("text"))
        call = ToolCall("call_1", "tell", '{"number": 1}' * 10, None)
        self.assertGreater(message_tokens(AssistantMessage("text", (call,))), bare + 30)
        self.assertGreater(message_tokens(AssistantMessage("text", (), {"reasoning": "so " * 40})), bare + 30)

    def test_a_result_counts_its_text_and_its_call_id(self) -> None:
        self.assertEqual(
            message_tokens(ToolResult("call_1234567", "tell", "x" * 40)), message_tokens(UserMessage("x" * 52))
        )


class Cutting(unittest.TestCase):
    def test_a_cut_text_keeps_to_its_limit_and_to_its_own_words(self) -> None:
        for seed in range(300):
            chance = random.Random(seed)
            text = "".join(chance.choices("abc \n中é\U0001f600", k=chance.randrange(3000)))
            limit = chance.randrange(1, 800)
            with self.subTest(seed=seed):
                cut = cut_to_tokens(text, limit, "Ask again")
                self.assertLessEqual(text_tokens(cut), limit)
                self.assertEqual(cut == text, text_tokens(text) <= limit)
                self.assertTrue(text.startswith(cut.partition("\n[…")[0].rstrip("…")))

    def test_a_limit_of_nothing_gives_no_more_than_the_mark(self) -> None:
        self.assertEqual(cut_to_tokens("a long text", 0), "…")
        self.assertEqual(cut_to_tokens("a long text", -5), "…")

    def test_only_the_large_ones_give_and_all_keep_to_the_limit(self) -> None:
        self.assertEqual(fair_share([10, 1000, 20], 130), 100)
        self.assertEqual(fair_share([10, 20], 130), 130)
        self.assertEqual(fair_share([50, 50], -1), 0)
        for seed in range(300):
            chance = random.Random(seed)
            sizes = [chance.randrange(1000) for _ in range(chance.randrange(1, 20))]
            limit = chance.randrange(5000)
            with self.subTest(seed=seed):
                share = fair_share(sizes, limit)
                self.assertLessEqual(sum(min(size, share) for size in sizes), limit)


class Counter(unittest.TestCase):
    def test_the_count_is_what_counting_anew_gives_whatever_happened(self) -> None:
        counter, conversation = TokenCounter(), conversation_of(0)
        for number in range(20):
            add_exchange(conversation, f"call_{number}")
            self.assertEqual(counter.count(conversation), counted_anew(conversation))
        conversation.apply(ToolOutputCompressed("call_7", "short", 100))
        self.assertEqual(counter.count(conversation), counted_anew(conversation))
        conversation.apply(HistorySummarized((UserMessage("Go on."), Summary("All was told.")), 30, 1, 1, ""))
        self.assertEqual(counter.count(conversation), counted_anew(conversation))
        self.assertEqual(sum(counter.count_each(conversation)) + tools_tokens(TOOLS), counter.count(conversation))

    def test_a_hidden_call_is_no_longer_counted(self) -> None:
        counter, conversation = TokenCounter(), conversation_of(3)
        before = counter.count(conversation)
        call = ToolCall("hidden", "compress_tool", "{}" * 50, {})
        conversation.apply(AssistantMessageAdded(AssistantMessage("", (call,)), None, "", ""))
        conversation.apply(ToolResultAdded("hidden", "compress_tool", "done", False, "", hidden=True))
        self.assertEqual(counter.count(conversation), before)

    def test_another_conversation_is_counted_for_itself(self) -> None:
        counter, other = TokenCounter(), conversation_of(3)
        counter.count(conversation_of(9))
        self.assertEqual(counter.count(other), counted_anew(other))

    def test_a_round_estimates_only_the_new_messages_however_long_the_history(self) -> None:
        counter, conversation = TokenCounter(), conversation_of(5000)
        counter.count(conversation)
        add_exchange(conversation, "new")
        with mock.patch("mini_agent.context.tokens.message_tokens", side_effect=message_tokens) as estimate:
            counter.count(conversation)
            self.assertEqual(estimate.call_count, 2)

    def test_after_a_compression_only_what_is_new_is_estimated(self) -> None:
        counter, conversation = TokenCounter(), conversation_of(50)
        counter.count(conversation)
        conversation.apply(HistorySummarized((UserMessage("Go on."), Summary("All was told.")), 60, 1, 1, ""))
        with mock.patch("mini_agent.context.tokens.message_tokens", side_effect=message_tokens) as estimate:
            counter.count(conversation)
            self.assertEqual(estimate.call_count, 2)
