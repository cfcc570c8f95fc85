"""What the documents say is what the program does: READMEs, `.env.example`, `--help` and code are compared."""

import dataclasses
import os
import re
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

from mini_agent import commands
from mini_agent.cli import build_parser
from mini_agent.composition import UNKNOWN_WINDOW_TOKENS, open_agent
from mini_agent.context import budget
from mini_agent.conversation.events import EVENT_TYPES
from mini_agent.model.scripted import ScriptedModel, load_script
from mini_agent.prompt_loop import ANSWERED, BAD_USAGE, FAILED, INTERRUPTED
from mini_agent.session.event_log import read_log
from mini_agent.settings import Settings, load_settings, parse_env_text
from mini_agent.tools import compress_tool, grep, list_files, path_policy, read_file
from mini_agent.variables import HONOURED, VARIABLES
from tests import COMPILED

ROOT = Path(__file__).resolve().parent.parent
NAMES = ("README.md", "README.zh-CN.md")
TEXTS = {name: (ROOT / name).read_text(encoding="utf-8") for name in NAMES}
ENGLISH, CHINESE = (TEXTS[name] for name in NAMES)
TEST_COMMAND = "python3 -m unittest discover -s tests"
LEFT_OUT = "[…]"


def blocks(text: str) -> list[tuple[str, str]]:
    """Return language and content of each fenced block."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def prose(text: str) -> str:
    return re.sub(r"^```\w+\n.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def headings(text: str) -> list[str]:
    return re.findall(r"^(#+) ", prose(text), re.MULTILINE)


def rows(text: str, first_cell: str) -> list[list[str]]:
    """Return the cells of the table rows whose first cell matches."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [row for row in cells if re.fullmatch(first_cell, row[0])]


def code(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def numbers(text: str) -> list[str]:
    return re.findall(r"\d+", text)


def for_both(test):
    """Run a test method once for each README, as a subtest."""

    def run(self):
        for name, text in TEXTS.items():
            with self.subTest(name):
                test(self, text)

    return run


class TwoLanguagesTest(unittest.TestCase):
    def test_each_links_to_the_other_in_its_first_line(self):
        self.assertIn("(README.zh-CN.md)", ENGLISH.split("\n", 1)[0])
        self.assertIn("(README.md)", CHINESE.split("\n", 1)[0])

    def test_they_have_the_same_headings_tables_lists_and_links(self):
        self.assertEqual(headings(ENGLISH), headings(CHINESE))
        for what, pattern in {
            "first cells": r"^\| (`.*?`[^|]*?) *\|",
            "rows": r"^(\|)",
            "list items": r"^(- |\d\. )",
            "links": r"\]\(((?!README)[^)]+)\)",
        }.items():
            with self.subTest(what):
                found = [re.findall(pattern, prose(text), re.MULTILINE) for text in (ENGLISH, CHINESE)]
                self.assertEqual(*found)

    def test_they_have_the_same_blocks_and_diagrams_differ_in_words_only(self):
        self.assertEqual([language for language, _ in blocks(ENGLISH)], [language for language, _ in blocks(CHINESE)])
        stays = r"\n|[\w/]+\.\w{2,5}\b|\w+_\w+|[a-z]+/"  # of a diagram, whose captions are translated
        for (language, *english), (_, *chinese) in zip(blocks(ENGLISH), blocks(CHINESE)):
            if language == "text":
                english, chinese = re.findall(stays, english[0]), re.findall(stays, chinese[0])
            self.assertEqual(english, chinese)

    def test_code_in_the_text_is_the_same_in_both(self):
        spans = [set(code(prose(text))) for text in (ENGLISH, CHINESE)]
        self.assertEqual(*spans)

    @for_both
    def test_links_lead_to_files(self, text):
        for target in re.findall(r"\]\(([^)]+)\)", text):
            self.assertTrue((ROOT / target).is_file(), target)


class FlagsTest(unittest.TestCase):
    @for_both
    def test_the_table_has_the_flags_of_help_in_their_order(self, text):
        documented = [row[0].replace("\\|", "|") for row in rows(text, "`-.*")]
        flags = []
        for action in build_parser()._actions:
            value = action.metavar or ("|".join(action.choices) if action.choices else "")
            value = f"[{value}]" if action.nargs == "?" else value
            names = [f"`{name}`" for name in action.option_strings]
            flags.append(", ".join(names)[:-1] + (f" {value}`" if value else "`"))
        self.assertEqual(documented, [*flags[1:], flags[0]])  # help itself stands last

    @for_both
    def test_no_flag_is_named_that_is_not_there(self, text):
        known = {name for action in build_parser()._actions for name in action.option_strings}
        for span in code(prose(text)):
            if span.startswith("-"):
                self.assertIn(span.split()[0], known)

    def test_help_says_which_variable_a_flag_overrides(self):
        help_of = {action.option_strings[-1]: action.help for action in build_parser()._actions}
        for variable in VARIABLES:
            if variable.flag:
                self.assertIn(f"override {variable.name}", help_of[variable.flag])

    @for_both
    def test_exit_codes_are_told(self, text):
        line = next(line for line in text.splitlines() if re.match(r"- \*\*(Exit codes|退出码)\*\*", line))
        codes = [int(number) for number in numbers(line)]
        self.assertEqual(codes, [ANSWERED, FAILED, BAD_USAGE, INTERRUPTED])
        if text is ENGLISH:
            [help_says] = re.findall(r"^exit codes: (.*)$", build_parser().epilog, re.MULTILINE)
            self.assertIn(help_says, line)


class SettingsTest(unittest.TestCase):
    @for_both
    def test_the_table_has_every_variable_with_its_default(self, text):
        table = rows(text, "`(OPENAI|MINI_AGENT)_[A-Z_]+`")
        self.assertEqual([code(row[0])[0] for row in table], [variable.name for variable in VARIABLES])
        for row, variable in zip(table, VARIABLES):
            with self.subTest(variable.name):
                values = [value for value in code(row[1]) if value in variable.default]
                self.assertEqual(code(row[1]), values)
                self.assertEqual(numbers(row[1]), numbers(variable.default))
                if text is ENGLISH:
                    self.assertEqual(row[1].replace("`", ""), variable.default)

    @for_both
    def test_no_variable_is_named_that_is_not_there(self, text):
        known = {variable.name for variable in VARIABLES}
        self.assertLessEqual(set(re.findall(r"(?:MINI_AGENT|OPENAI)_[A-Z_]+", text)), known)
        for name, _ in HONOURED:
            self.assertIn(f"`{name}`", text)

    @for_both
    def test_the_form_of_a_script_that_is_shown_can_be_loaded(self, text):
        [row] = rows(text, "`MINI_AGENT_SCRIPT`")
        form = code(row[2])[-1].replace("{…}", '{"path": "."}').replace("…", '"grep"')
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder, "script.json")
            script.write_text(form, encoding="utf-8")
            reply = load_script(script).reply([], [{}], unittest.mock.Mock())
        self.assertEqual([call.name for call in reply.message.tool_calls], ["grep"])

    def test_the_defaults_that_are_told_are_those_of_the_settings(self):
        local = load_settings({"workspace": str(ROOT), "base_url": "http://localhost/v1"}, {}, [], model_needed=False)
        fields = {field.name: field.default for field in dataclasses.fields(Settings)}
        for variable in VARIABLES:
            with self.subTest(variable.name):
                told, default = variable.default, fields[variable.field]
                if default is True:
                    self.assertEqual(told, "on")
                elif default in ("", None):
                    self.assertRegex(told, r"^(none|built in|known .*|\d+, at most .*)$")
                elif variable.field.endswith("_seconds"):
                    self.assertEqual(numbers(told), [f"{default:g}", f"{getattr(local, variable.field):g}"])
                else:
                    self.assertEqual(told, default.as_posix() if isinstance(default, Path) else str(default))
        told = {variable.field: variable.default for variable in VARIABLES}
        self.assertIn(str(UNKNOWN_WINDOW_TOKENS), told["context_window_tokens"])
        self.assertIn(str(budget.RESERVE_TOKENS), told["compaction_reserve_tokens"])
        self.assertIn(str(budget.KEEP_RECENT_TOKENS), told["compaction_keep_recent_tokens"])

    def test_env_example_has_every_variable_with_its_reason_and_its_default(self):
        text = (ROOT / ".env.example").read_text(encoding="utf-8")
        described = [f"# {each.why}\n# Default: {each.default}\n{each.name}=\n" for each in VARIABLES]
        self.assertEqual(text.split("\n\n", 1)[1], "\n".join(described))

    def test_env_example_copied_as_it_is_changes_nothing(self):
        values, faults = parse_env_text((ROOT / ".env.example").read_text(encoding="utf-8"))
        self.assertEqual((set(values.values()), faults), ({""}, []))
        flags = {"workspace": str(ROOT), "env_file": str(ROOT / ".env.example")}
        copied = load_settings(flags, {}, model_needed=False)
        self.assertEqual(copied, load_settings({"workspace": str(ROOT)}, {}, [], model_needed=False))


class CommandsAndToolsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        workspace = Path(folder.name).resolve()
        self.agent = open_agent(Settings(workspace=workspace), model=ScriptedModel([]))
        self.addCleanup(self.agent.close)

    @for_both
    def test_the_slash_commands_are_those_of_slash_help(self, text):
        documented = [code(row[0])[0] for row in rows(text, "`/.*")]
        helped = re.findall(r"^(/\S+(?: \S*[A-Z]\S*)?)  *", commands.COMMANDS["/help"](self.agent, ""), re.MULTILINE)
        self.assertEqual(documented, helped)
        self.assertEqual([name.split()[0] for name in helped], [*commands.COMMANDS, "/resume", "/exit"])
        for word in commands.LEAVING_WORDS:
            self.assertIn(f"`{word}`", text)

    @for_both
    def test_the_tools_are_those_that_the_model_is_offered(self, text):
        documented = [code(row[0])[0] for row in rows(text, r"`\w+\(.*\)`")]
        offered = commands.COMMANDS["/tools"](self.agent, "")
        self.assertEqual(documented, re.findall(r"^(\w+\(.*?\)): ", offered, re.MULTILINE))

    @for_both
    def test_the_limits_of_the_tools_are_those_of_the_code(self, text):
        limits = {code(row[0])[0].partition("(")[0]: numbers(row[1]) for row in rows(text, r"`\w+\(.*\)`")}
        self.assertEqual(limits["list_files"], ["2", str(list_files.MOST_ENTRIES)])
        kilobytes = read_file.RESULT_LIMIT_BYTES // 1000
        self.assertEqual(limits["read_file"][:2], [str(read_file.MOST_LINES), str(kilobytes)])
        self.assertEqual(limits["read_file"][-1], str(read_file.LONGEST_LINE))
        self.assertEqual(limits["grep"], [str(grep.MATCH_LIMIT), f"{grep.TIME_LIMIT_SECONDS:g}"])
        self.assertEqual(limits["compress_tool"], [str(compress_tool.MOST_COMPRESSIONS)])

    @for_both
    def test_the_protected_names_are_those_of_the_path_policy(self, text):
        paragraph = next(part for part in text.split("\n\n") if "`*.tfstate`" in part)
        self.assertEqual(set(code(paragraph)), {*path_policy._PROTECTED_PATTERNS, *path_policy._OPEN_NAMES})


class FormatsAndTreeTest(unittest.TestCase):
    @for_both
    def test_the_types_of_event_are_those_of_the_log(self, text):
        self.assertEqual([code(row[0])[0] for row in rows(text, "`(?!type)[a-z_]+`")], list(EVENT_TYPES))

    @for_both
    def test_the_line_of_the_log_that_is_shown_can_be_read(self, text):
        [line] = [content for language, content in blocks(text) if language == "json"]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "session.jsonl")
            path.write_text(line.replace('"seq":7', '"seq":1'), encoding="ascii")
            self.assertEqual(read_log(path)[0].to_line() + "\n", path.read_text(encoding="ascii"))

    @for_both
    def test_the_tree_names_every_module_and_nothing_that_is_not_there(self, text):
        [tree] = [content for _, content in blocks(text) if content.startswith("pyproject.toml")]
        named, folder = set(), ""
        for line in tree.splitlines():
            opened = re.match(r"( *)([\w/]+/)(?= |$)", line)
            if opened:
                folder = opened[2] if not opened[1] else f"mini_agent/{opened[2]}"
                folder = f"mini_agent/tools/{opened[2]}" if len(opened[1]) == 4 else folder
                self.assertTrue((ROOT / folder).is_dir(), folder)
            elif len(line) - len(line.lstrip()) == 2:
                folder = "mini_agent/"
            named |= {folder + name for name in re.findall(r"[\w.-]+\.(?:py|toml|md|example)\b|LICENSE", line)}
        modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "mini_agent").rglob("*.py")}
        modules = {path for path in modules if not path.endswith("__init__.py") and "/sample/" not in path}
        self.assertEqual({path for path in named if path.startswith("mini_agent/")}, modules)
        for path in named:
            self.assertTrue((ROOT / path).is_file(), path)
        for name in ("evals", "tests"):
            self.assertEqual(f"\n{name}/" in tree, (ROOT / name).is_dir(), name)


class RunAsWrittenTest(unittest.TestCase):
    """The demo that is shown and the examples in Python, run."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name).resolve()
        (cls.folder / "tmp").mkdir()
        cls.demo = cls.run_python("-m", "mini_agent", "--demo", cwd=ROOT)

    @classmethod
    def run_python(cls, *arguments, cwd, **variables):
        own = ("OPENAI_", "MINI_AGENT_", "PYTHON")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(own)}
        environment.update(TMPDIR=str(cls.folder / "tmp"), HOME=str(cls.folder), COLUMNS="120", **variables)
        environment.update(PYTHONIOENCODING="utf-8", PYTHONPATH=str(ROOT), **COMPILED)
        pipe, out = subprocess.PIPE, subprocess.STDOUT
        command = [sys.executable, "-S", *arguments]
        done = subprocess.run(command, cwd=cwd, env=environment, stdin=pipe, stdout=pipe, stderr=out, timeout=60)
        return done.stdout.decode("utf-8")

    @for_both
    def test_the_session_that_is_shown_is_what_the_demo_prints(self, text):
        [shown] = [content for language, content in blocks(text) if language == "console"]
        seconds = re.compile(r"\d+\.\d+ ?s")
        printed = [seconds.sub("", line) for line in self.demo.splitlines()]
        command, *lines = shown.splitlines()
        self.assertEqual(command, "$ python3 -m mini_agent --demo")
        at, may_skip = 0, False
        for line in lines:
            if line == LEFT_OUT:
                may_skip = True
                continue
            wanted, is_cut = seconds.sub("", line), line.endswith(LEFT_OUT)
            fits = [
                position
                for position in range(at, len(printed) if may_skip else at + 1)
                if printed[position] == wanted or (is_cut and printed[position].startswith(wanted[: -len(LEFT_OUT)]))
            ]
            self.assertTrue(fits, f"{line!r} is not what comes next in:\n{self.demo}")
            at, may_skip = fits[0] + 1, False

    @for_both
    def test_the_turn_that_is_shown_is_what_the_demo_records(self, text):
        [log] = (self.folder / "tmp").glob("*/.mini_agent/sessions/*.jsonl")
        recorded = [entry.event.type for entry in read_log(log)]
        [shown] = [content for _, content in blocks(text) if content.startswith("session_started")]
        lines = [line.split()[0] for line in shown.splitlines()]
        left_out = lines.index(LEFT_OUT)
        end = left_out + 1 - len(lines)
        self.assertEqual(recorded[:left_out] + recorded[end:], lines[:left_out] + lines[end:])
        self.assertEqual(set(recorded[left_out:end]), {"tool_result_added"})

    def test_the_library_examples_run_as_written(self):
        with_model, tool_alone, _ = (content for language, content in blocks(ENGLISH) if language == "python")
        script = self.folder / "script.json"
        script.write_text('{"replies": [{"text": "It counts sheep."}]}', encoding="utf-8")
        output = self.run_python("-c", with_model, cwd=self.folder, MINI_AGENT_SCRIPT=str(script))
        self.assertTrue(output.endswith("turn_ended\ncompleted 1 It counts sheep.\n"), output)
        output = self.run_python("-c", tool_alone, cwd=ROOT)
        self.assertRegex(output, r"mini_agent/tools/grep.py:\d+:class GrepTool\(Tool\):\n")

    @for_both
    def test_the_first_commands_are_the_demo_and_the_tests_that_ci_runs(self, text):
        first = next(content for language, content in blocks(text) if language == "sh")
        self.assertEqual(first.splitlines(), ["python3 -m mini_agent --demo", TEST_COMMAND])
        ci = (ROOT / ".ci/run").read_text(encoding="utf-8")
        [tests] = re.findall(r"^TESTS=\((.*)\)$", ci, re.MULTILINE)
        self.assertEqual(f"python3 {tests}", TEST_COMMAND)


if __name__ == "__main__":
    unittest.main()
