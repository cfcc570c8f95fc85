"""The budget: from the size of the model's window, when to compress and how much to keep."""

from __future__ import annotations

from dataclasses import dataclass

SMALLEST_WINDOW_TOKENS = 2048
RESERVE_TOKENS = 16_384  # for the answer, and for what the estimate misses
KEEP_RECENT_TOKENS = 20_000
LARGEST_RESULT_BYTES = 50_000
SMALLEST_ROOM_TOKENS = 192  # with less beside the instructions and tools, nothing useful could be kept


@dataclass(frozen=True)
class Lines:
    """The sizes that matter, in tokens of a whole request, for instructions and tools of a certain size."""

    fixed: int  # instructions and tools: what goes with every request
    target: int  # no more than this is left by a compression
    compress: int  # above this the conversation is compressed
    limit: int  # the window: what is larger is refused

    @property
    def room(self) -> int:
        """Return what the target leaves for the conversation."""
        return self.target - self.fixed


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
        """Return the size above which the conversation is compressed, where instructions and tools are not large."""
        return self.window_tokens - self.reserve_tokens

    def lines(self, fixed_tokens: int) -> Lines:
        """Draw the lines for instructions and tools of so many tokens.

        A compression goes a quarter below the line, so that there is room to grow before the next. Where that would
        leave too little beside large instructions, the line is raised, at the cost of the reserve.
        """
        line = self.compress_above_tokens
        if (line - fixed_tokens) * 3 // 4 < SMALLEST_ROOM_TOKENS:
            line = max(line, fixed_tokens + (self.window_tokens - fixed_tokens) * 3 // 4)
        return Lines(fixed_tokens, fixed_tokens + (line - fixed_tokens) * 3 // 4, line, self.window_tokens)

    def warning(self, fixed_tokens: int) -> str:
        """Return what is to be told, with numbers, of instructions and tools that leave too little; "" for nothing."""
        lines = self.lines(fixed_tokens)
        if lines.compress == self.compress_above_tokens and lines.room >= SMALLEST_ROOM_TOKENS:
            return ""
        taken = (
            f"instructions and tools alone take about {fixed_tokens:,} of the window's {self.window_tokens:,} tokens"
        )
        left = max(self.window_tokens - fixed_tokens, 0)
        if lines.room < SMALLEST_ROOM_TOKENS:
            return f"{taken}: too little is left for a conversation ({left:,}); a larger window is needed"
        return f"{taken}: {left:,} are left for the conversation and the answer, so both will be short"

    @property
    def result_limit_bytes(self) -> int:
        """Return how long one tool result may be: a sixth of the window, so that the newest few always fit."""
        return min(LARGEST_RESULT_BYTES, self.window_tokens * 4 // 6)
