from __future__ import annotations

import random
import shutil
import subprocess
import time
import unittest

from mini_agent.tools.ignore import is_ignored, read_rules
from tests.tools.workspace_case import WorkspaceCase


def ignores(rules: str, path: str) -> bool:
    return is_ignored(read_rules(rules, 0), path.rstrip("/").split("/"), path.endswith("/"))


class Rules(unittest.TestCase):
    def check(self, rules: str, ignored: str, kept: str) -> None:
        for path in ignored.split():
            with self.subTest(rules=rules, ignored=path):
                self.assertTrue(ignores(rules, path))
        for path in kept.split():
            with self.subTest(rules=rules, kept=path):
                self.assertFalse(ignores(rules, path))

    def test_a_rule_without_a_slash_holds_at_every_depth(self) -> None:
        self.check("*.log\nbuild", "a.log x/y/a.log build x/build", "a.logs builds x/log")

    def test_a_trailing_slash_means_folders_only(self) -> None:
        self.check("build/", "build/ x/build/", "build x/build")

    def test_a_slash_anchors_a_rule_to_its_folder(self) -> None:
        self.check("/a\nb/c", "a b/c", "x/a x/b/c")

    def test_two_stars_stand_for_any_number_of_folders(self) -> None:
        self.check("a/**/z\n**/q/r\nin/**", "a/z a/b/z a/b/c/z q/r x/y/q/r in/x in/x/y", "z b/a/z/ a/b in/ q/x/r")

    def test_a_star_does_not_cross_a_slash(self) -> None:
        self.check("a/*/c", "a/b/c", "a/b/b/c a/c")

    def test_the_last_rule_that_matches_decides(self) -> None:
        self.check("*.log\n!keep.log\nkeep.log/", "a.log keep.log/", "keep.log x/keep.log")

    def test_classes_and_question_marks(self) -> None:
        self.check("[a-c].x\n[!a].y\n[^a].z\n??", "a.x b.y b.z xx", "d.x a.y a.z x xxx")

    def test_comments_blanks_crlf_bom_and_escapes(self) -> None:
        self.check("\ufeff# no\r\n\r\n\\#yes\r\n\\!yes\r\nend  \r\n\\*\r\n", "#yes !yes end *", "no # end.x x")
        self.assertTrue(ignores("a\\ ", "a "))

    def test_a_file_further_down_goes_before_one_further_up(self) -> None:
        upper = read_rules("*.txt\n", 0)
        rules = upper + read_rules("!*.txt\n/own.txt\n", 1)
        self.assertFalse(is_ignored(rules, ["sub", "a.txt"], False))
        self.assertTrue(is_ignored(rules, ["sub", "own.txt"], False))
        self.assertFalse(is_ignored(rules, ["sub", "deep", "own.txt"], False))
        self.assertTrue(is_ignored(upper, ["a.txt"], False))

    def test_a_broken_rule_ignores_nothing_and_breaks_nothing(self) -> None:
        for rules in ("[z-a]", "[", "/", "//", "!", "!/", "**", "a\\", "\udcff*"):
            ignores(rules, "some/path")

    def test_no_rule_is_slow(self) -> None:
        started = time.monotonic()
        ignores("*a" * 60 + "b", "a" * 250)
        ignores("/".join(["**", "a"] * 60) + "/b", "/".join("a" * 250))
        self.assertLess(time.monotonic() - started, 20)  # either would take longer than the universe, done naively


@unittest.skipUnless(shutil.which("git"), "there is no git to compare with")
class AgainstGit(WorkspaceCase):
    NAMES = ("a", "b", "ab", "a.py", "b.log", "foo bar", "x[1]", "B")
    PATTERNS = (*NAMES, "*", "**", "*.py", "a*", "?", "[ab]", "[!a]", "*o*", "\\*", "x\\[1\\]", "[a-f]*", "\\a")

    def test_what_git_ignores_is_left_out_of_a_walk(self) -> None:
        seed = random.randrange(10**6)
        chance = random.Random(seed)
        subprocess.run(["git", "init", "-q", "--bare", str(self.outside / "git")], check=True, timeout=20)
        for _ in range(10):
            self.grow_tree(chance)
            walked = {str(entry.path.relative_to(self.root)) for entry in self.workspace.walk(self.root)}
            files = {path for path in walked if (self.root / path).is_file()}
            self.assertEqual(files, self.files_by_git(), f"seed {seed}")

    def grow_tree(self, chance: random.Random) -> None:
        shutil.rmtree(self.root)
        folders = [self.root]
        for _ in range(8):
            folders.append(chance.choice(folders) / chance.choice(self.NAMES))
            folders[-1].mkdir(parents=True, exist_ok=True)
        for folder in folders:
            for name in chance.sample(self.NAMES, 3):
                if not (folder / name).exists():
                    (folder / name).touch()
        for folder in chance.sample(folders, 3):
            rules = [self.pattern(chance) for _ in range(3)]
            (folder / ".gitignore").write_text("\n".join(rules), encoding="utf-8")

    def pattern(self, chance: random.Random) -> str:
        path = "/".join(chance.choice(self.PATTERNS) for _ in range(chance.choice((1, 1, 2, 3))))
        return chance.choice(("", "", "!")) + chance.choice(("", "", "/")) + path + chance.choice(("", "", "/"))

    def files_by_git(self) -> set[str]:
        command = ["git", f"--git-dir={self.outside / 'git'}", "--work-tree=.", "-c", "core.excludesFile="]
        command += ["ls-files", "-z", "--others", "--exclude-standard"]
        done = subprocess.run(command, cwd=self.root, check=True, timeout=20, stdout=subprocess.PIPE)
        return {name for name in done.stdout.decode("utf-8").split("\0") if name}


if __name__ == "__main__":
    unittest.main()
