"""The house keeps its floors: what each file may import, and that every type hint means something."""

from __future__ import annotations

import ast
import functools
import graphlib
import importlib
import inspect
import sys
import typing
import unittest
from collections.abc import Iterator
from pathlib import Path

import mini_agent

ROOT = Path(mini_agent.__file__).resolve().parent
EVERYTHING = {"conversation", "model", "tools", "session", "context", "agent", "terminal", "settings", "top", "demo"}
MAY_IMPORT = {  # besides itself
    "conversation": set(),
    "model": {"conversation"},
    "tools": {"conversation"},
    "session": {"conversation"},
    "context": {"conversation", "model"},
    "agent": {"conversation", "model", "tools", "session", "context"},
    "terminal": {"conversation"},
    "settings": set(),
    "demo": EVERYTHING,
    "top": EVERYTHING,
}
SETTINGS = {"settings.py", "variables.py"}  # beside the folders, and as low as the lowest of them


def sources() -> list[Path]:
    """Return the files of the package, without the sample project of the demo, which is data."""
    found = sorted(ROOT.rglob("*.py"))
    return [path for path in found if "sample" not in path.relative_to(ROOT).parts]


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def floor_of(parts: tuple[str, ...]) -> str:
    """Return the floor of a module, named by the parts of its path or of its dotted name below the package."""
    if not parts or parts == ("__init__.py",):
        return "package"
    if parts[0] in SETTINGS or f"{parts[0]}.py" in SETTINGS:
        return "settings"
    return parts[0] if parts[0] in MAY_IMPORT else "top"


def imports_of(tree: ast.AST) -> Iterator[tuple[ast.stmt, str]]:
    """Yield each import statement with each module that it names; from a package, with each name taken out of it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node, alias.name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield node, f"{'.' * node.level}{node.module or ''}:{alias.name}"


class Imports(unittest.TestCase):
    def test_only_the_standard_library_and_the_package_itself(self) -> None:
        standard_library = getattr(sys, "stdlib_module_names", None)
        if standard_library is None:
            self.skipTest("Python 3.9 does not know the names of its own modules")
        for path in sources():
            for node, name in imports_of(tree_of(path)):
                first = name.split(":")[0].split(".")[0]
                with self.subTest(file=str(path.relative_to(ROOT)), line=node.lineno):
                    self.assertIn(first, {*standard_library, "mini_agent"}, "relative or foreign import")

    def test_only_down_the_floors(self) -> None:
        for path in sources():
            parts = path.relative_to(ROOT).parts
            floor = floor_of(parts)
            for node, name in imports_of(tree_of(path)):
                module, _, taken = name.partition(":")
                if module.split(".")[0] != "mini_agent":
                    continue
                below = tuple(module.split(".")[1:])
                if not below and ((ROOT / taken).is_dir() or (ROOT / f"{taken}.py").is_file()):
                    below = (taken,)
                target = floor_of(below)
                with self.subTest(file="/".join(parts), line=node.lineno, imports=name):
                    self.assertIn(target, {*MAY_IMPORT.get(floor, set()), floor, "package"})

    def test_no_modules_import_one_another_in_a_circle(self) -> None:
        graph: dict[str, set[str]] = {}
        for path in sources():
            dotted = ".".join(("mini_agent", *path.relative_to(ROOT).with_suffix("").parts))
            names = [name for _, name in imports_of(tree_of(path))]
            graph[dotted] = {name.split(":")[0] for name in names} | {name.replace(":", ".") for name in names}
        own = {name: {target for target in graph[name] if target in graph} for name in graph}
        order = list(graphlib.TopologicalSorter(own).static_order())  # raises CycleError, which names the circle
        self.assertEqual(len(order), len(graph))

    def test_none_inside_a_function_unless_the_line_says_why(self) -> None:
        for path in sources():
            source = path.read_text(encoding="utf-8").splitlines()
            for function in ast.walk(tree_of(path)):
                if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                    continue
                for node, name in imports_of(function):
                    lines = source[: node.lineno]
                    while "#" not in lines[-1] and "import " in lines[-2]:  # one reason holds for those above it too
                        lines.pop()
                    with self.subTest(file=str(path.relative_to(ROOT)), line=node.lineno, imports=name):
                        self.assertIn("#", lines[-1], "an import inside a function must say why")

    def test_a_folder_says_what_it_is_and_passes_nothing_on(self) -> None:
        for path in sources():
            if path.name == "__init__.py" and path.parent != ROOT:
                tree = tree_of(path)
                with self.subTest(file=str(path.relative_to(ROOT))):
                    self.assertTrue(ast.get_docstring(tree))
                    self.assertEqual(len(tree.body), 1)


@unittest.skipIf(sys.version_info < (3, 10), "`X | None` in a hint is a value from 3.10 on")
class TypeHints(unittest.TestCase):
    def test_every_public_function_and_class_has_hints_that_resolve(self) -> None:
        checked = 0
        for path in sources():
            if path.name == "__main__.py":
                continue
            dotted = ".".join(("mini_agent", *path.relative_to(ROOT).with_suffix("").parts))
            module = importlib.import_module(dotted.removesuffix(".__init__"))
            for name, thing in public_things(module):
                with self.subTest(thing=f"{module.__name__}.{name}"):
                    typing.get_type_hints(thing)
                    checked += 1
        self.assertGreater(checked, 100)


def public_things(module: object) -> Iterator[tuple[str, object]]:
    """Yield the public functions and classes that a module defines, and the methods of these classes."""
    for name, thing in vars(module).items():
        if name.startswith("_") or getattr(thing, "__module__", "") != module.__name__:  # type: ignore[attr-defined]
            continue
        if inspect.isfunction(thing):
            yield name, thing
        elif inspect.isclass(thing):
            yield name, thing
            for inner, method in vars(thing).items():
                method = getattr(method, "fget", None) or getattr(method, "__func__", method)
                if inspect.isfunction(method) and (not inner.startswith("_") or inner == "__init__"):
                    yield f"{name}.{inner}", method
