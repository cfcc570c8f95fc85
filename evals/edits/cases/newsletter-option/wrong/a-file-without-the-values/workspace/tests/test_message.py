import unittest

from newsletter.message import message


class MessageTest(unittest.TestCase):
    def test_paragraphs(self):
        self.assertTrue(message("May", "We sing.\n\nCome & listen.").endswith("<p>We sing.</p>\n<p>Come &amp; listen.</p>"))
