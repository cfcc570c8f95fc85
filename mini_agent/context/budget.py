"""The budget: from the size of the model's window, when to compress and how much to keep."""

from __future__ import annotations

from dataclasses import dataclass

SMALLEST_WINDOW_TOKENS = 2048
RESERVE_TOKENS = 16_384  # for the answer, and for what the estimate misses
KEEP_RECENT_TOKENS = 20_000
LARGEST_RESULT_BYTES = 50_000


@dataclass(frozen=True)
class Budget:
    """How a window is divided, in tokens."""

    window_tokens: int
    reserve_tokens: int  # stays free: a compression starts above window − reserve
    keep_recent_tokens: int  # so much of the newest messages a compression leaves as they are

    @classmethod
    def for_window(
        cls, window_tokens: int, reserve_tokens: int | None = None, keep_recent_tokens: int | None = None
    ) -> Budget:
        """Divide a window.

        reserve_tokens: by default 16,384, at most a quarter of the window.
        keep_recent_tokens: by default 20,000, at most a third of the window.
        A value that does not fit into this window gives way to the default: the window may become known only when the
        server tells it, long after the settings were checked.
        """
        window = max(window_tokens, SMALLEST_WINDOW_TOKENS)
        reserve, keep_recent = reserve_tokens or 0, keep_recent_tokens or 0
        if not 0 < reserve < window:
            reserve = min(RESERVE_TOKENS, window // 4)
        if not 0 < keep_recent < window - reserve:
            keep_recent = min(KEEP_RECENT_TOKENS, window // 3, (window - reserve + 1) // 2)
        return cls(window, reserve, keep_recent)

    def shrunk_to(self, window_tokens: int) -> Budget:
        """Return this budget for a window that turned out smaller."""
        window = max(window_tokens, SMALLEST_WINDOW_TOKENS)
        return Budget.for_window(
            window, min(self.reserve_tokens, window // 4), min(self.keep_recent_tokens, window // 3)
        )

    @property
    def compress_above_tokens(self) -> int:
        """Return the size above which the conversation is compressed."""
        return self.window_tokens - self.reserve_tokens

    @property
    def result_limit_bytes(self) -> int:
        """Return how long one tool result may be: a sixth of the window, so that the newest few always fit."""
        return min(LARGEST_RESULT_BYTES, self.window_tokens * 4 // 6)
