"""Paragraphs as HTML."""

from html import escape


def paragraphs(text):
    return [escape(part.strip()) for part in text.split("\n\n") if part.strip()]


def page(text):
    return "\n".join(f"<p>{part}</p>" for part in paragraphs(text))
