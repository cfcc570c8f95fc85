from __future__ import annotations

import os
import random
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from mini_agent.tools.apply_patch.apply_patch import apply_patch
from mini_agent.tools.tool import ToolError
from mini_agent.tools.workspace import Workspace
from tests.tools.apply_patch.random_patches import RandomCase, make_case

COUNT = 2_000 if os.environ.get("MINI_AGENT_LONG_TESTS") else 80


def check_random_patches(test: unittest.TestCase, count: int, first_seed: int) -> None:
    """Apply `count` random patches and compare with the truth; the seed of a failing one is in its message."""
    with mock.patch.object(os, "fsync"):  # nothing here is about crashes
        for seed in range(first_seed, first_seed + count):
            case = make_case(random.Random(seed))
            if case is not None:
                with test.subTest(seed=seed, story=case.story), tempfile.TemporaryDirectory() as folder:
                    _check(test, case, Path(folder))


def _check(test: unittest.TestCase, case: RandomCase, folder: Path) -> None:
    for name, text in case.before.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(text.encode("utf-8"))
    try:
        told = apply_patch(case.patch, Workspace(folder))
        is_applied = True
    except ToolError as error:
        told, is_applied = f"{error.code}: {error}", False
    found = {path.relative_to(folder).as_posix(): path.read_bytes().decode("utf-8") for path in _files(folder)}
    test.assertEqual(found, case.after if is_applied else case.before, f"{case.patch}\n{told}")
    if case.must_refuse:
        test.assertFalse(is_applied, f"accepted: {case.patch}\n{told}")
    elif not case.may_refuse:
        test.assertTrue(is_applied, f"refused: {case.patch}\n{told}")


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


class RandomPatchesTest(unittest.TestCase):
    def test_a_random_patch_gives_the_right_text_or_changes_nothing(self) -> None:
        check_random_patches(self, COUNT, first_seed=20_000)


if __name__ == "__main__":
    unittest.main()
