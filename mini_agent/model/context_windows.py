"""Windows of well-known models, for servers that do not tell."""

from __future__ import annotations

import re

_WINDOW_TOKENS = {"gpt-4.1": 1_047_576, "gpt-4o": 128_000, "gpt-5": 400_000}  # each with its smaller sisters


def known_window(model_name: str) -> int | None:
    """Return the model's window in tokens, or None for a model that is not well known.

    Taken too: a dated name (gpt-4o-2024-08-06), and a router's name with the maker before it (openai/gpt-4o).
    """
    name = model_name.strip().lower().rpartition("/")[2]
    return _WINDOW_TOKENS.get(re.sub(r"(-mini|-nano)?(-\d{4}-\d{2}-\d{2})?$", "", name))
