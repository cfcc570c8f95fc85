from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import typing
import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import FrozenInstanceError, fields
from pathlib import Path
from unittest import mock

from mini_agent import settings as settings_module
from mini_agent.settings import Settings, SettingsError, default_env_files, load_settings, parse_env_text
from mini_agent.variables import HONOURED, VARIABLES
from tests import COMPILED

KEY = "sk-0123456789abcdef"
ENOUGH = {"OPENAI_API_KEY": KEY, "OPENAI_MODEL": "gpt"}


class SettingsTestCase(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name).resolve()
        self.workspace = self.folder / "workspace"
        self.workspace.mkdir()
        self.env_file = self.folder / "one.env"

    def load(self, environment: dict[str, str], *files: Path, model_needed: bool = True, **flags: object) -> Settings:
        flags = {"workspace": str(self.workspace), **flags}
        return load_settings(flags, environment, files, model_needed=model_needed)

    def problems(self, environment: dict[str, str], *files: Path, **flags: object) -> str:
        """Return what is wrong, one line each; fail where nothing is, and where the key is shown."""
        with self.assertRaises(SettingsError) as caught:
            self.load(environment, *files, model_needed=True, **flags)
        self.assertEqual(
            str(caught.exception).split("\n")[: len(caught.exception.problems)], list(caught.exception.problems)
        )
        self.assertNotIn(KEY, str(caught.exception))
        return str(caught.exception)

    def wrong(self, name: str, value: str) -> str:
        """Return what is wrong with one value, where nothing else is."""
        lines = self.problems({**ENOUGH, name: value}).split("\n")
        self.assertEqual(len(lines), 1, lines)
        self.assertTrue(lines[0].startswith(name + " is "), lines[0])
        return lines[0]


class TableTest(unittest.TestCase):
    def test_every_variable_has_a_field_a_default_and_a_reason_in_one_line(self) -> None:
        names = {field.name for field in fields(Settings)}
        for variable in VARIABLES:
            self.assertIn(variable.field, names)
            self.assertTrue(variable.default and variable.why)
            self.assertNotIn("\n", variable.why)
        self.assertEqual(len({variable.name for variable in VARIABLES}), len(VARIABLES))
        self.assertFalse({variable.name for variable in VARIABLES} & {name for name, _ in HONOURED})

    def test_the_defaults_that_are_told_are_those_of_the_fields(self) -> None:
        defaults = {field.name: field.default for field in fields(Settings)}
        for variable in VARIABLES:
            if variable.default == "none":
                self.assertIn(defaults[variable.field], ("", None))
            elif variable.field in ("base_url", "terminal_log_level", "max_tool_rounds", "compression"):
                self.assertEqual(variable.check(variable.default), defaults[variable.field])
            elif variable.field.endswith("_path"):
                self.assertEqual(Path(variable.default), defaults[variable.field])
            elif variable.field.endswith("_seconds"):
                self.assertTrue(variable.default.startswith(f"{defaults[variable.field]};"))

    def test_the_table_is_quick_to_import(self) -> None:
        bare = "import __future__, argparse, collections.abc, sys; before = set(sys.modules); "
        code = bare + "import mini_agent.variables; print(sorted(set(sys.modules) - before))"
        environment = {"PYTHONPATH": str(Path(__file__).resolve().parents[1]), **COMPILED}
        done = subprocess.run([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, check=True)
        self.assertEqual(done.stdout.decode().strip(), "['mini_agent', 'mini_agent.variables']")


class OrderTest(SettingsTestCase):
    def test_flags_go_before_the_environment_before_files_before_defaults(self) -> None:
        self.env_file.write_text("OPENAI_MODEL=of-file\nMINI_AGENT_MAX_TOOL_ROUNDS=7\nMINI_AGENT_CONTEXT_WINDOW=4096\n")
        environment = {**ENOUGH, "OPENAI_MODEL": "of-environment", "MINI_AGENT_MAX_TOOL_ROUNDS": "8"}
        found = self.load(environment, self.env_file, model="of-flag")
        self.assertEqual((found.model, found.max_tool_rounds, found.context_window_tokens), ("of-flag", 8, 4096))
        self.assertEqual(found.base_url, "https://api.openai.com/v1")

    def test_the_first_file_that_sets_a_variable_wins(self) -> None:
        second = self.folder / "two.env"
        self.env_file.write_text("OPENAI_MODEL=first\n")
        second.write_text(f"OPENAI_MODEL=second\nOPENAI_API_KEY={KEY}\n")
        found = self.load({}, self.env_file, second)
        self.assertEqual((found.model, found.api_key), ("first", KEY))

    def test_an_empty_value_is_an_unset_one_everywhere(self) -> None:
        self.env_file.write_text("OPENAI_MODEL=of-file\nMINI_AGENT_MAX_TOOL_ROUNDS=\n")
        everything = {variable.name: " " if variable.field == "timeout_seconds" else "" for variable in VARIABLES}
        found = self.load({**everything, "OPENAI_API_KEY": KEY}, self.env_file, model="", base_url="")
        self.assertEqual(found.model, "of-file")
        plain = self.load({"OPENAI_API_KEY": KEY, "OPENAI_MODEL": "of-file"})
        self.assertEqual(found, plain)

    def test_a_value_that_is_overruled_is_not_judged(self) -> None:
        found = self.load({**ENOUGH, "MINI_AGENT_MAX_TOOL_ROUNDS": "many"}, max_rounds="3")
        self.assertEqual(found.max_tool_rounds, 3)

    def test_the_other_flags_arrive(self) -> None:
        found = self.load(ENOUGH, ask_writes=True, disable_compress_tool=True, no_project_instructions=True)
        self.assertEqual((found.ask_writes, found.compress_tool, found.project_instructions), (True, False, False))
        found = self.load(ENOUGH, ask_writes=False, disable_compress_tool=False, env_file=None)
        self.assertEqual((found.ask_writes, found.compress_tool, found.project_instructions), (False, True, True))

    def test_paths_are_taken_from_the_workspace(self) -> None:
        variables = {
            "MINI_AGENT_TRACE_LOG_PATH": "logs/t.log",
            "MINI_AGENT_SESSION_RECORD_PATH": str(self.folder / "s.md"),
        }
        found = self.load({**ENOUGH, **variables})
        self.assertEqual(found.trace_log_path, self.workspace / "logs/t.log")
        self.assertEqual(found.session_record_path, self.folder / "s.md")
        self.assertEqual(self.load(ENOUGH).trace_log_path, self.workspace / ".mini_agent/logs/log.log")

    def test_settings_cannot_be_changed_and_do_not_show_the_key(self) -> None:
        found = self.load(ENOUGH)
        self.assertEqual(found.api_key, KEY)
        self.assertNotIn(KEY, repr(found))
        with self.assertRaises(FrozenInstanceError):
            found.model = "other"  # type: ignore[misc]

    def test_type_hints_can_be_resolved(self) -> None:
        if sys.version_info >= (3, 10):
            self.assertIn("workspace", typing.get_type_hints(Settings))


class MissingTest(SettingsTestCase):
    def test_nothing_set_names_both_variables_and_shows_the_demo(self) -> None:
        lines = self.problems({}, self.env_file).split("\n")
        self.assertEqual([line.split(" is ")[0] for line in lines[:2]], ["OPENAI_API_KEY", "OPENAI_MODEL"])
        self.assertIn(str(self.env_file), lines[0])
        self.assertTrue(lines[2].endswith("python3 -m mini_agent --demo"))
        self.assertEqual(len(lines), 3)

    def test_the_key_is_not_needed_on_a_loopback_address_and_waits_are_longer_there(self) -> None:
        for url in (
            "http://localhost:11434/v1",
            "http://127.9.9.9",
            "http://[::1]:1/v1",
            "http://[::ffff:127.0.0.1]/v1",
        ):
            found = self.load({"OPENAI_MODEL": "m", "OPENAI_BASE_URL": url})
            self.assertEqual((found.timeout_seconds, found.request_deadline_seconds), (600, 1800), url)
            self.assertEqual(found.warnings, ())
        for url in ("http://192.168.0.2", "http://localhost.example.com", "http://127.0.0.1.example.com"):
            self.assertIn("OPENAI_API_KEY is not set", self.problems({"OPENAI_MODEL": "m", "OPENAI_BASE_URL": url}))
        found = self.load({"OPENAI_MODEL": "m", "MINI_AGENT_TIMEOUT_SECONDS": "5"}, base_url="http://localhost")
        self.assertEqual(found.timeout_seconds, 5)

    def test_a_script_needs_neither(self) -> None:
        (self.folder / "script.json").write_text("{}")
        found = self.load({"MINI_AGENT_SCRIPT": str(self.folder / "script.json")})
        self.assertEqual(found.script, self.folder / "script.json")

    def test_who_asks_no_server_needs_neither(self) -> None:
        self.assertEqual(self.load({}, model_needed=False).api_key, "")

    def test_what_is_set_wrongly_is_not_called_missing(self) -> None:
        text = self.problems({"OPENAI_API_KEY": "a b", "OPENAI_MODEL": "a\nb", "OPENAI_BASE_URL": "localhost"})
        self.assertNotIn("not set", text)
        self.assertNotIn("KEY", self.problems({"OPENAI_MODEL": "m", "OPENAI_BASE_URL": "localhost"}))
        self.env_file.write_text("OPENAI_MODEL=m\nbroken\n")
        self.assertNotIn("not set", self.problems({}, self.env_file))


class ChecksTest(SettingsTestCase):
    def test_all_problems_are_told_at_once(self) -> None:
        self.env_file.write_text("MINI_AGENT_COMPRESSION=maybe\n")
        environment = {"OPENAI_BASE_URL": "ftp://x", "MINI_AGENT_TIMEOUT_SECONDS": "soon", "OPENAI_API_KEY": KEY + "\n"}
        text = self.problems(environment, self.env_file, max_rounds="0", workspace="/no/such/folder")
        for name in (
            "OPENAI_BASE_URL is 'ftp://x' (from the environment); it must ",
            "MINI_AGENT_TIMEOUT_SECONDS is 'soon'",
            f"MINI_AGENT_COMPRESSION is 'maybe' (from {self.env_file})",
            "--max-rounds is '0'; it must ",
            "--workspace '/no/such/folder' cannot be used: No such file",
            "OPENAI_API_KEY is not shown here (from the environment); it must",
            "OPENAI_MODEL is not set",
        ):
            self.assertIn("\n" + name, "\n" + text)
        self.assertEqual(len(text.split("\n")), 8)

    def test_numbers_that_are_none(self) -> None:
        for value in ("abc", "0", "-1", "1.5", "1_000", "١٢", "1e3", "0x10", "9" * 5000, "1000000001", "4 4", "inf"):
            self.assertIn("a whole number from 1 to", self.wrong("MINI_AGENT_MAX_TOOL_ROUNDS", value))
        for value in (
            "abc",
            "0",
            "0.0",
            "-1",
            "inf",
            "nan",
            "Infinity",
            "1_0",
            "1e999",
            "9" * 5000,
            "٣",
            "1000001",
            ".",
        ):
            self.assertIn("a number of seconds", self.wrong("MINI_AGENT_TIMEOUT_SECONDS", value))
        for value in ("2047", "1"):
            self.assertIn("from 2048", self.wrong("MINI_AGENT_CONTEXT_WINDOW", value))

    def test_numbers_that_are_some(self) -> None:
        for value, number in (("90", 90), ("2.5", 2.5), (".5", 0.5), (" 1e2 ", 100), ("1000000", 1e6)):
            self.assertEqual(self.load({**ENOUGH, "MINI_AGENT_TIMEOUT_SECONDS": value}).timeout_seconds, number)
        self.assertEqual(self.load({**ENOUGH, "MINI_AGENT_MAX_TURN_TOKENS": " 5000 "}).max_turn_tokens, 5000)

    def test_a_long_value_is_told_in_short(self) -> None:
        self.assertLess(len(self.wrong("MINI_AGENT_MAX_TOOL_ROUNDS", "9" * 5000)), 250)

    def test_the_window_against_reserve_and_keep_recent(self) -> None:
        def of(window: str, reserve: str, keep_recent: str) -> dict[str, str]:
            return {
                **ENOUGH,
                "MINI_AGENT_CONTEXT_WINDOW": window,
                "MINI_AGENT_COMPACTION_RESERVE_TOKENS": reserve,
                "MINI_AGENT_COMPACTION_KEEP_RECENT_TOKENS": keep_recent,
            }

        self.assertIn(
            "RESERVE_TOKENS is 4096; it must be smaller than the window, 4096", self.problems(of("4096", "4096", ""))
        )
        self.assertIn("smaller than the window minus reserve, 3096", self.problems(of("4096", "1000", "3096")))
        self.assertIn("smaller than the window, 4096", self.problems(of("4096", "", "4096")))
        self.assertEqual(self.load(of("4096", "1000", "3095")).compaction_keep_recent_tokens, 3095)
        self.assertEqual(self.load(of("", "1000", "90000")).compaction_keep_recent_tokens, 90000)

    def test_words_are_taken_in_any_case_and_no_others(self) -> None:
        found = self.load({**ENOUGH, "MINI_AGENT_COMPRESSION": "Off", "MINI_AGENT_TERMINAL_LOG_LEVEL": "WARN"})
        self.assertEqual((found.compression, found.terminal_log_level), (False, "warn"))
        self.assertIn("one of on, off", self.wrong("MINI_AGENT_COMPRESSION", "true"))
        self.assertIn("one of debug, info, warn, error, none", self.wrong("MINI_AGENT_TERMINAL_LOG_LEVEL", "verbose"))

    def test_keys_that_cannot_be_sent(self) -> None:
        for value, found in (
            (KEY + "\n", "a line break"),
            (KEY + " x", "a blank"),
            (KEY + "é", "ASCII"),
            (KEY + "\x1b", "ASCII"),
        ):
            self.assertIn(found, self.wrong("OPENAI_API_KEY", value))

    def test_models_that_cannot_be_named(self) -> None:
        for value in ("gpt\n4", "gpt\x1b[31m", "gpt\udcff", "a\x85b"):
            self.wrong("OPENAI_MODEL", value)
        self.assertEqual(self.load({**ENOUGH, "OPENAI_MODEL": " qwen2.5:7b/模型 "}).model, "qwen2.5:7b/模型")

    def test_a_system_prompt_may_have_lines_but_must_be_text(self) -> None:
        self.assertEqual(self.load({**ENOUGH, "MINI_AGENT_SYSTEM_PROMPT": "a\n\tb"}).system_prompt, "a\n\tb")
        self.wrong("MINI_AGENT_SYSTEM_PROMPT", "a\udcff")

    def test_paths_that_are_no_files(self) -> None:
        (self.workspace / "folder").mkdir()
        for value in ("folder", "folder/", ".", "..", "~", "a\0b"):
            self.wrong("MINI_AGENT_TRACE_LOG_PATH", value)
        self.assertIn("event log", self.wrong("MINI_AGENT_SESSION_RECORD_PATH", "a.jsonl"))
        self.assertIn(
            "two different", self.problems({**ENOUGH, "MINI_AGENT_TRACE_LOG_PATH": ".mini_agent/sessions/session.md"})
        )
        self.assertIn("no such file", self.wrong("MINI_AGENT_SCRIPT", str(self.folder / "none.json")))

    def test_a_variable_with_a_slip_in_its_name_is_warned_of(self) -> None:
        self.env_file.write_text("MINI_AGENT_TIMEOUT=5\nOTHER=1\n")
        (warning,) = self.load(ENOUGH, self.env_file).warnings
        self.assertIn("'MINI_AGENT_TIMEOUT'", warning)


class BaseUrlTest(SettingsTestCase):
    def test_good_ones_lose_their_last_slash(self) -> None:
        for value, url in (
            ("https://api.example.com/v1/", "https://api.example.com/v1"),
            (" HTTPS://Api.Example.com ", "https://Api.Example.com"),
            ("http://localhost:11434/v1//", "http://localhost:11434/v1"),
            ("http://[::1]:8080/v1", "http://[::1]:8080/v1"),
            ("https://x.example./a%20b", "https://x.example./a%20b"),
            ("http://ollama_1:1", "http://ollama_1:1"),
        ):
            self.assertEqual(self.load({**ENOUGH, "OPENAI_BASE_URL": value}).base_url, url)

    def test_bad_ones_are_told_with_what_is_wrong(self) -> None:
        for value, why in (
            ("localhost:11434/v1", "begin with http"),
            ("api.openai.com", "begin with http"),
            ("ftp://host", "begin with http"),
            ("//host/v1", "begin with http"),
            ("http:/host", "begin with http"),
            ("https://", "name a host"),
            ("https:///v1", "name a host"),
            ("http://:80", "name a host"),
            ("http://host:", "name a host"),
            ("http://host:port", "name a host"),
            ("http://host:0", "name a host"),
            ("http://host:65536", "name a host"),
            ("http://host:8\u0660", "name a host"),
            ("http://a..b/v1", "name a host"),
            ("http://" + "a" * 64 + ".com", "name a host"),
            ("http://[::1", "name a host"),
            ("http://[nonsense]/v1", "name a host"),
            ("http://[::1]x/v1", "name a host"),
            ("http://a,b/v1", "name a host"),
            ("http://host/v1?key=1", "no query"),
            ("http://host/v1?", "no query"),
            ("http://host/v1#x", "no fragment"),
            ("http://me:secret@host/v1", "no user name"),
            ("http://ho st/v1", "name a host"),
            ("http://host/v1\nx", "name a host"),
            ("http://h\x00st", "name a host"),
            ("http:\\\\host", "begin with http"),
            ("http://münchen.de", "name a host"),
            ("https://host/v1/chat/completions/", "end before /chat/completions"),
            ("https://host/v1/models", "end before /models"),
        ):
            with self.subTest(value=value):
                self.assertIn(why, self.wrong("OPENAI_BASE_URL", value))

    def test_a_password_in_it_is_not_shown(self) -> None:
        for value in ("http://me:hunter2@host/v1", "http://host/?key=hunter2", "me:hunter2@host"):
            self.assertNotIn("hunter2", self.wrong("OPENAI_BASE_URL", value))

    def test_plain_http_to_a_public_host_is_warned_of(self) -> None:
        for host in ("example.com", "8.8.8.8", "[2606:4700::1111]"):
            (warning,) = self.load({**ENOUGH, "OPENAI_BASE_URL": f"http://{host}/v1"}).warnings
            self.assertIn("unencrypted", warning)
        for host in (
            "10.0.0.1",
            "192.168.1.1",
            "[fd00::1]",
            "ollama",
            "nas.local",
            "host.docker.internal",
            "localhost",
        ):
            self.assertEqual(self.load({**ENOUGH, "OPENAI_BASE_URL": f"http://{host}/v1"}).warnings, ())

    def test_plain_http_through_a_proxy_is_warned_of_unless_it_stays_on_this_machine(self) -> None:
        for name in ("http_proxy", "HTTP_PROXY"):
            asked = {**ENOUGH, name: "http://proxy:3128", "OPENAI_BASE_URL": "http://10.0.0.1/v1"}
            (warning,) = self.load(asked).warnings
            self.assertIn("through the proxy", warning)
            self.assertEqual(self.load({**asked, "OPENAI_BASE_URL": "http://127.0.0.1/v1"}).warnings, ())
            self.assertEqual(self.load({**asked, "OPENAI_BASE_URL": "https://10.0.0.1/v1"}).warnings, ())


class WorkspaceTest(SettingsTestCase):
    @contextmanager
    def inside(self, folder: Path) -> Iterator[None]:
        before = Path.cwd()
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)

    def test_without_the_flag_it_is_the_current_folder(self) -> None:
        with self.inside(self.workspace):
            self.assertEqual(self.load(ENOUGH, workspace=None).workspace, self.workspace)

    def test_a_link_is_resolved(self) -> None:
        (self.folder / "link").symlink_to(self.workspace)
        self.assertEqual(self.load(ENOUGH, workspace=str(self.folder / "link")).workspace, self.workspace)

    def test_what_is_no_readable_folder_is_told(self) -> None:
        (self.folder / "file").write_text("")
        (self.folder / "loop").symlink_to(self.folder / "loop")
        for value, why in (
            (str(self.folder / "none"), "No such file"),
            (str(self.folder / "file"), "Not a directory"),
            (str(self.folder / "file/below"), "Not a directory"),
            (str(self.folder / "loop"), "cannot be used"),
            ("a\0b", "cannot be used"),
            ("", "is empty"),
        ):
            text = self.problems(ENOUGH, workspace=value)
            self.assertIn("--workspace ", text)
            self.assertIn(why, text)

    def test_an_unreadable_one_is_told(self) -> None:
        with mock.patch.object(os, "scandir", side_effect=PermissionError(13, "Permission denied")):
            self.assertIn("cannot be used: Permission denied", self.problems(ENOUGH))

    def test_a_current_folder_that_is_gone_is_told(self) -> None:
        gone = self.folder / "gone"
        gone.mkdir()
        with self.inside(gone):
            gone.rmdir()
            self.assertIn("the current folder cannot be used: No such file", self.problems(ENOUGH, workspace=None))
            self.assertIn("no such file", self.problems({**ENOUGH, "MINI_AGENT_SCRIPT": "s.json"}))


class EnvFileTest(SettingsTestCase):
    def test_the_grammar(self) -> None:
        for line, value in (
            ("A=b", "b"),
            ("export A=b", "b"),
            ("  A = b c  ", "b c"),
            ("A=", ""),
            ("A=b # comment", "b"),
            ("A= # comment", ""),
            ("A=b#c", "b#c"),
            ("A=#b", "#b"),
            ("A='b \\n # \" c'", 'b \\n # " c'),
            ("A='b' # comment", "b"),
            ('A="b\\n\\t\\"\\\\ # c"  # comment', 'b\n\t"\\ # c'),
            ('A=""', ""),
            ("A=b'c'", "b'c'"),
            ("A=b=c", "b=c"),
            ("A=$B", "$B"),
            ("A=文\r", "文"),
            ("# comment\n\n  # another\nA=b", "b"),
            ("A=a\nA=b", "b"),
        ):
            self.assertEqual(parse_env_text(line), ({"A": value}, []), line)

    def test_a_bad_line_is_told_by_its_number_and_never_quoted(self) -> None:
        for line in (
            KEY,
            "A B=" + KEY,
            f"A='{KEY}",
            f'A="{KEY}',
            f"A='{KEY}'x",
            f'A="{KEY}\\d"',
            "=" + KEY,
            "1A=x",
            "Ä=x",
            f'A="{KEY}\\',
        ):
            _, faults = parse_env_text("# first\n" + line + "\nB=c\n")
            self.assertEqual([number for number, _ in faults], [2], line)
            self.assertNotIn(KEY, faults[0][1])

    def test_nothing_of_a_file_with_a_bad_line_is_applied(self) -> None:
        self.env_file.write_text("MINI_AGENT_COMPRESSION=maybe\nbroken line\nbroken, too\n")
        text = self.problems(ENOUGH, self.env_file)
        self.assertIn(f"'{self.env_file}', line 2: ", text)
        self.assertIn(f"'{self.env_file}', line 3: ", text)
        self.assertNotIn("maybe", text)

    def test_a_mark_at_the_beginning_and_windows_line_ends_do_no_harm(self) -> None:
        self.env_file.write_bytes(b"\xef\xbb\xbfOPENAI_MODEL=m\r\nOPENAI_API_KEY=" + KEY.encode() + b"\r\n")
        found = self.load({}, self.env_file)
        self.assertEqual((found.model, found.api_key), ("m", KEY))

    def test_files_that_are_no_text_are_told(self) -> None:
        for data, why in (
            ("OPENAI_MODEL=m\n".encode("utf-16"), "not UTF-8"),
            (b"A=\xff\xfe", "not UTF-8"),
        ):
            self.env_file.write_bytes(data)
            self.assertIn(why, self.problems(ENOUGH, self.env_file))

    def test_a_default_place_may_be_empty_and_a_named_file_may_not(self) -> None:
        self.assertEqual(self.load(ENOUGH, self.env_file).model, "gpt")
        self.assertIn(
            f"--env-file '{self.env_file}' cannot be read", self.problems(ENOUGH, env_file=str(self.env_file))
        )
        self.assertIn("cannot be read", self.problems(ENOUGH, env_file=""))

    def test_a_default_place_in_a_folder_that_may_not_be_entered_is_none(self) -> None:
        with mock.patch.object(Path, "stat", side_effect=PermissionError(13, "Permission denied")):
            read = settings_module._read_env_files(None, [self.env_file], [])
        self.assertEqual(read, [(str(self.env_file), {})])

    def test_folders_pipes_and_unreadable_files_are_told(self) -> None:
        self.assertIn("no regular file", self.problems(ENOUGH, self.folder))
        if hasattr(os, "mkfifo"):
            os.mkfifo(self.folder / "pipe")
            self.assertIn("no regular file", self.problems(ENOUGH, self.folder / "pipe"))
        self.env_file.write_text("")
        with mock.patch.object(Path, "read_text", side_effect=PermissionError(13, "Permission denied")):
            self.assertIn("Permission denied", self.problems(ENOUGH, self.env_file))

    def test_a_named_file_is_the_only_one(self) -> None:
        self.env_file.write_text(f"OPENAI_API_KEY={KEY}\n")
        named = self.folder / "named.env"
        named.write_text("OPENAI_MODEL=m\n")
        self.assertIn("OPENAI_API_KEY is not set", self.problems({}, self.env_file, env_file=str(named)))

    def test_the_workspaces_own_file_is_never_read(self) -> None:
        (self.workspace / ".env").write_text("OPENAI_BASE_URL=http://evil.example/v1\nbroken\n")
        with mock.patch.object(settings_module, "default_env_files", return_value=()):
            found = load_settings({"workspace": str(self.workspace)}, ENOUGH)
        self.assertEqual(found.base_url, "https://api.openai.com/v1")
        self.assertNotIn(self.workspace / ".env", default_env_files())

    def test_the_default_places_are_the_checkout_and_the_users_folder(self) -> None:
        package = self.folder / "package"
        package.mkdir()
        user = self.folder / ".config/mini_agent/.env"
        home = mock.patch.dict(os.environ, {"HOME": str(self.folder), "USERPROFILE": str(self.folder)})
        with home, mock.patch.object(settings_module, "__file__", str(package / "settings.py")):
            self.assertEqual(default_env_files(), (user,))
            (self.folder / "pyproject.toml").write_text("")
            self.assertEqual(default_env_files(), (self.folder / ".env", user))
