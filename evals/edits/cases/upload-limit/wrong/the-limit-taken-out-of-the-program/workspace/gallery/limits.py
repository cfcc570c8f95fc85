"""What may be uploaded."""

import configparser
from pathlib import Path

MEGABYTE = 1024 * 1024


class Refused(Exception):
    """An upload that is not taken; the text is shown to the member."""


def settings():
    parser = configparser.ConfigParser()
    parser.read(Path(__file__).with_name("settings.ini"), encoding="utf-8")
    return parser


def check(kind, name, size):
    """Raise Refused unless a file of so many bytes may be uploaded as a kind, "photos" or "avatars"."""
    section = settings()[kind]
    if name.rsplit(".", 1)[-1].lower() not in section["types"].split():
        raise Refused(f"only {section['types']}, please")
    if kind == "avatars" and size > section.getint("max_megabytes") * MEGABYTE:
        raise Refused(f"at most {section['max_megabytes']} MB, please")
