"""Settings: every value that a person can choose."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    """All settings of one run, checked."""

    workspace: Path  # resolved
    model: str = ""
    api_key: str = ""
    base_url: str = "https://api.openai.com/v1"
    timeout_seconds: float = 90
    request_deadline_seconds: float = 600
    max_tool_rounds: int = 40
    context_window_tokens: int | None = None  # None: known model, else the server's word, else 32768
    compaction_reserve_tokens: int | None = None  # None: 16384, at most a quarter of the window
    compaction_keep_recent_tokens: int | None = None  # None: 20000, at most a third of the window
    system_prompt: str = ""  # "": the built-in one
    terminal_log_level: str = "info"
    trace_log_path: Path = Path(".mini_agent/logs/log.log")  # from the workspace where relative
    session_record_path: Path = Path(".mini_agent/sessions/session.md")
    compression: bool = True
    max_turn_tokens: int | None = None
    script: Path | None = None  # a script file: a scripted model answers
    ask_writes: bool = False
    compress_tool: bool = True
    project_instructions: bool = True
