"""One line of a thermometer."""


class Reading:
    """A measured value."""

    def __init__(self, line):
        self.time, self.thermometer, value = line.strip().split(",")
        self.raw = int(value)  # hundredths of a degree

    @property
    def celsius(self):
        return self.raw / 10
