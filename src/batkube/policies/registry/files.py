"""Policies from files of the user.

The file is executed as a module of its own: its folder is not added to `sys.path`, so that nothing
in it can shadow a library, and no compiled copy is written beside it. Errors in the file become
InputErrors with the line.
"""

from __future__ import annotations

import hashlib
import sys
import traceback
import types
from pathlib import Path

from batkube.kernel.errors import InputError
from batkube.policies.interface import Policy


def policy_from_file(path: Path, class_name: str) -> type[Policy]:
    """Return the class `class_name` in the file `path`. Raises InputError if it is not a Policy."""
    module = _run(path)
    policies = _policies_of(module)
    remedy = f"policies in this file: {', '.join(policies)}" if policies else _SUBCLASS_HINT
    if not class_name:
        raise InputError(path, problem="no class is named", remedy=f"write {path}:CLASS; {remedy}")
    if class_name in policies:
        return policies[class_name]
    if hasattr(module, class_name):
        raise InputError(path, at=class_name, problem="is not a subclass of batkube.policies.Policy", remedy=remedy)
    raise InputError(path, at=class_name, problem="the file does not define this class", remedy=remedy)


_SUBCLASS_HINT = "derive a class from batkube.policies.Policy"


def _policies_of(module: types.ModuleType) -> dict[str, type[Policy]]:
    """Return the policies that a module defines, by name; if there are none, those that it imports."""
    policies = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Policy) and value is not Policy
    }
    own = {name: value for name, value in policies.items() if value.__module__ == module.__name__}
    return own or policies


def check_file(path: Path) -> None:
    """Raise InputError unless `path` is a Python file, without executing it."""
    _compiled(path)


def _compiled(path: Path) -> types.CodeType:
    source = _read(path)
    try:
        return compile(source, str(path), "exec", dont_inherit=True)
    except SyntaxError as error:
        raise InputError(path, at=f"line {error.lineno}", problem=f"is not valid Python: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        # Null bytes, or brackets nested too deeply for Python's parser.
        raise InputError(path, problem=f"is not valid Python: {error}") from error


def _run(path: Path) -> types.ModuleType:
    code = _compiled(path)
    # Dataclasses and type hints look up their module, so it is registered, under a unique name.
    name = f"batkube_policy_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]}"
    module = sys.modules[name] = types.ModuleType(name)
    module.__file__ = str(path)
    try:
        exec(code, module.__dict__)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise InputError(
            path,
            at=_line_of(error, path),
            problem=f"failed during import: {type(error).__name__}: {error}",
            remedy=_remedy_for(error),
        ) from error
    return module


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise InputError(
            path, problem="the file does not exist", remedy="check the path; it is relative to the current folder"
        ) from error
    except OSError as error:
        raise InputError(path, problem=f"cannot be read: {error.strerror}") from error


def _line_of(error: BaseException, path: Path) -> str | None:
    """Return the last line of the file itself in the traceback of an error."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f"line {lines[-1]}" if lines else None


def _remedy_for(error: BaseException) -> str | None:
    if isinstance(error, ModuleNotFoundError):
        return "files beside it cannot be imported: keep the policy in one file, or install the module as a package"
    return None
