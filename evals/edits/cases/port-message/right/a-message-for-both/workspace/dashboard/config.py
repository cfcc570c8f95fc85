"""Settings from the environment."""

DEFAULT_PORT = 8080
PORTS = range(1, 65536)


class BadSetting(Exception):
    """A setting that cannot be used; the text is shown at start."""


def port(environment):
    """Return the port to listen on."""
    text = environment.get("DASHBOARD_PORT", "")
    if not text:
        return DEFAULT_PORT
    problem = BadSetting(f"DASHBOARD_PORT is {text}; allowed is {PORTS[0]} to {PORTS[-1]}")
    try:
        number = int(text)
    except ValueError:
        raise problem from None
    if number not in PORTS:
        raise problem
    return number
