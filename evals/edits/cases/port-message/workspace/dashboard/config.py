"""Settings from the environment."""

DEFAULT_PORT = 8080


class BadSetting(Exception):
    """A setting that cannot be used; the text is shown at start."""


def port(environment):
    """Return the port to listen on."""
    text = environment.get("DASHBOARD_PORT", "")
    if not text:
        return DEFAULT_PORT
    try:
        return int(text)
    except ValueError:
        raise BadSetting("bad value") from None
