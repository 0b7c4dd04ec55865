"""Parts of the user's own, named by import path `module:name`: a summarizer, stages in a pipeline. Imported when the settings are read.

A module is imported once; after a change to its code the program has to be started anew.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import cast, get_args

from ctxproxy.config import describe
from ctxproxy.config.build import Faults
from ctxproxy.config.schema import Keys
from ctxproxy.core.own_summaries import Summarize
from ctxproxy.core.stages.base import REGISTRY, Loss, Stage
from ctxproxy.errors import ConfigError

IMPORT_PATH = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)
STAGE_NAME = re.compile(r"[\w.:-]{1,100}", re.ASCII)
"""What can stand in `X-Context-Actions` and be told apart there."""
SHOWN_NAMES = 8
SHOWN_CHARS = 200


def load_own(settings: Keys, origin: Path | None, faults: Faults) -> None:
    """Import every part that the settings name by its path, and note what cannot be had.

    Modules are looked for where Python finds any, then beside the configuration file, then in the current directory; so nothing that
    lies there can take the place of an installed module.
    """
    parts = [*_named(settings)]
    if not parts:
        return
    for folder in _folders(origin):
        if folder not in sys.path:
            sys.path.append(folder)
    for path, name in parts:
        try:
            _stage_at(name) if path.endswith(".stage") else _function_at(name)
        except ConfigError as error:
            faults.note(path, error.message)


def summarizer_at(kind: str) -> Summarize | None:
    """The function that a `summarizer.kind` names, None if it names none; raises ConfigError if it cannot be had."""
    return _function_at(kind) if ":" in kind else None


def _named(settings: Keys) -> Iterator[tuple[str, str]]:
    """Each import path with the path of its key."""
    if ":" in settings.summarizer.kind:
        yield "summarizer.kind", settings.summarizer.kind
    for path, context in (("context", settings.context), *((f"profiles.{name}", profile) for name, profile in settings.profiles.items())):
        for n, spec in enumerate(context.pipeline or ()):
            name = spec.get("stage")
            if isinstance(name, str) and ":" in name:
                yield f"{path}.pipeline[{n}].stage", name


def _folders(origin: Path | None) -> list[str]:
    return list(dict.fromkeys(str(folder.absolute()) for folder in (origin.absolute().parent if origin else Path(), Path())))


def _function_at(path: str) -> Summarize:
    part = _part(path)
    if not callable(part) or isinstance(part, type):
        raise ConfigError(f"{path} is no function, but {_kind(part)}")
    return cast("Summarize", part)


def _stage_at(path: str) -> type[Stage]:
    """The stage's class, registered under its path and its name."""
    part = _part(path)
    if not (isinstance(part, type) and issubclass(part, Stage)) or part.propose is Stage.propose:
        raise ConfigError(f"{path} is no stage, but {_kind(part)}: a stage is a subclass of ctxproxy.core.stages.base.Stage with a `propose`")
    if REGISTRY.get(path) is not part:
        _name(path, part)
        REGISTRY[part.name] = REGISTRY[path] = part
    return part


def _name(path: str, stage: type[Stage]) -> None:
    """Give a stage what it does not say of itself: its path as its name, so that one that extends another is not taken for it."""
    own = vars(stage)
    if "name" not in own:
        stage.name = path
    if getattr(stage, "loss", None) not in get_args(Loss):
        stage.loss = "lossy"
    if not isinstance(stage.name, str) or not STAGE_NAME.fullmatch(stage.name):
        raise ConfigError(f"{path}: its `name` must be a text of letters, digits, dots, colons, hyphens and underscores, and no option")
    if REGISTRY.get(stage.name, stage) is not stage:
        raise ConfigError(f"{path}: another stage has the name {stage.name}; take another")


def _part(path: str) -> object:
    """What a path names; raises ConfigError with the reason and the nearest name."""
    if not IMPORT_PATH.fullmatch(path):
        raise ConfigError(f"expected module:name, like my_module:MyStage, not {describe.named(path)}")
    module_name, _, name = path.partition(":")
    module = _module(module_name)
    if hasattr(module, name):
        return cast("object", getattr(module, name))
    own = [known for known, part in vars(module).items() if known[0] != "_" and getattr(part, "__module__", "") == module_name]
    close = _nearest(name, own)
    there = f"did you mean {module_name}:{close}?" if close else f"it has {', '.join(own[:SHOWN_NAMES]) or 'no parts of its own'}"
    raise ConfigError(f"the module {module_name} has no {name}; {there}")


def _nearest(name: str, known: Iterable[str]) -> str | None:
    """The name that looks most like this one, in small letters or capitals."""
    level = {one.lower(): one for one in known}
    close = describe.nearest(name, level)
    return level[close] if close else None


def _module(name: str) -> ModuleType:
    if name in sys.modules:
        return sys.modules[name]
    importlib.invalidate_caches()  # the file may have been written since the folder was last looked at
    known = dict(REGISTRY)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = str(error.name)
        if missing != name and not name.startswith(f"{missing}."):
            raise ConfigError(f"the module {name} needs the module {missing}, which is not there") from None
        close = _nearest(name, (found.name for found in pkgutil.iter_modules()))
        hint = f"did you mean {close}?" if close else "it is looked for beside the configuration file and in the current directory too"
        raise ConfigError(f"there is no module {name}; {hint}") from None
    except (Exception, SystemExit) as error:  # noqa: BLE001  whatever a user's module does when it is imported
        raise ConfigError(f"the module {name} cannot be imported: {_told(error)}") from None
    finally:
        _restore(known)


def _restore(known: Mapping[str, type[Stage]]) -> None:
    """Take back what a module registered under the name of another stage; its own check then says so."""
    REGISTRY.update(known)


def _told(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    where = f" (line {frames[-1].lineno} of {Path(frames[-1].filename).name})" if frames else ""
    return f"{type(error).__name__}: {str(error)[:SHOWN_CHARS]}{where}"


def _kind(part: object) -> str:
    return f"the class {part.__name__}" if isinstance(part, type) else f"a value of type {type(part).__name__}"
