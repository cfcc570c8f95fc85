from __future__ import annotations

import unittest
from unittest import mock

from mini_agent.tools.path_policy import is_protected_name, problem_of_name


class ProtectedNames(unittest.TestCase):
    def test_names_of_secrets_and_machinery_are_protected(self) -> None:
        names = """.env .env.local .env.production .envrc .git .mini_agent .venv __pycache__ .ssh .gnupg .aws .netrc
            .npmrc .pypirc .git-credentials .pgpass .docker .kube terraform.tfstate id_rsa id_rsa.pub id_dsa id_ecdsa_sk
            id_ed25519 server.pem tls.key cert.p12 cert.pfx passwords.kdbx .env.example.local"""
        for name in names.split():
            with self.subTest(name=name):
                self.assertTrue(is_protected_name(name))

    def test_names_that_only_look_alike_are_open(self) -> None:
        names = """.env.example .env.sample .env.template env environment.py .gitignore .github .gitattributes git
            keys.py key keyboard.key.txt monkey pem.txt tfstate x_id_rsa .dockerignore Dockerfile .environment .venvs"""
        for name in names.split():
            with self.subTest(name=name):
                self.assertFalse(is_protected_name(name))

    def test_case_does_not_open_a_protected_name(self) -> None:
        for name in (".ENV", ".Git", "ID_RSA", "Server.PEM", ".eNv.Local", "__PyCache__"):
            with self.subTest(name=name):
                self.assertTrue(is_protected_name(name))
        self.assertFalse(is_protected_name(".ENV.Example"))

    def test_a_spelling_that_some_file_system_takes_for_the_same_name_is_protected(self) -> None:
        spellings = {
            ".g\u200cit": "HFS+ ignores a zero-width non-joiner",
            ".\ufeffgit": "and a byte order mark",
            ".gi\u202et": "and a direction mark",
            "server.\u212aey": "the Kelvin sign is a k",
            ".\u017f\u017fh": "the long s is an s",
        }
        for name, reason in spellings.items():
            with self.subTest(name=ascii(name), reason=reason):
                self.assertTrue(is_protected_name(name))


class Names(unittest.TestCase):
    def test_a_name_that_no_file_system_takes_has_a_problem_everywhere(self) -> None:
        for name in ("a\0b", "\ud800"):
            with self.subTest(name=ascii(name[:10])):
                self.assertNotEqual(problem_of_name(name, on_windows=False), "")

    def test_an_odd_but_possible_name_has_none(self) -> None:
        for name in ("x" * 255, "é" * 127, "a\nb", "bad\udcff", "CON", "a:b", "dot.", "space ", " ", "*?"):
            with self.subTest(name=ascii(name[:10])):
                self.assertEqual(problem_of_name(name, on_windows=False), "")

    def test_a_name_that_the_encoding_of_the_system_lacks_is_refused(self) -> None:
        with mock.patch("os.fsencode", lambda name: name.encode("ascii", "surrogateescape")):  # as with LC_ALL=C
            self.assertIn("lacks a character", problem_of_name("h\u00e9.txt", on_windows=False))
            self.assertEqual(problem_of_name("h.txt", on_windows=False), "")

    def test_windows_devices_streams_and_trailing_dots_have_a_problem_on_windows(self) -> None:
        names = (
            *("CON", "con", "nul.txt", "COM1", "lpt9.log", "COM¹", "aux .c", "CONIN$", "prn."),
            *("a.txt.", "a.txt ", ".git.", ".env ", "a.txt:stream", ".env::$DATA"),
        )
        for name in names:
            with self.subTest(name=name):
                self.assertNotEqual(problem_of_name(name, on_windows=True), "")
        for name in ("console", "com10", "null", "a.b", "..", ".", ".env.example", "com"):
            with self.subTest(name=name):
                self.assertEqual(problem_of_name(name, on_windows=True), "")


if __name__ == "__main__":
    unittest.main()
