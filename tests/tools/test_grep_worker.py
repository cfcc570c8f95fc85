import random
import re
import unittest
import warnings

from mini_agent.tools.grep_worker import required_texts

PARTS = [
    *("a", "b", "ab", "1", "@", "-", "]", "{", "}", "{a}", " "),
    *("[ab]", "[^a]", "[]a]", "[^]b]", r"[\]a]", "[a|b]", "[(]", "[)]"),
    *("(a|b)", "(?:ab)", "(?=a)", "(?!b)", "(?<=a)", "(?P<name>a)", "(a(b)|1)", r"(\))", "(?i:a)", "(?#a)", "()"),
    *(
        r"\.",
        r"\w",
        r"\d",
        r"\b",
        r"\\",
        r"\|",
        r"\(",
        r"\x61",
        r"\0141",
        r"\141",
        r"\u0061",
        r"\U00000061",
        r"\N{DIGIT ONE}",
    ),
    *("*", "+", "?", "*?", "{2}", "{0}", "{0,1}", "{,2}", "{1,}", "|", "^", "$", "."),
]
FLAGS = ["", "", "", "", "(?i)", "(?x)", "(?s)", "(?ms)"]


class RequiredTextsTest(unittest.TestCase):
    def test_the_longest_text_that_stands_for_itself_is_required(self):
        for pattern, expected in {
            "needle": ["needle"],
            r"[\w.+-]+@[\w-]+\.\w+": ["@"],
            r"def \w+\(self": ["(self"],
            "colou?r": ["colo"],
            "abc+d": ["abc"],
            "ab{2}cd": ["cd"],
            r"\bclass (\w+)\(Base\):": ["(Base):"],
            "TODO|FIXME": ["TODO", "FIXME"],
            r"^\s*import (os|sys)$": ["import "],
        }.items():
            with self.subTest(pattern):
                self.assertEqual(required_texts(pattern), expected)

    def test_nothing_is_required_where_that_is_not_easily_told(self):
        for pattern in ("", "a*", "(needle)", "(?i)needle", "(?x) needle", "a|", r"\w+|needle", r"\x41", "(?#x)needle"):
            with self.subTest(pattern):
                self.assertEqual(required_texts(pattern), [])

    def test_every_line_that_matches_holds_one_of_the_required_texts(self):
        matches = 0
        for seed in range(1500):
            chance = random.Random(seed)
            pattern = chance.choice(FLAGS) + "".join(chance.choices(PARTS, k=chance.randint(1, 5)))
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    compiled = re.compile(pattern)
            except re.error:
                continue
            required = required_texts(pattern)
            for _ in range(10 if required else 0):
                line = "".join(chance.choices("aabb1@-]{}\\.|() \f", k=chance.randint(0, 8)))
                if compiled.search(line):
                    matches += 1
                    self.assertTrue(any(text in line for text in required), (seed, pattern, line, required))
        self.assertGreater(matches, 100)


if __name__ == "__main__":
    unittest.main()
