"""Who exported what."""

LOG = []


def record(person, what):
    LOG.append((person, what))
