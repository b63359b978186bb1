"""Select the objects of a list, a watch or a deletion of a collection."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from batkube.api.requests.field_selectors import NAME
from batkube.api.requests.options import ListOptions
from batkube.cluster.sorted_view import SortedView
from batkube.cluster.store import Entry, Key, KubeObject

_NODE_NAME_FIELD = "spec.nodeName"


class Selection:
    """Selects objects by namespace, name, labels and fields."""

    def __init__(
        self,
        namespace: str,
        name: str,
        options: ListOptions,
        in_version: Callable[[KubeObject], KubeObject] | None = None,
    ) -> None:
        """`in_version` converts stored objects to the requested version before fields are compared."""
        self._to_requested_version = in_version
        self._prefix = f"{namespace}/" if namespace else ""
        #: The first key after those of the namespace: `0` follows `/`.
        self._end = f"{namespace}0" if namespace else None
        exact_name = name or options.fields.exact(NAME) or ""
        #: The key to match, or the suffix of matching keys if any namespace matches.
        self._key = Key(self._prefix + exact_name) if exact_name else None
        self._key_suffix = f"/{exact_name}" if exact_name and not namespace else ""
        self._labels = options.labels or None
        self._fields = options.fields or None
        #: Whether at most one object can match.
        self.is_single = self._key is not None and not self._key_suffix
        #: Whether some objects of the namespace may not match.
        self.is_partial = bool(name or options.labels or options.fields)
        #: Whether kube-apiserver finds the matches by an index: it indexes pods by their node.
        self.is_indexed = options.fields.exact(_NODE_NAME_FIELD) is not None

    def matches_key(self, key: Key) -> bool:
        """Return whether namespace and name match."""
        if self._key is not None:
            return key == self._key or (bool(self._key_suffix) and key.endswith(self._key_suffix))
        return key.startswith(self._prefix)

    def matches_object(self, value: KubeObject) -> bool:
        """Return whether labels and fields match."""
        if self._labels is not None and not self._labels.matches(value["metadata"].get("labels")):
            return False
        if self._fields is None:
            return True
        return self._fields.matches(value if self._to_requested_version is None else self._to_requested_version(value))

    def select(
        self, view: SortedView[Key, Entry], start: str = "", limit: int | None = None
    ) -> list[tuple[Key, Entry]]:
        """Return the first `limit` matching entries from `start` on, sorted by key, as kube-apiserver does."""
        if self.is_single and self._key is not None:
            entry = view.get(self._key)
            is_match = entry is not None and self._key >= start and self.matches_object(entry[0])
            return [(self._key, entry)] if entry is not None and is_match else []
        entries = view.between(max(start, self._prefix), self._end)
        if self._key_suffix:
            entries = (item for item in entries if self.matches_key(item[0]))
        if self._labels is not None or self._fields is not None:
            entries = (item for item in entries if self.matches_object(item[1][0]))
        return list(itertools.islice(entries, limit))

    def count_keys(self, view: SortedView[Key, Entry], start: str) -> int:
        """Return the number of objects of the namespace from key `start` on, whether they match or not."""
        return view.count(max(start, self._prefix), self._end)
