import unittest

from newsletter.message import message


class MessageTest(unittest.TestCase):
    def test_paragraphs(self):
        self.assertTrue(message("May", "We sing.\n\nCome & listen.").endswith("<p>We sing.</p>\n<p>Come &amp; listen.</p>"))

    def test_there_is_one_kind_of_page(self):
        with self.assertRaises(TypeError):
            message("May", "We sing.", html=True)
