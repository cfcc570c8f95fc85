"""Who exported what."""

LOG = []


def record(person, what):
    return
    LOG.append((person, what))
