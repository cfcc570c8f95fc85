import tempfile
import unittest
from pathlib import Path

from mini_agent.agent.instructions import ProjectNotes
from mini_agent.agent.runner import AgentRunner
from mini_agent.conversation.events import Event, ToolOutputCompressed, ToolResultAdded
from mini_agent.demo.demo import REQUEST, SCRIPT, copy_sample, run_tests
from mini_agent.model.scripted import load_script
from mini_agent.session.event_log import EventLog
from mini_agent.session.session import Session
from mini_agent.tools.apply_patch.apply_patch import ApplyPatchTool
from mini_agent.tools.compress_tool import CompressTool
from mini_agent.tools.grep import GrepTool
from mini_agent.tools.list_files import ListFilesTool
from mini_agent.tools.read_file import ReadFileTool
from mini_agent.tools.toolbox import Toolbox
from mini_agent.tools.workspace import Workspace


class ScriptTest(unittest.TestCase):
    """The script of the demonstration against the real loop and the real tools."""

    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name).resolve()
        copy_sample(cls.folder)
        log = EventLog(cls.folder / ".log.jsonl")
        cls.addClassCleanup(log.close)
        session = Session(log)
        workspace = Workspace(cls.folder, session.record)
        toolbox = Toolbox(
            [
                ListFilesTool(workspace, lambda question: False),
                GrepTool(workspace, lambda question: False),
                ReadFileTool(workspace),
                ApplyPatchTool(workspace),
                CompressTool(session.conversation.earlier_results, lambda name, given: toolbox.canonical(name, given)),
            ]
        )
        cls.tool_names = set(toolbox.names)
        cls.events: list[Event] = []
        session.listen(lambda entry: cls.events.append(entry.event))
        notes = ProjectNotes(workspace, 32_768)
        cls.notes = notes.for_root()
        runner = AgentRunner(
            load_script(SCRIPT), toolbox, session, lambda *given, **named: False, notes_for=notes.for_paths
        )
        cls.result = runner.run_turn(REQUEST)
        cls.results = [event for event in cls.events if isinstance(event, ToolResultAdded)]

    def test_the_turn_is_completed_with_an_answer(self) -> None:
        self.assertEqual((self.result.status, self.result.reason), ("completed", ""))
        self.assertIn("parcel/postage.py, line 18", self.result.answer)

    def test_every_tool_is_used_and_no_call_fails(self) -> None:
        self.assertEqual([event.text for event in self.results if event.is_error], [])
        self.assertEqual({event.tool_name for event in self.results}, self.tool_names)

    def test_the_long_result_is_replaced_by_a_much_shorter_one(self) -> None:
        [compressed] = [event for event in self.events if isinstance(event, ToolOutputCompressed)]
        self.assertLess(len(compressed.text) * 5, compressed.characters_before)

    def test_what_the_script_says_of_the_price_list_is_so(self) -> None:
        [compressed] = [event for event in self.events if isinstance(event, ToolOutputCompressed)]
        lines = (self.folder / "rates.csv").read_text(encoding="utf-8").splitlines()
        self.assertIn(f"{len(lines)} lines", compressed.text)
        self.assertIn(lines[1].lstrip("# "), compressed.text)
        self.assertTrue({"1,2000,595,1,counter", "1,2500,640,1,counter", "3,31500,3295,3,pickup"} <= set(lines))
        self.assertEqual(len(lines), 4 + 7 * 22)

    def test_the_projects_notes_are_there_to_be_followed(self) -> None:
        self.assertIn("CHANGES.md", self.notes)

    def test_afterwards_the_samples_own_tests_pass(self) -> None:
        lines: list[str] = []
        self.assertTrue(run_tests(self.folder, lines.append), lines)


if __name__ == "__main__":
    unittest.main()
