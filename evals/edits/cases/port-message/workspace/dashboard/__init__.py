"""Water levels on a screen."""
