from __future__ import annotations

import os
import socket
import sys
import tempfile
import threading
import unittest
from pathlib import Path
from unittest import mock

from mini_agent.tools.tool import ToolError
from mini_agent.tools.workspace import PlannedWrite, Workspace
from tests.tools.workspace_case import WorkspaceCase

HAS_LINKS = hasattr(os, "symlink") and os.name != "nt"
IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


class Resolving(WorkspaceCase):
    def test_paths_inside_are_taken_however_they_are_spelt(self) -> None:
        target = self.write("src/a.py")
        for asked in ("src/a.py", "./src/a.py", "src//a.py", "src/../src/a.py", "nope/../src/a.py", str(target)):
            with self.subTest(asked=asked):
                self.assertEqual(self.workspace.resolve(asked), target)
        for asked in ("", ".", "./", "src/..", str(self.root)):
            with self.subTest(asked=asked):
                self.assertEqual(self.workspace.resolve(asked), self.root)

    def test_a_path_need_not_exist(self) -> None:
        self.assertEqual(self.workspace.resolve("new/deep/x.py"), self.root / "new/deep/x.py")

    def test_what_leads_outside_is_refused(self) -> None:
        sibling = self.outside / "secret.txt"
        for asked in ("..", "../x", "a/../../x", "/", "/etc/passwd", str(sibling), "../work-not/secret.txt"):
            with self.subTest(asked=asked):
                self.refused("outside_workspace", self.workspace.resolve, asked)

    def test_a_home_folder_is_outside_and_a_file_with_a_tilde_is_not(self) -> None:
        for asked in ("~", "~/x", "~root/x"):
            with self.subTest(asked=asked):
                self.refused("outside_workspace", self.workspace.resolve, asked)
        self.assertEqual(self.workspace.resolve("./~x"), self.root / "~x")
        self.assertEqual(self.workspace.resolve("a~"), self.root / "a~")

    def test_an_absolute_path_that_was_meant_from_the_root_is_told_so(self) -> None:
        self.write("src/a.py")
        self.assertIn("'src/a.py'", self.refused("outside_workspace", self.workspace.resolve, "/src/a.py"))

    def test_paths_that_cannot_exist_are_refused(self) -> None:
        for asked in ("a\0b", "\ud800", "a/\udc00\ud800/b", "~\0", "/\0"):
            with self.subTest(asked=ascii(asked[:20])):
                self.refused("bad_path", self.workspace.resolve, asked)

    def test_a_path_that_is_too_long_is_refused_by_the_disk(self) -> None:
        for asked in ("x" * 300, "a/" * 3000, "é" * 200):
            with self.subTest(asked=ascii(asked[:20])):
                path = self.workspace.resolve(asked)
                self.refused("unreadable", self.workspace.read_bytes, path)
                self.refused("unreadable", self.workspace.walk, path)
                self.refused("write_failed", self.workspace.commit, [PlannedWrite(path, b"x")])

    def test_error_texts_are_sound_unicode_on_one_line(self) -> None:
        for asked in ("\ud800\n", "../\udcff\n", "x\n/.env", "\0\n\x1b"):
            with self.subTest(asked=ascii(asked)), self.assertRaises(ToolError) as caught:
                self.workspace.resolve(asked)
            self.assertTrue(str(caught.exception).isprintable(), str(caught.exception))

    def test_protected_names_are_refused_in_every_component(self) -> None:
        for asked in (".env", "a/.git/config", ".GIT/x", ".git/../a.py", "x/.ssh/known_hosts", "deep/id_rsa"):
            with self.subTest(asked=asked):
                self.refused("protected_path", self.workspace.resolve, asked)
                self.refused("protected_path", self.workspace.resolve, str(self.root / asked))
        self.assertEqual(self.workspace.resolve(".env.example"), self.root / ".env.example")

    def test_protected_names_are_open_where_the_user_allowed_it(self) -> None:
        self.assertEqual(self.workspace.resolve(".git/config", include_protected=True), self.root / ".git/config")
        self.refused("outside_workspace", self.workspace.resolve, "../.git", include_protected=True)

    def test_a_workspace_below_a_protected_name_is_open(self) -> None:
        root = self.root / ".docker" / "project"
        root.mkdir(parents=True)
        workspace = Workspace(root)
        self.assertEqual(workspace.resolve("a.py"), root / "a.py")
        self.assertEqual(workspace.resolve(str(root / "a.py")), root / "a.py")
        self.refused("protected_path", workspace.resolve, "x/.ENV")

    def test_the_root_under_another_spelling_is_still_the_root(self) -> None:
        self.write("sub/a.py")
        other = self.outside / "WORK"
        real = os.path.samefile

        def samefile(one: object, two: object) -> bool:  # as a file system that ignores case answers
            return str(one) == str(other) or bool(real(one, two))  # type: ignore[arg-type]

        with mock.patch("os.path.samefile", samefile):
            self.assertEqual(self.workspace.resolve(str(other / "sub/a.py")), self.root / "sub/a.py")
            self.refused("protected_path", self.workspace.resolve, str(other / "sub/.Env"))
            self.refused("outside_workspace", self.workspace.resolve, str(other) + "x/a.py")

    def test_shown_paths_have_forward_slashes_and_no_line_break(self) -> None:
        self.assertEqual(self.workspace.relative(self.root / "a" / "b\nc"), "a/b\\nc")
        self.assertEqual(self.workspace.relative(self.root), ".")


@unittest.skipUnless(HAS_LINKS, "no symbolic links here")
class Links(WorkspaceCase):
    def link(self, path: str, target: object) -> Path:
        link = self.root / path
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(str(target))
        return link

    def test_a_link_that_stays_inside_is_followed(self) -> None:
        target = self.write("src/a.py")
        self.link("l.py", "src/a.py")
        self.link("s", target.parent)
        self.assertEqual(self.workspace.resolve("l.py"), target)
        self.assertEqual(self.workspace.resolve("s/a.py"), target)

    def test_a_link_that_leads_outside_is_refused_in_every_component(self) -> None:
        self.link("file", self.outside / "secret.txt")
        self.link("folder", "../work-not")
        self.link("a/b", "../folder")
        self.link("new", self.outside / "not-there-yet")
        self.link("root", "/")
        for asked in ("file", "folder", "folder/secret.txt", "a/b/x", "new", "root/etc/passwd", "folder/../x"):
            for follow in (True, False):
                with self.subTest(asked=asked, follow=follow):
                    self.refused("outside_workspace", self.workspace.resolve, asked, follow_last_link=follow)

    def test_a_link_to_a_protected_name_is_refused_and_so_is_one_of_that_name(self) -> None:
        self.write(".env", "KEY=1")
        self.write("plain.txt")
        self.link("innocent.txt", ".env")
        self.link("git", ".git")
        self.link("x.pem", "plain.txt")
        for asked in ("innocent.txt", "git/config", "x.pem"):
            with self.subTest(asked=asked):
                self.refused("protected_path", self.workspace.resolve, asked)

    def test_a_dangling_link_inside_stands_for_the_file_it_names(self) -> None:
        self.link("l", "sub/new.txt")
        self.assertEqual(self.workspace.resolve("l"), self.root / "sub/new.txt")

    def test_the_last_link_itself_can_be_meant(self) -> None:
        self.write("src/a.py")
        self.link("s", "src")
        self.link("src/l", "a.py")
        self.assertEqual(self.workspace.resolve("s/l", follow_last_link=False), self.root / "src/l")
        self.assertEqual(self.workspace.resolve("s/.", follow_last_link=False), self.root / "src")

    def test_a_link_that_lies_outside_or_below_a_protected_name_cannot_be_meant(self) -> None:
        self.write("a.txt")
        self.link(".git/l", "../a.txt")
        self.link("git", ".git")
        self.link("out", self.outside)
        (self.outside / "back").symlink_to(self.root / "a.txt")
        self.refused("protected_path", self.workspace.resolve, "git/l", follow_last_link=False)
        self.refused("outside_workspace", self.workspace.resolve, "out/back", follow_last_link=False)

    def test_a_loop_of_links_is_an_error_and_no_hang(self) -> None:
        self.link("a", "b")
        self.link("b", "a")
        self.refused("not_a_file", self.workspace.read_bytes, self.workspace.resolve("a"))
        with self.assertRaises(ToolError):
            self.workspace.read_bytes(self.workspace.resolve("a/x"))

    def test_a_root_that_is_a_link_is_the_folder_it_leads_to(self) -> None:
        self.write("a.py", "x")
        alias = self.outside / "alias"
        alias.symlink_to(self.root)
        workspace = Workspace(alias)
        self.assertEqual(workspace.root, self.root)
        self.assertEqual(workspace.resolve(str(alias / "a.py")), self.root / "a.py")


class Reading(WorkspaceCase):
    def test_the_bytes_are_returned_as_they_are(self) -> None:
        content = bytes(range(256)) * 3
        path = self.write("a.bin", content)
        self.assertEqual(self.workspace.read_bytes(path), content)
        self.assertEqual(self.workspace.read_bytes(path, 10), content[:10])
        self.assertEqual(self.workspace.read_bytes(path, 0), b"")

    def test_a_folder_is_no_file(self) -> None:
        self.write("sub/a.py")
        self.refused("is_folder", self.workspace.read_bytes, self.root / "sub")
        self.refused("is_folder", self.workspace.read_bytes, self.root)

    def test_a_miss_names_what_is_near(self) -> None:
        self.write("src/settings.py")
        self.write("src/session.py")
        self.write("lib/util.py")
        self.write(".env")
        for missing, near in (
            ("src/setings.py", "src/settings.py"),
            ("util.py", "lib/util.py"),
            ("scr/session.py", "src/session.py"),
            ("src/settings.py/x", "src/settings.py"),
            ("SRC/SETTINGS.PY", "src/settings.py"),
            ("LIB", "lib"),
        ):
            with self.subTest(missing=missing):
                text = self.refused("not_found", self.workspace.read_bytes, self.root / missing)
                self.assertIn(near, text.split("Near it")[1])
        self.assertNotIn(".env", self.refused("not_found", self.workspace.read_bytes, self.root / ".enw"))
        self.assertLessEqual(
            self.refused("not_found", self.workspace.read_bytes, self.root / "src/se.py").count(","), 2
        )

    @unittest.skipUnless(hasattr(os, "mkfifo"), "no pipes here")
    def test_a_pipe_is_refused_without_waiting_for_a_writer_or_waking_one(self) -> None:
        os.mkfifo(self.root / "pipe")
        self.refused("not_a_file", self.workspace.read_bytes, self.root / "pipe")
        opened = threading.Event()

        def writer() -> None:
            os.close(os.open(self.root / "pipe", os.O_WRONLY))
            opened.set()

        thread = threading.Thread(target=writer)
        thread.start()
        self.refused("not_a_file", self.workspace.read_bytes, self.root / "pipe")
        self.assertFalse(opened.wait(0.05))
        os.close(os.open(self.root / "pipe", os.O_RDONLY))  # lets it go
        thread.join(20)

    @unittest.skipUnless(hasattr(socket, "AF_UNIX"), "no sockets in the file system here")
    def test_sockets_and_devices_are_no_files(self) -> None:
        folder = tempfile.mkdtemp()
        self.addCleanup(os.rmdir, folder)
        self.addCleanup(lambda: os.unlink(folder + "/s"))
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(folder + "/s")
            self.refused("not_a_file", Workspace(Path(folder)).read_bytes, Path(folder, "s").resolve())
        if Path("/dev/null").exists():
            self.refused("not_a_file", Workspace(Path("/dev")).read_bytes, Path("/dev/null"))

    @unittest.skipUnless(HAS_LINKS, "no symbolic links here")
    def test_a_link_put_in_the_place_of_a_resolved_file_is_not_followed(self) -> None:
        path = self.workspace.resolve("a.txt")
        path.symlink_to(self.outside / "secret.txt")
        self.refused("not_a_file", self.workspace.read_bytes, path)

    @unittest.skipIf(os.name == "nt" or IS_ROOT, "root may read everything")
    def test_a_file_without_permission_is_unreadable(self) -> None:
        path = self.write("a.txt")
        path.chmod(0)
        self.assertIn("ermission", self.refused("unreadable", self.workspace.read_bytes, path))


class Walking(WorkspaceCase):
    def paths(self, start: str = ".", include_protected: bool = False, depth: int | None = None) -> list[str]:
        entries = self.workspace.walk(self.root / start, include_protected, depth)
        return [self.workspace.relative(entry.path) + "/" * entry.is_folder for entry in entries]

    def test_files_come_in_the_order_of_their_paths_as_text(self) -> None:
        for name in ("b", "a/z", "a.py", "a-b/c", "a/b/c", "Z", "é", "a0"):
            self.write(name)
        files = [path for path in self.paths() if not path.endswith("/")]
        self.assertEqual(files, sorted(files))
        self.assertEqual(len(files), 8)

    def test_hidden_folders_protected_names_and_ignored_files_are_left_out(self) -> None:
        for name in (
            ".hidden/x",
            ".env",
            "sub/.env",
            "sub/.git/config",
            "k.pem",
            "build/out",
            "sub/a.log",
            "sub/keep.log",
        ):
            self.write(name)
        self.write(".gitignore", "build/\n*.log\n")
        self.write("sub/.gitignore", "!keep.log\n")
        self.write(".dotfile")
        self.assertEqual(self.paths(), [".dotfile", ".gitignore", "sub/", "sub/.gitignore", "sub/keep.log"])
        everything = self.paths(include_protected=True)
        for path in (".hidden/x", ".env", "sub/.git/config", "k.pem", "build/out", "sub/a.log"):
            self.assertIn(path, everything)

    def test_a_start_that_is_hidden_or_ignored_was_asked_for(self) -> None:
        self.write(".gitignore", "build/\n*.log\n")
        self.write("build/a.txt")
        self.write("build/a.log")
        self.write(".github/x.yml")
        self.assertEqual(self.paths("build"), ["build/a.txt"])
        self.assertEqual(self.paths(".github"), [".github/x.yml"])

    def test_depth_limits_the_levels(self) -> None:
        self.write("a/b/c/d")
        self.assertEqual(self.paths(depth=1), ["a/"])
        self.assertEqual(self.paths(depth=2), ["a/", "a/b/"])
        self.assertEqual(self.paths(), ["a/", "a/b/", "a/b/c/", "a/b/c/d"])

    def test_a_file_is_its_own_walk_and_a_miss_is_told(self) -> None:
        self.write("a.py", "abc")
        self.assertEqual(self.paths("a.py"), ["a.py"])
        self.assertEqual(next(self.workspace.walk(self.root / "a.py")).size_bytes, 3)
        self.refused("not_found", self.workspace.walk, self.root / "b.py")

    @unittest.skipUnless(HAS_LINKS, "no symbolic links here")
    def test_links_are_told_and_not_followed_and_those_that_lead_out_are_left_out(self) -> None:
        self.write("sub/a.py")
        self.write(".env")
        targets = {"in": "sub", "loop": ".", "out": "/etc", "gone": "nowhere", "secret": ".env", "self": "self"}
        for name, target in targets.items():
            (self.root / name).symlink_to(target)
        entries = {entry.path.name: entry for entry in self.workspace.walk(self.root)}
        self.assertEqual(sorted(entries), ["a.py", "gone", "in", "self", "sub"])
        self.assertEqual(entries["in"].link_target, self.root / "sub")
        self.assertFalse(entries["in"].is_folder)

    @unittest.skipUnless(hasattr(os, "mkfifo"), "no pipes here")
    def test_pipes_are_left_out_and_a_pipe_as_gitignore_stops_nothing(self) -> None:
        os.mkfifo(self.root / "pipe")
        os.mkfifo(self.root / ".gitignore")
        self.write("a.py")
        self.assertEqual(self.paths(), ["a.py"])

    @unittest.skipUnless(HAS_LINKS, "no symbolic links here")
    def test_a_gitignore_that_is_a_link_is_not_read(self) -> None:
        (self.outside / "rules").write_text("*.py\n", encoding="utf-8")
        (self.root / ".gitignore").symlink_to(self.outside / "rules")
        self.write("a.py")
        self.assertEqual(self.paths(), ["a.py"])

    @unittest.skipUnless(os.name == "posix", "names are bytes on POSIX only")
    def test_names_with_line_ends_and_odd_bytes_are_walked_and_shown_safely(self) -> None:
        self.write("new\nline")
        try:
            (Path(os.fsdecode(os.fsencode(self.root) + b"/bad\xff"))).touch()
        except OSError:
            self.skipTest("this file system takes UTF-8 names only")
        self.assertEqual(self.paths(), ["bad\\udcff", "new\\nline"])
        self.assertEqual(self.workspace.read_bytes(self.workspace.resolve("bad\udcff")), b"")

    @unittest.skipIf(os.name == "nt", "paths are shorter there")
    def test_folders_lie_deeper_than_python_recurses(self) -> None:
        folder = self.root
        for _ in range(160):
            folder = folder / "d"
            folder.mkdir()
        self.addCleanup(sys.setrecursionlimit, sys.getrecursionlimit())
        sys.setrecursionlimit(150)
        self.assertEqual(sum(1 for _ in self.workspace.walk(self.root)), 160)

    @unittest.skipIf(os.name == "nt" or IS_ROOT, "root may read everything")
    def test_a_folder_without_permission_is_empty_and_an_error_as_a_start(self) -> None:
        self.write("closed/a.py")
        (self.root / "closed").chmod(0)
        self.addCleanup((self.root / "closed").chmod, 0o700)
        self.assertEqual(self.paths(), ["closed/"])
        self.refused("unreadable", self.workspace.walk, self.root / "closed")


if __name__ == "__main__":
    unittest.main()
