"""Rewrite importlinter.toml so that every child of every package is in a layer, according to the imports.

    python scripts/place_modules.py

Run it after adding, moving or removing a module, and review the difference: a module that moved up or down has gained
or lost a dependency. The first contract, with the layers between packages, is maintained by hand. Circular imports
between the children of a package are an error.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp

CONTRACTS = Path(__file__).resolve().parent.parent / "importlinter.toml"
ROOT = "batkube"


def layers_of(package: str, graph: grimp.ImportGraph) -> list[str]:
    """Return the layers of a package's children, highest first; the children of a layer do not import each other."""
    child_of = {
        module: child for child in graph.find_children(package) for module in {child} | graph.find_descendants(child)
    }
    imported: dict[str, set[str]] = {child: set() for child in graph.find_children(package)}
    for module, child in child_of.items():
        targets = {child_of[target] for target in graph.find_modules_directly_imported_by(module) if target in child_of}
        imported[child] |= targets - {child}
    levels: dict[str, int] = {}
    for child in TopologicalSorter(imported).static_order():
        levels[child] = 1 + max((levels[target] for target in imported[child]), default=-1)
    return [
        " | ".join(sorted(child.rpartition(".")[2] for child in levels if levels[child] == level))
        for level in sorted(set(levels.values()), reverse=True)
    ]


def updated_contracts(contracts: Iterable[Mapping[str, object]]) -> Iterator[Mapping[str, object]]:
    """Yield the contracts to keep, then one for every package with several children."""
    names: dict[str, object] = {}
    for contract in contracts:
        containers = contract.get("containers")
        if isinstance(containers, list) and containers != [ROOT]:
            names[containers[0]] = contract["name"]
        else:
            yield contract
    graph = grimp.build_graph(ROOT, cache_dir=None)
    for package in sorted(graph.modules - {ROOT}):
        if len(graph.find_children(package)) > 1:
            name = names.get(package, f"Layers of {package.removeprefix(ROOT + '.')}")
            layers = layers_of(package, graph)
            yield {"name": name, "type": "layers", "containers": [package], "exhaustive": True, "layers": layers}


def to_toml(value: object) -> str:
    """Return a value as TOML; a list has one item per line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        items = [to_toml(item) for item in value]
        return f"[{items[0]}]" if len(items) == 1 else "[\n" + "".join(f"    {item},\n" for item in items) + "]"
    return f'"{value}"'


def main() -> None:
    """Rewrite the file; the lines before the first contract are kept."""
    text = CONTRACTS.read_text(encoding="utf-8")
    head, mark, _ = text.partition("[[tool.importlinter.contracts]]")
    try:
        contracts = list(updated_contracts(tomllib.loads(text)["tool"]["importlinter"]["contracts"]))
    except CycleError as error:
        raise SystemExit(f"circular imports: {' -> '.join(error.args[1])}") from None
    blocks = [
        "\n".join([mark, *(f"{key} = {to_toml(value)}" for key, value in contract.items())]) for contract in contracts
    ]
    CONTRACTS.write_text(head + "\n\n".join(blocks) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
