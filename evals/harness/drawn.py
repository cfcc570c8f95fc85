"""Seeded facts that nobody can guess, and seeded noise that never holds one.

A fact's number has at least four digits, or three before its point, and the noise writes none above 99; a fact's name
is made of syllables, and the noise has a fixed vocabulary. So a fact stands where a case tells it, and nowhere else.
"""

from __future__ import annotations

import random

_WORDS = {
    name: words.split("|")
    for name, words in {
        "syllable": "bra|cro|dun|fel|gar|hol|jor|kel|lun|mor|nev|pol|quor|rud|sil|tav|urb|vex|wim|yor|zan",
        "adjective": "early|late|quiet|heavy|narrow|steady|spare|damp|wooden|northern|usual|second",
        "noun": "delivery|ladder|barrel|driver|ledger|crate|signal|wagon|pump|letter|fence|boiler",
        "verb": "reached|left|passed|blocked|followed|missed|crossed|served|needed|kept|held|met",
        "place": "harbour|mill|station|orchard|market|bridge|quarry|chapel|garden|tower|meadow|ferry",
        "end": "without delay|before noon|as planned|in good order|after the rain|for the third day",
    }.items()
}
MOST_DIFFERENT_LINES = 1000  # of one draw and pattern: more of them would take long and be no more of a noise
SENTENCE = "The {adjective} {noun} {verb} the {place} {end}, and the {noun2} at the {place2} {verb2} {number} of them."


class Draw:
    """Draw facts, each unlike all others of this draw, and lines of noise."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)
        self._drawn: set[str] = set()
        self._made: dict[str, list[str]] = {}  # lines of noise, by their pattern

    def digits(self) -> str:
        """Return a number of four digits that looks like no year and is not round."""
        while True:
            number = str(self.random.randrange(3001, 9800))
            if number not in self._drawn and not number.endswith("0"):
                self._drawn.add(number)
                return number

    def code(self) -> str:
        """Return a code such as `K-4821`."""
        return f"{self.random.choice('ABCDFHJKMPRTVX')}-{self.digits()}"

    def price(self) -> str:
        """Return a price such as `384.57`."""
        digits = self.digits() + self.random.choice("123456789")
        return f"{digits[:3]}.{digits[3:]}"

    def name(self) -> str:
        """Return a name that no language has, such as `Molunvex`."""
        while True:
            name = "".join(self.random.sample(_WORDS["syllable"], 3)).capitalize()
            if name not in self._drawn:
                self._drawn.add(name)
                return name

    def time(self) -> str:
        """Return a time such as `14:37:22`."""
        while True:
            time = ":".join(f"{self.random.randrange(10, limit)}" for limit in (24, 60, 60))
            if time not in self._drawn:
                self._drawn.add(time)
                return time

    def noise(self, tokens: int, pattern: str = SENTENCE) -> list[str]:
        """Return lines of about so many tokens together (at four bytes each), no less.

        pattern: of a line, with the names of `_WORDS`, each also with a 2 behind it, and number, cents and time.
        """
        lines, left, choice = [], tokens * 4, self.random.choice
        made = self._made.setdefault(pattern, [])
        while left > 0:
            if len(made) < MOST_DIFFERENT_LINES:
                made.append(self._line(pattern))
                line = made[-1]
            else:
                line = choice(made)
            lines.append(line)
            left -= len(line) + 1
        return lines

    def _line(self, pattern: str) -> str:
        choice, below = self.random.choice, self.random.randrange
        words = {name + twice: choice(words) for name, words in _WORDS.items() for twice in ("", "2")}
        time = f"{below(10, 24)}:{below(10, 60)}"
        return pattern.format(**words, number=below(10, 100), cents=below(10, 100), time=time)
