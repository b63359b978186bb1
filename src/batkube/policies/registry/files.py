"""Policies from a file of the user's own.

The file is run as a module by itself: its folder does not join `sys.path`, so that nothing in it can hide a library,
and no compiled copy is left beside it. What is wrong with it is told as any other bad input: file, line, problem.
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
    """Return the class `class_name` of the Python file `path`; InputError if there is none that is a Policy."""
    module = _run(path)
    policies = _policies_of(module)
    offered = f"policies in this file: {', '.join(policies)}" if policies else _SUBCLASS_HINT
    if not class_name:
        raise InputError(path, problem="no class is named", remedy=f"write {path}:CLASS; {offered}")
    if class_name in policies:
        return policies[class_name]
    if hasattr(module, class_name):
        raise InputError(path, at=class_name, problem="is not a subclass of batkube's Policy", remedy=offered)
    raise InputError(path, at=class_name, problem="the file defines no such class", remedy=offered)


_SUBCLASS_HINT = "derive a class from batkube.policies.Policy"


def _policies_of(module: types.ModuleType) -> dict[str, type[Policy]]:
    """Return the policies that the module defines itself, and by name those that it merely imported."""
    policies = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Policy) and value is not Policy
    }
    own = {name: value for name, value in policies.items() if value.__module__ == module.__name__}
    return own or policies


def check_file(path: Path) -> None:
    """Raise InputError unless `path` is a file of Python, without running anything of it."""
    _compiled(path)


def _compiled(path: Path) -> types.CodeType:
    source = _read(path)
    try:
        return compile(source, str(path), "exec", dont_inherit=True)
    except SyntaxError as error:
        raise InputError(path, at=f"line {error.lineno}", problem=f"is not valid Python: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        # Null bytes, or brackets nested too deeply for Python's own parser.
        raise InputError(path, problem=f"is not valid Python: {error}") from error


def _run(path: Path) -> types.ModuleType:
    code = _compiled(path)
    # Dataclasses and type hints look their module up, so it must be known; its name cannot be that of another.
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
            problem=f"failed while it was imported: {type(error).__name__}: {error}",
            remedy=_remedy_for(error),
        ) from error
    return module


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise InputError(
            path, problem="there is no such file", remedy="the path is relative to the current folder"
        ) from error
    except OSError as error:
        raise InputError(path, problem=f"cannot be read: {error.strerror}") from error


def _line_of(error: BaseException, path: Path) -> str | None:
    """Return the last line of the file itself that was being run."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f"line {lines[-1]}" if lines else None


def _remedy_for(error: BaseException) -> str | None:
    if isinstance(error, ModuleNotFoundError):
        return "files beside it cannot be imported; keep the policy in one file, or install what it needs as a package"
    return None
