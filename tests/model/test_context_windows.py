from __future__ import annotations

import unittest

from mini_agent.model.context_windows import known_window


class KnownWindows(unittest.TestCase):
    def test_well_known_models_are_known_under_plain_dated_and_routed_names(self) -> None:
        for name, window in (
            ("gpt-4.1", 1_047_576),
            ("gpt-4.1-mini-2025-04-14", 1_047_576),
            ("gpt-4.1-nano", 1_047_576),
            ("gpt-4o", 128_000),
            ("gpt-4o-2024-08-06", 128_000),
            ("GPT-4o-mini", 128_000),
            ("openai/gpt-5", 400_000),
            ("gpt-5-mini-2025-08-07", 400_000),
            ("gpt-5-nano", 400_000),
        ):
            with self.subTest(name):
                self.assertEqual(known_window(name), window)

    def test_a_name_that_only_begins_alike_is_not_known(self) -> None:
        for name in ("", "gpt-4", "gpt-4o-realtime", "gpt-4o-2024", "gpt-5x", "my-gpt-5", "local", "/"):
            with self.subTest(name):
                self.assertIsNone(known_window(name))
