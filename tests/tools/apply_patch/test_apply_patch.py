from __future__ import annotations

import os
import random
import stat
import sys
import tempfile
import time
import unittest
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

from mini_agent.conversation.messages import ToolCall
from mini_agent.tools.apply_patch.apply_patch import ApplyPatchTool, apply_patch
from mini_agent.tools.tool import ToolError
from mini_agent.tools.toolbox import Toolbox
from mini_agent.tools.workspace import PlannedWrite, Workspace

COUNT = 5_000 if os.environ.get("MINI_AGENT_LONG_TESTS") else 150
CHANGE = "--- a/{0}\n+++ b/{0}\n@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n"


class ApplyPatchTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name, "workspace")
        self.root.mkdir()
        self.workspace = Workspace(self.root)
        (self.root / "f.txt").write_text("one\ntwo\n", encoding="utf-8")

    def refuse(self, patch: str) -> ToolError:
        before = {path: path.read_bytes() for path in self.root.rglob("*") if path.is_file()}
        with self.assertRaises(ToolError) as caught:
            apply_patch(patch, self.workspace)
        self.assertEqual({path: path.read_bytes() for path in self.root.rglob("*") if path.is_file()}, before)
        return caught.exception

    def mode(self, name: str) -> int:
        return stat.S_IMODE((self.root / name).stat().st_mode)


class MeddledWith(Workspace):
    """A workspace in which somebody else saves a file just before the patch is written."""

    def commit(self, writes: Sequence[PlannedWrite]) -> None:
        (self.root / "f.txt").write_text("saved by somebody\n", encoding="utf-8")
        super().commit(writes)


class TextsTest(ApplyPatchTest):
    def test_a_lone_surrogate_is_refused_with_its_line(self) -> None:
        error = self.refuse(CHANGE.format("f.txt").replace("TWO", "\ud83d"))
        self.assertEqual((error.code, "ine 6" in str(error)), ("bad_patch", True))

    def test_a_nul_in_patch_or_file_is_refused(self) -> None:
        self.assertEqual(self.refuse(CHANGE.format("f.txt").replace("TWO", "T\0")).code, "bad_patch")
        (self.root / "f.txt").write_bytes(b"one\ntwo\n\0")
        self.assertEqual(self.refuse(CHANGE.format("f.txt")).code, "not_text")

    @unittest.skipIf(sys.platform in ("win32", "darwin"), "no such names here")
    def test_a_name_of_odd_bytes_is_found_and_told_on_one_line(self) -> None:
        name = os.fsdecode(b"odd\n\xff.txt")
        (self.root / name).write_text("one\ntwo\n", encoding="utf-8")
        told = apply_patch(
            CHANGE.replace("a/{0}", '"a/odd\\n\\377.txt"').replace("b/{0}", '"b/odd\\n\\377.txt"'), self.workspace
        )
        self.assertEqual(told.encode("utf-8"), b"The patch is applied.\nchanged: odd\\n\\udcff.txt (1 hunk)")
        self.assertEqual((self.root / name).read_text(encoding="utf-8"), "one\nTWO\n")

    def test_a_file_that_somebody_saved_meanwhile_is_left_alone(self) -> None:
        with self.assertRaises(ToolError):
            apply_patch(CHANGE.format("f.txt"), MeddledWith(self.root))
        self.assertEqual((self.root / "f.txt").read_text(encoding="utf-8"), "saved by somebody\n")

    def test_the_tool_answers_a_refusal_as_an_error_and_success_as_text(self) -> None:
        toolbox = Toolbox([ApplyPatchTool(self.workspace)])
        call = ToolCall(id="1", name="apply_patch", arguments_text="", arguments={"patch": CHANGE.format("f.txt")})
        self.assertEqual(toolbox.run(call).text, "The patch is applied.\nchanged: f.txt (1 hunk)")
        self.assertFalse(toolbox.run(call).is_error)  # it stands already
        bad = ToolCall(id="2", name="apply_patch", arguments_text="", arguments={"patch": "x"})
        self.assertTrue(toolbox.run(bad).is_error)

    def test_every_kind_of_patch_text_is_a_refusal_and_no_exception(self) -> None:
        pieces = [
            "@@",
            "@@ -1 +1 @@",
            "--- a/f.txt",
            "+++ b/f.txt",
            "diff --git a/f.txt b/f.txt",
            "*** Begin Patch",
            " x",
        ]
        pieces += [
            "*** Update File: f.txt",
            "*** Add File: ",
            "*** Move to: g",
            "\\ No newline",
            "+x",
            "-one",
            "",
            "```",
        ]
        seed = random.randrange(10**6)
        chance = random.Random(seed)
        for _ in range(COUNT):
            patch = "\n".join(chance.choices(pieces, k=chance.randrange(2, 7)))
            with self.subTest(patch=patch, seed=seed), mock.patch.object(os, "fsync"):
                try:
                    apply_patch(patch, self.workspace)
                except ToolError as error:
                    self.assertTrue(str(error).strip())
                (self.root / "f.txt").write_text("one\ntwo\n", encoding="utf-8")

    def test_a_name_of_many_spaces_and_a_huge_number_take_no_time(self) -> None:
        start = time.monotonic()
        self.refuse("diff --git " + "a " * 50_000 + "\n@@ -1 +1 @@\n-x\n+y\n")
        self.refuse("--- a/f.txt\n+++ b/f.txt\n@@ -" + "9" * 100_000 + " +1 @@\n-nowhere\n+y\n")
        self.assertLess(time.monotonic() - start, 5)


class ModesAndLinksTest(ApplyPatchTest):
    def test_mode_bits_stay_and_are_changed_where_the_patch_says_so(self) -> None:
        (self.root / "f.txt").chmod(0o640)
        apply_patch(CHANGE.format("f.txt"), self.workspace)
        self.assertEqual(self.mode("f.txt"), 0o640)
        told = apply_patch("diff --git a/f.txt b/f.txt\nold mode 100644\nnew mode 100755\n", self.workspace)
        self.assertEqual((self.mode("f.txt"), "mode changed: f.txt" in told), (0o750, True))

    def test_a_new_file_is_executable_where_the_patch_says_so(self) -> None:
        apply_patch(
            "diff --git a/s.sh b/s.sh\nnew file mode 100755\n--- /dev/null\n+++ b/s.sh\n@@ -0,0 +1 @@\n+x\n",
            self.workspace,
        )
        self.assertTrue(self.mode("s.sh") & 0o100)

    def test_a_renamed_file_keeps_its_mode(self) -> None:
        (self.root / "f.txt").chmod(0o755)
        apply_patch("diff --git a/f.txt b/g.txt\nrename from f.txt\nrename to g.txt\n", self.workspace)
        self.assertEqual((self.mode("g.txt"), (self.root / "f.txt").exists()), (0o755, False))

    def test_a_link_stays_a_link_and_its_target_is_edited(self) -> None:
        (self.root / "link.txt").symlink_to("f.txt")
        apply_patch(CHANGE.format("link.txt"), self.workspace)
        self.assertTrue((self.root / "link.txt").is_symlink())
        self.assertEqual((self.root / "f.txt").read_text(encoding="utf-8"), "one\nTWO\n")

    def test_deleting_a_link_removes_the_link_and_not_its_target(self) -> None:
        (self.root / "link.txt").symlink_to("f.txt")
        apply_patch("--- a/link.txt\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-two\n", self.workspace)
        self.assertFalse(os.path.lexists(self.root / "link.txt"))
        self.assertEqual((self.root / "f.txt").read_text(encoding="utf-8"), "one\ntwo\n")

    def test_a_file_under_two_names_gets_both_changes(self) -> None:
        (self.root / "link.txt").symlink_to("f.txt")
        second = "--- a/link.txt\n+++ b/link.txt\n@@ -1 +1 @@\n-one\n+ONE\n"
        apply_patch(CHANGE.format("f.txt") + second, self.workspace)
        self.assertEqual((self.root / "f.txt").read_text(encoding="utf-8"), "ONE\nTWO\n")

    @unittest.skipUnless(hasattr(os, "mkfifo"), "no pipes here")
    def test_a_pipe_is_refused_and_not_waited_for(self) -> None:
        os.mkfifo(self.root / "pipe")
        with self.assertRaises(ToolError):
            apply_patch(CHANGE.format("pipe"), self.workspace)
        with self.assertRaises(ToolError):
            apply_patch(CHANGE.format("f.txt") + "--- /dev/null\n+++ b/pipe\n@@ -0,0 +1 @@\n+x\n", self.workspace)
        self.assertEqual((self.root / "f.txt").read_text(encoding="utf-8"), "one\ntwo\n")

    def test_a_failed_second_write_puts_the_first_file_back(self) -> None:
        (self.root / "g.txt").write_text("one\ntwo\n", encoding="utf-8")
        real = os.replace

        def failing(source: object, target: object, **options: object) -> None:
            if str(target).endswith("g.txt") and "TWO" in Path(str(source)).read_text(encoding="utf-8"):
                raise OSError(28, "No space left on device")
            real(source, target, **options)  # type: ignore[arg-type]

        with mock.patch("os.replace", failing):
            error = self.refuse(CHANGE.format("f.txt") + CHANGE.format("g.txt"))
        self.assertEqual(error.code, "write_failed")


class LinearTest(ApplyPatchTest):
    def test_a_thousand_hunks_in_a_file_of_equal_lines_end_in_time(self) -> None:
        (self.root / "f.txt").write_text("same\n" * 50_000, encoding="utf-8")
        hunks = "".join(f"@@ -{at},3 +{at},3 @@\n same\n-same\n+other\n same\n" for at in range(10, 50_000, 50))
        start = time.monotonic()
        apply_patch("--- a/f.txt\n+++ b/f.txt\n" + hunks, self.workspace)
        self.refuse("--- a/f.txt\n+++ b/f.txt\n" + hunks.replace("@@ -", "@@ -9"))
        self.assertLess(time.monotonic() - start, 20)


if __name__ == "__main__":
    unittest.main()
