"""Paragraphs as HTML."""

from html import escape


def paragraphs(text):
    return [escape(part.strip()) for part in text.split("\n\n") if part.strip()]


def page(text):
    return "\n".join(f"<p>{part}</p>" for part in paragraphs(text))


def legacy_page(text):
    rows = "\n".join(f'<tr><td><font face="Arial">{part}</font></td></tr>' for part in paragraphs(text))
    return f"<table>\n{rows}\n</table>"
