import re
import unittest
from pathlib import Path

from gallery.limits import Refused, check

MEGABYTE = 1024 * 1024


def nginx_limit(location):
    """Return the megabytes that nginx lets through to a location: its own limit, or else the server's."""
    text = re.sub(r"#.*", "", Path("deploy/nginx.conf").read_text(encoding="utf-8"))
    blocks = dict(re.findall(r"location\s+(\S+)\s*\{([^}]*)\}", text))
    around = re.sub(r"location\s+\S+\s*\{[^}]*\}", "", text)
    for part in (blocks[location], around):
        found = re.findall(r"client_max_body_size\s+(\d+)([kKmMgG]?)\s*;", part)
        if found:
            number, unit = found[-1]
            return int(number) * {"": 1, "k": 1024, "m": MEGABYTE, "g": 1024 * MEGABYTE}[unit.lower()] / MEGABYTE
    return 1


def refusal(kind, name, size):
    """Return why a file is refused, "" if it is not."""
    try:
        check(kind, name, size)
    except Refused as error:
        return str(error)
    return ""


class Limit(unittest.TestCase):
    def test_a_photo_of_25_megabytes_is_taken(self):
        self.assertEqual(refusal("photos", "a.jpg", 25 * MEGABYTE), "")

    def test_a_byte_more_is_refused_and_the_text_says_25(self):
        self.assertIn("25 MB", refusal("photos", "a.jpg", 25 * MEGABYTE + 1))

    def test_nginx_lets_photos_through(self):
        self.assertGreaterEqual(nginx_limit("/photos"), 25)
        self.assertLessEqual(nginx_limit("/photos"), 100)

    def test_avatars_stay_as_they_are(self):
        self.assertEqual(refusal("avatars", "a.png", 10 * MEGABYTE), "")
        self.assertIn("10 MB", refusal("avatars", "a.png", 10 * MEGABYTE + 1))
        self.assertEqual(nginx_limit("/avatars"), 10)

    def test_types_stay_as_they_are(self):
        told = [refusal("photos", name, 10) for name in ("a.jpg", "a.png", "a.gif")]
        self.assertEqual([bool(text) for text in told], [False, False, True])
