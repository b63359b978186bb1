"""A store with a namespace, and an admission chain."""

from __future__ import annotations

import pytest
from tests.api.admission.admission_cluster import Cluster


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()
