"""Rewrite importlinter.toml so that every child of every package stands in a layer, as the imports have it.

    python scripts/place_modules.py

Run it after adding, moving or removing a module, and review the difference: a module that moved up or down is a
dependency that appeared or went away. The layers between packages, the first contract, are written by hand. A package
whose children import each other in a circle is an error.
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
    """Return the layers of a package's children, the highest first; the children of one layer are independent."""
    home = {
        module: child for child in graph.find_children(package) for module in {child} | graph.find_descendants(child)
    }
    imported: dict[str, set[str]] = {child: set() for child in graph.find_children(package)}
    for module, child in home.items():
        targets = {home[target] for target in graph.find_modules_directly_imported_by(module) if target in home}
        imported[child] |= targets - {child}
    levels: dict[str, int] = {}
    for child in TopologicalSorter(imported).static_order():
        levels[child] = 1 + max((levels[target] for target in imported[child]), default=-1)
    return [
        " | ".join(sorted(child.rpartition(".")[2] for child in levels if levels[child] == level))
        for level in sorted(set(levels.values()), reverse=True)
    ]


def placed(contracts: Iterable[Mapping[str, object]]) -> Iterator[Mapping[str, object]]:
    """Yield the contracts that are kept, then one for every package with several children."""
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


def written(value: object) -> str:
    """Return a value as TOML, a list of layers with a line for each."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        items = [written(item) for item in value]
        return f"[{items[0]}]" if len(items) == 1 else "[\n" + "".join(f"    {item},\n" for item in items) + "]"
    return f'"{value}"'


def main() -> None:
    """Rewrite the file, keeping its first lines."""
    text = CONTRACTS.read_text(encoding="utf-8")
    head, mark, _ = text.partition("[[tool.importlinter.contracts]]")
    try:
        contracts = list(placed(tomllib.loads(text)["tool"]["importlinter"]["contracts"]))
    except CycleError as error:
        raise SystemExit(f"modules import each other in a circle: {' -> '.join(error.args[1])}") from None
    blocks = [
        "\n".join([mark, *(f"{key} = {written(value)}" for key, value in contract.items())]) for contract in contracts
    ]
    CONTRACTS.write_text(head + "\n\n".join(blocks) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
