"""The citation of Batkube."""

from __future__ import annotations

from tests.conftest import REPOSITORY

from batkube.outputs.report.citation import bibtex, citation, reference
from batkube.version import __version__


def test_the_package_contains_the_citation_of_this_version() -> None:
    citation_fields = citation()

    assert citation_fields["version"] == __version__
    # Required fields (citation-file-format 1.2.0).
    assert {"cff-version", "message", "title", "authors"} <= set(citation_fields)
    assert '"CITATION.cff" = "batkube/CITATION.cff"' in (REPOSITORY / "pyproject.toml").read_text()
    assert citation_fields["title"] in reference()
    assert citation_fields["title"] in bibtex()
