"""Strategic merge patch: a merge patch that can merge lists.

The schema of the kind defines a patch strategy and a merge key for lists and structs. A list with the strategy `merge`
is merged element by element (by its merge key, or as a set of scalars); every other list is replaced. Directives in the
patch refine this: `$patch: delete|replace`, `$retainKeys`, `$deleteFromPrimitiveList/field` and
`$setElementOrder/field`.

The patched object is a new one that shares unchanged parts with the old one; neither it nor the patch is modified.

Kubernetes: apimachinery/pkg/util/strategicpatch, also for the error messages.
"""

from __future__ import annotations

from collections.abc import Hashable

from batkube.api.patches.element_order import Identity, json_identity, merge_in_order
from batkube.api.patches.json_patches import Json, PatchError, not_an_object_message
from batkube.cluster.schemas import Field, Schema, Shape
from batkube.text.go_format import go_quote, go_value

_PATCH = "$patch"
_RETAIN_KEYS = "$retainKeys"
_DELETE_FROM_LIST = "$deleteFromPrimitiveList"
_SET_ORDER = "$setElementOrder"

_BAD_RETAIN_KEYS = "invalid patch format of retainKeys"
_BAD_DELETION_LIST = "invalid patch format of primitive list"
_BAD_ORDER = "invalid patch format of setElementOrder list"

Object = dict[str, Json]


def apply_strategic_patch(value: Object, patch: Json, schema: Schema) -> Object:
    """Merge `patch` into `value`, an object of the kind with this `schema`; raises PatchError."""
    if patch is None:
        return value
    if not isinstance(patch, dict):
        raise PatchError(400, not_an_object_message(patch))
    return _merge_struct(value, patch, schema)


def _merge_struct(original: Object, patch: Object, schema: Schema) -> Object:
    if _PATCH in patch:
        return _apply_directive(patch)
    merged = _apply_retain_keys(original, patch)
    done = _merge_ordered_lists(merged, patch, schema)
    for key, new in patch.items():
        if key in done or key == _RETAIN_KEYS:
            continue
        deletes = key.startswith(_DELETE_FROM_LIST)
        name = _directive_field(key, _DELETE_FROM_LIST, _BAD_DELETION_LIST) if deletes else key
        if new is None:
            merged.pop(name, None)
        elif name in merged and type(merged[name]) is type(new):
            _merge_field(merged, name, new, schema, deletes)
        elif not deletes:
            _set_from_patch(merged, name, new)
    return merged


def _merge_field(merged: Object, name: str, new: Json, schema: Schema, deletes: bool) -> None:
    """Merge into an existing field with a value of the same JSON type."""
    old = merged[name]
    if isinstance(new, dict):
        field = _field(schema, name)
        merged[name] = new if "replace" in field.patch_strategy else _merge_struct(old, new, field.schema)
    elif isinstance(new, list):
        field = _list_field(schema, name)
        merges = deletes or "merge" in field.patch_strategy
        merged[name] = _merge_list(old, new, field, deletes) if merges else new
    else:
        merged[name] = new


def _apply_directive(patch: Object) -> Object:
    """Apply `$patch` of a struct: replace the struct by the patch, or empty it."""
    directive = patch[_PATCH]
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _PATCH}
    if directive == "delete":
        return {}
    raise PatchError(500, f"unknown patch type: {go_value(directive)} in map: {go_value(patch)}")


def _apply_retain_keys(original: Object, patch: Object) -> Object:
    """Return a copy of `original` with the fields in `$retainKeys` only, if the patch has that directive."""
    if _RETAIN_KEYS not in patch:
        return dict(original)
    retained = patch[_RETAIN_KEYS]
    if not isinstance(retained, list):
        raise PatchError(400, _BAD_RETAIN_KEYS)
    names = {name for name in retained if isinstance(name, str)}
    for key, value in patch.items():
        is_directive = key == _RETAIN_KEYS or key.startswith((_DELETE_FROM_LIST, _SET_ORDER))
        if value is not None and not is_directive and key not in names:
            raise PatchError(400, _BAD_RETAIN_KEYS)
    return {key: value for key, value in original.items() if key in names}


def _set_from_patch(merged: Object, name: str, new: Json) -> None:
    """Set a field that the object does not have with this type; directives in the value have no effect."""
    if isinstance(new, dict) and _PATCH in new:
        merged.pop(name, None)
    else:
        merged[name] = _without_nulls_and_directives(new)


def _without_nulls_and_directives(value: Json) -> Json:
    """Return a value of the patch without nulls and without structs that have a `$patch`."""
    if isinstance(value, dict):
        return {
            key: _without_nulls_and_directives(item)
            for key, item in value.items()
            if item is not None and not (isinstance(item, dict) and _PATCH in item)
        }
    if isinstance(value, list):
        return [
            _without_nulls_and_directives(item) for item in value if not (isinstance(item, dict) and _PATCH in item)
        ]
    return value


# Lists


def _merge_list(original: list[Json], patch: list[Json], field: Field, deletes: bool) -> list[Json]:
    if not original and not patch:
        return original
    if not _are_structs(original, patch):
        if deletes:
            unwanted = {json_identity(value) for value in patch}
            return [value for value in original if json_identity(value) not in unwanted]
        both = list({json_identity(value): value for value in [*original, *patch]}.values())
        return merge_in_order(
            both, patch, original, _key_identity(field.patch_merge_key) if field.patch_merge_key else json_identity
        )
    if not field.patch_merge_key:
        raise PatchError(500, f"cannot merge lists without merge key for {_go_kind(field.schema.items)}")
    original, patch = _apply_element_directives(original, patch, field.patch_merge_key)
    both = _merge_elements(original, patch, field)
    return merge_in_order(both, patch, original, _key_identity(field.patch_merge_key))


def _apply_element_directives(original: list[Json], patch: list[Json], key: str) -> tuple[list[Json], list[Json]]:
    """Apply elements with `$patch`; return the remaining list and the plain elements of the patch."""
    plain = [element for element in patch if _PATCH not in element]
    if len(plain) == len(patch):
        return original, patch
    replaces = False
    unwanted = set()
    for element in patch:
        directive = element.get(_PATCH)
        if _PATCH not in element:
            continue
        if directive == "delete":
            unwanted.add(_merge_key_value(element, key))
        elif directive == "replace":
            replaces = True
        elif directive == "merge":
            raise PatchError(500, "merging lists cannot yet be specified in the patch")
        else:
            raise PatchError(500, f"unknown patch type: {go_value(directive)} in map: {go_value(element)}")
    remaining = [old for old in original if key not in old or json_identity(old[key]) not in unwanted]
    return (plain, []) if replaces else (remaining, plain)


def _merge_elements(original: list[Json], patch: list[Json], field: Field) -> list[Json]:
    """Merge each element of the patch into the element with the same key, or append it."""
    key, merged = field.patch_merge_key, list(original)
    places: dict[Hashable, int] = {}
    for place, element in enumerate(merged):
        if key in element:
            places.setdefault(json_identity(element[key]), place)
    for element in patch:
        key_value = _merge_key_value(element, key)
        place_found = places.get(key_value)
        if place_found is None:
            places[key_value] = len(merged)
            merged.append(element)
        else:
            assert field.schema.items is not None
            merged[place_found] = _merge_struct(merged[place_found], element, field.schema.items)
    return merged


def _merge_ordered_lists(merged: Object, patch: Object, schema: Schema) -> tuple[str, ...]:
    """Merge every list whose order the patch sets into `merged`; return the keys of the patch that are done."""
    done: tuple[str, ...] = ()
    for key, order in patch.items():
        if not key.startswith(_SET_ORDER):
            continue
        if not isinstance(order, list):
            raise PatchError(500, f"expected a []interface {{}}, but received a {_go_type(order)}")
        name = _directive_field(key, _SET_ORDER, _BAD_ORDER)
        for holder in (merged, patch):
            if name in holder and not isinstance(holder[name], list):
                raise PatchError(500, f"expected a []interface {{}}, but received a {_go_type(holder[name])}")
        field = _list_field(schema, name)
        _check_order(patch.get(name) or [], order, field.patch_merge_key)
        done += (key, name) if name in patch else (key,)
        if name in merged or name in patch:
            merged[name] = _merge_list_in_order(merged.get(name), patch.get(name), order, field)
    return done


def _merge_list_in_order(old: list[Json] | None, new: list[Json] | None, order: list[Json], field: Field) -> list[Json]:
    if old is None:
        both: list[Json] = [value for value in (new or []) if not (isinstance(value, dict) and _PATCH in value)]
        both = [_without_directives(value) for value in both]
    elif new is None:
        both = old
    else:
        both = _merge_list(old, new, field, deletes=False) if "merge" in field.patch_strategy else new
    key = field.patch_merge_key
    of_structs = _are_structs(old or [], new or [])
    return merge_in_order(both, order, old or [], _key_identity(key) if key or of_structs else json_identity)


def _without_directives(value: Json) -> Json:
    """Return a value of the patch without structs that have a `$patch`; nulls are kept."""
    if isinstance(value, dict):
        return {
            key: _without_directives(item)
            for key, item in value.items()
            if not (isinstance(item, dict) and _PATCH in item)
        }
    if isinstance(value, list):
        return [_without_directives(item) for item in value if not (isinstance(item, dict) and _PATCH in item)]
    return value


def _check_order(patch: list[Json], order: list[Json], key: str) -> None:
    """Check that the elements of the patch follow the order of `$setElementOrder`."""
    if not patch or not order:
        return
    name = _key_identity(key) if key else json_identity
    left = [value for value in patch if not (key and isinstance(value, dict) and value.get(_PATCH) == "delete")]
    place = 0
    for wanted in order:
        while place < len(left) and isinstance(left[place], dict) and _PATCH in left[place]:
            place += 1
        if place == len(left):
            return
        if name(left[place]) == name(wanted):
            place += 1
    if place < len(left):
        problem = f"The order in patch list:\n{go_value(patch)}\n doesn't match {_SET_ORDER} list:\n{go_value(order)}\n"
        raise PatchError(500, problem)


# Schemas and types


def _directive_field(key: str, prefix: str, problem: str) -> str:
    directive, _, name = key.partition("/")
    if directive != prefix or not name:
        raise PatchError(400, problem)
    return name


def _field(schema: Schema, name: str) -> Field:
    """Return the field of a struct as Go's JSON decoder finds it: by its exact name, else ignoring case."""
    if schema.shape not in (Shape.STRUCT, Shape.ANY):
        kind = _go_kind(schema)
        raise PatchError(500, f"merging an object in json but data type is not struct, instead is: {kind}")
    field = schema.fields.get(name)
    if field is None:
        folded = name.casefold()
        field = next((other for other in schema.fields.values() if other.name.casefold() == folded), None)
    if field is None:
        struct = schema.go.rpartition(".")[2]
        raise PatchError(500, f"unable to find api field in struct {struct} for the json field {go_quote(name)}")
    return field


def _list_field(schema: Schema, name: str) -> Field:
    field = _field(schema, name)
    if field.schema.shape is not Shape.LIST:
        raise PatchError(500, f"expected slice or array type, but got: {_go_kind(schema)}")
    return field


def _are_structs(*lists: list[Json]) -> bool:
    """Return whether the elements are dicts; all must have the same type, and none may be a list."""
    types = [type(value) for values in lists for value in values]
    if not types:
        raise PatchError(500, "no elements in any of the given slices")
    if types[0] is list:
        raise PatchError(422, "lists of lists are not supported")
    if types[0] is type(None):
        raise PatchError(500, "a list that is merged begins with a null")
    if any(kind is not types[0] for kind in types):
        raise PatchError(500, f"list element types are not identical: {go_value(list(lists))}")
    return types[0] is dict


def _key_identity(key: str) -> Identity:
    return lambda element: _merge_key_value(element, key)


def _merge_key_value(element: Json, key: str) -> Hashable:
    """Return the merge key's value of an element."""
    if not isinstance(element, dict):
        raise PatchError(500, f"expected a map[string]interface {{}}, but received a {_go_type(element)}")
    if key not in element:
        raise PatchError(500, f"map: {go_value(element)} does not contain declared merge key: {key}")
    return json_identity(element[key])


_GO_TYPES = {
    str: "string",
    int: "int64",
    float: "float64",
    bool: "bool",
    dict: "map[string]interface {}",
    list: "[]interface {}",
    type(None): "%!s(<nil>)",
}
_GO_KINDS = {Shape.STRUCT: "struct", Shape.ANY: "struct", Shape.LIST: "slice", Shape.BYTES: "slice", Shape.MAP: "map"}


def _go_type(value: Json) -> str:
    return _GO_TYPES[type(value)]


def _go_kind(schema: Schema | None) -> str:
    """Return the name of a type in Go's reflection: struct, map, string…"""
    if schema is None:
        return "struct"
    return _GO_KINDS.get(schema.shape, "string" if schema.shape is Shape.STRING else "struct")
