"""A newsletter as a mail."""

from newsletter.html import page


def message(subject, text):
    """Return the mail: its head, a blank line and the page."""
    head = f"From: choir@example.org\nSubject: {subject}\nContent-Type: text/html; charset=utf-8"
    return f"{head}\n\n{page(text)}"
