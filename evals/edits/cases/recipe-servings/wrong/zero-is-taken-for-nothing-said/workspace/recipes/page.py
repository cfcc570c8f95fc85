"""A recipe as text."""


def page(recipe, servings=None):
    servings = servings or recipe["serves"]
    rows = [f"{recipe['title']} (serves {servings})", ""]
    for ingredient in recipe["ingredients"]:
        rows.append("  " + ingredient_line(ingredient, servings / recipe["serves"]))
    rows.append("")
    rows += [f"{number}. {step}" for number, step in enumerate(recipe["steps"], 1)]
    return "\n".join(rows)


def ingredient_line(ingredient, factor=1):
    amount = ingredient["amount"]
    if amount is None:  # salt, pepper: as one likes
        return ingredient["name"]
    number = f"{amount * factor:.2f}".rstrip("0").rstrip(".")
    return f"{number} {ingredient['unit']} {ingredient['name']}".replace("  ", " ")
