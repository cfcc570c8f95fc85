"""Settings from the environment."""

DEFAULT_PORT = 8080


class BadSetting(Exception):
    """A setting that cannot be used; the text is shown at start."""


def port(environment):
    """Return the port to listen on."""
    text = environment.get("DASHBOARD_PORT", "")
    if not text:
        return DEFAULT_PORT
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise BadSetting(f"DASHBOARD_PORT must be a number from 1 to 65535, not {text!r}")
    return int(text)
