from __future__ import annotations

import random
import re
import unittest
from unittest import mock

from mini_agent.context.tokens import TokenCounter, cut_to_tokens, fair_share, message_tokens, text_tokens, tools_tokens
from mini_agent.conversation.conversation import Conversation
from mini_agent.conversation.events import (
    AssistantMessageAdded,
    HistorySummarized,
    InstructionsSet,
    ModelChanged,
    ToolOutputCompressed,
    ToolResultAdded,
    UserMessageAdded,
)
from mini_agent.conversation.messages import AssistantMessage, Summary, ToolCall, ToolResult, Usage, UserMessage

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
                self.assertTrue(text.startswith(re.split(r"\n\[…| \[…\] |…$", cut)[0]))

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


def add_counted(conversation: Conversation, tokens: int, size: int = 4000) -> None:
    """Add a request of `size` characters, and the reply to it, for which the server counted `tokens`."""
    conversation.apply(UserMessageAdded("x" * size))
    usage = Usage(tokens, 5) if tokens else None
    conversation.apply(AssistantMessageAdded(AssistantMessage("I see."), usage, "m", "url"))


class ServerCounts(unittest.TestCase):
    def setUp(self) -> None:
        self.counter, self.conversation = TokenCounter(), conversation_of(0)

    def sent_with(self, size: int = 4000) -> int:
        """Return the estimate for a request that ends with so many characters more."""
        return self.counter.estimate(self.conversation) + message_tokens(UserMessage("x" * size))

    def test_the_last_request_counts_as_the_server_counted_it_and_what_follows_at_the_same_rate(self) -> None:
        sent = self.sent_with()
        add_counted(self.conversation, sent * 2)
        self.assertEqual(self.counter.count(self.conversation), 2 * self.counter.estimate(self.conversation))
        self.assertEqual(
            self.counter.count(self.conversation) - 2 * sent, 2 * message_tokens(AssistantMessage("I see."))
        )

    def test_the_factor_holds_after_a_compression_and_for_a_server_that_stops_counting(self) -> None:
        add_counted(self.conversation, self.sent_with() * 3 // 2)
        self.counter.count(self.conversation)
        add_counted(self.conversation, 0)
        self.conversation.apply(HistorySummarized((UserMessage("Go on."), Summary("All was told.")), 4, 1, 1, ""))
        self.assertAlmostEqual(self.counter.factor, 1.5, places=2)
        self.assertEqual(self.counter.count(self.conversation), self.counter.scaled(counted_anew(self.conversation)))

    def test_a_resumed_session_takes_the_count_from_its_log(self) -> None:
        add_counted(self.conversation, self.sent_with() * 2)
        resumed = TokenCounter()
        self.assertEqual(resumed.count(self.conversation), 2 * resumed.estimate(self.conversation))

    def test_a_count_from_before_a_compression_says_nothing_of_what_is_sent_after_it(self) -> None:
        for _ in range(5):
            add_counted(self.conversation, self.sent_with() * 2)
        self.conversation.apply(HistorySummarized((UserMessage("Go on."), Summary("x" * 9000)), 11, 1, 1, ""))
        add_counted(self.conversation, 0)
        for _ in range(9):
            add_exchange(self.conversation, f"new{_}")
        self.assertEqual(TokenCounter().count(self.conversation), counted_anew(self.conversation))

    def test_another_model_counts_for_itself(self) -> None:
        add_counted(self.conversation, self.sent_with() * 2)
        self.counter.count(self.conversation)
        self.conversation.apply(ModelChanged("other", "url"))
        self.counter.forget()
        self.assertEqual(self.counter.count(self.conversation), counted_anew(self.conversation))
        self.assertEqual(TokenCounter().count(self.conversation), counted_anew(self.conversation))

    def test_a_count_that_no_tokenizer_could_come_to_is_bounded(self) -> None:
        add_counted(self.conversation, self.sent_with() * 30)
        self.counter.count(self.conversation)
        self.assertEqual(self.counter.factor, 4)

    def test_a_prompt_cut_from_the_start_is_not_believed(self) -> None:
        add_counted(self.conversation, 1024, size=20_000)
        self.assertEqual(self.counter.count(self.conversation), counted_anew(self.conversation))
        self.assertFalse(self.counter.is_counted)

    def test_a_server_that_begins_to_cut_is_believed_no_more(self) -> None:
        for _ in range(12):
            add_counted(self.conversation, min(self.sent_with(), 4096))
            self.assertGreater(self.counter.count(self.conversation), 0.8 * counted_anew(self.conversation))

    def test_a_server_that_counts_little_is_believed_while_its_count_grows(self) -> None:
        for _ in range(8):
            add_counted(self.conversation, self.sent_with(3000) * 6 // 10, size=3000)
            self.counter.count(self.conversation)
        self.assertAlmostEqual(self.counter.factor, 0.6, places=2)

    def test_a_refusal_tells_the_factor_only_where_no_count_has_told_it(self) -> None:
        estimate = self.counter.estimate(self.conversation)
        self.counter.learn_from_refusal(self.conversation, estimate * 2)
        self.assertAlmostEqual(self.counter.factor, 2.5)
        self.counter.learn_from_refusal(self.conversation, estimate * 100)  # another limit than the window
        self.assertAlmostEqual(self.counter.factor, 3.75)
        add_counted(self.conversation, self.sent_with())
        self.counter.count(self.conversation)
        self.counter.learn_from_refusal(self.conversation, estimate * 100)
        self.assertAlmostEqual(self.counter.factor, 1)


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
        self.assertEqual(sum(counter.estimate_each(conversation)) + tools_tokens(TOOLS), counter.count(conversation))

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
