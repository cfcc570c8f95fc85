"""A long list, page by page. Pages are counted from 1."""


def page_count(items, size):
    return max(1, -(-len(items) // size))


def page(items, number, size=20):
    """Return the items of a page; raise ValueError where there is no such page."""
    if not 1 <= number <= page_count(items, size):
        raise ValueError(f"there is no page {number}")
    return items[(number - 1) * size : number * size]
