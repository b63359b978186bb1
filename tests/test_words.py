"""Each word of the glossary is defined once in the code, and class names are unique."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).parent.parent
GLOSSARY = (REPOSITORY / "docs" / "glossary.md").read_text(encoding="utf-8")


def modules() -> Iterator[ast.Module]:
    """Yield every module of the source."""
    for path in sorted((REPOSITORY / "src").rglob("*.py")):
        yield ast.parse(path.read_text(encoding="utf-8"))


def named_types(module: ast.Module) -> Iterator[str]:
    """Yield the names of the classes, new types and type aliases that a module defines."""
    for part in module.body:
        if isinstance(part, ast.ClassDef):
            yield part.name
        elif isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name):
            name = part.targets[0].id
            if re.fullmatch("[A-Z][a-z]\\w+", name):
                yield name


def glossary() -> set[str]:
    """Return the words of the glossary as class names: FidelityNote for `Fidelity note`."""
    words = re.findall(r"\*([\w ,]+)\*", GLOSSARY.split("## Words")[1])
    singles = {single for word in words for single in word.split(", ")}
    return {"".join(part.capitalize() for part in single.split()) for single in singles}


DEFINED = Counter(name for module in modules() for name in named_types(module))
CLASSES = Counter(part.name for module in modules() for part in ast.walk(module) if isinstance(part, ast.ClassDef))


def test_a_word_of_the_glossary_is_defined_once() -> None:
    assert {"Scenario", "JobExecution", "World", "FidelityNote", "Duration"} <= glossary() & set(DEFINED)
    assert {word for word in glossary() if DEFINED[word] > 1} == set()


def test_no_two_classes_share_a_name() -> None:
    assert {name: count for name, count in CLASSES.items() if count > 1} == {}


#: Participles, which say what happened to a thing and not what it is.
PARTICIPLES = {"asked", "found", "given", "heard", "meant", "said", "shown", "told"}


def named_things(module: ast.Module) -> Iterator[str]:
    """Yield the parameters, attributes and fields of a module, without leading underscores."""
    for part in ast.walk(module):
        if isinstance(part, ast.arg):
            yield part.arg.strip("_")
        elif isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store):
            yield part.attr.strip("_")
        elif isinstance(part, ast.ClassDef):
            yield from (
                field.target.id
                for field in part.body
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
            )


def test_no_parameter_or_attribute_is_named_by_a_participle() -> None:
    assert {name for module in modules() for name in named_things(module)} & PARTICIPLES == set()
