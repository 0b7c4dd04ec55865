"""Values that arrive in fragments: text that goes on, objects and lists that fill up, tool calls told apart by index and id.

The deltas of a chat completion stream are such fragments; their meaning is only half specified, so each rule names who needs it.
"""

from __future__ import annotations

import json
from typing import Any, TypeAlias

from ctxproxy.core import jsontext

Tree: TypeAlias = dict[str, Any]
"""An object that is filling up; its texts are `Pieces`."""

ONCE = frozenset({"role", "type", "id", "name", "index", "format", "object", "signature", "thought_signature"})
"""Texts that come whole, and that some servers repeat in every chunk: the first one stays."""
RUNNING = ("text", "thinking", "reasoning", "output_text")
"""Types of list elements that go on in the next chunk without an index (Mistral's content)."""


MAX_DEPTH = 32
"""Below this a value is taken as a whole and replaced as a whole: no stream goes deeper, and our own stack stays small."""


class Pieces(list[str]):
    """A text that is still coming: joined once, at the end."""

    def joined(self) -> str:
        """The text; a character that was cut between two pieces, half a surrogate pair in each, is whole again."""
        text = "".join(self)
        try:
            text.encode()
        except UnicodeEncodeError:
            return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return text


def add(tree: Tree, fragment: dict[str, Any], depth: int = 0) -> None:
    """Let an object take in a fragment: texts go on, objects and lists fill up, other values are replaced, null says nothing."""
    for key, value in fragment.items():
        if key not in ONCE:
            if value is not None:
                tree[key] = _added(tree.get(key), value, depth)
        elif value not in (None, "") and tree.get(key) in (None, ""):
            tree[key] = value


def _added(old: Any, new: Any, depth: int) -> Any:
    if depth >= MAX_DEPTH:
        return new
    if isinstance(new, str):
        return _with_text(old, new, depth)
    if isinstance(new, list):
        return _with_elements(old, new, depth)
    if isinstance(new, dict):
        tree = old if isinstance(old, dict) else {}
        add(tree, new, depth + 1)
        return tree
    return new


def _with_text(old: Any, new: str, depth: int) -> Any:
    """The text goes on; behind a list of content parts it becomes a part."""
    if isinstance(old, list) and not isinstance(old, Pieces):
        return _with_elements(old, [{"type": "text", "text": new}], depth) if new else old
    pieces = old if isinstance(old, Pieces) else Pieces()
    pieces.append(new)
    return pieces


def _with_elements(old: Any, new: list[Any], depth: int) -> list[Any]:
    """The list fills up; a text that came before it becomes its first part."""
    elements: list[Any] = []
    if isinstance(old, Pieces):
        elements += [{"type": "text", "text": old}] if any(old) else []
    elif isinstance(old, list):
        elements = old
    for one in new:
        if isinstance(one, dict):
            add(_element(elements, one), one, depth + 1)
        else:
            elements.append(_added(None, one, depth + 1))
    return elements


def _element(elements: list[Any], new: dict[str, Any]) -> Tree:
    """The element that an object goes on with: the one of its index and type, or the last one if that is a running text; else a new one."""
    kind, index = new.get("type"), new.get("index")
    if type(index) is int:
        found = next((one for one in elements if _is_at(one, index, kind)), None)
    else:
        found = next((one for one in elements[-1:] if isinstance(one, dict) and one.get("type") == kind and kind in RUNNING), None)
    if found is None:
        found = {}
        elements.append(found)
    return found


def _is_at(element: Any, index: int, kind: Any) -> bool:
    return isinstance(element, dict) and element.get("index") == index and (kind is None or element.get("type") == kind)


def built(value: Any, depth: int = 0) -> Any:
    """The value with its texts joined; the fragments stay as they are."""
    if isinstance(value, Pieces):
        return value.joined()
    if depth > 2 * MAX_DEPTH:
        return value
    if isinstance(value, dict):
        return {key: built(one, depth + 1) for key, one in value.items()}
    if isinstance(value, list):
        return [built(one, depth + 1) for one in value]
    return value


class Call:
    """A tool call that is still coming; `arguments` of a function, `input` of a custom tool."""

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.index: int | None = None
        self._input = Pieces()
        self._fields: Tree = {}
        self._body_key = "function"
        self._input_key = "arguments"
        self._body_fields: Tree = {}

    def feed(self, fragment: dict[str, Any]) -> None:
        self.id = self.id or _id(fragment)
        key, body = _body(fragment)
        if body:
            self._body_key = key
            self._input_key = "input" if key == "custom" else "arguments"
        self._take_name(_name(body))
        arguments = body.get(self._input_key)
        if arguments is not None:
            self._input.append(arguments if isinstance(arguments, str) else jsontext.encode(arguments).decode())
        add(self._body_fields, {k: v for k, v in body.items() if k not in ("name", self._input_key)})
        add(self._fields, {k: v for k, v in fragment.items() if k not in ("id", "index", key)})

    def _take_name(self, name: str) -> None:
        """A name may be repeated, or come in pieces as long as there are no arguments."""
        if name != self.name and not self.has_arguments:
            self.name += name

    @property
    def has_arguments(self) -> bool:
        """Some of them have come: its name is whole."""
        return any(self._input)

    @property
    def has_all_arguments(self) -> bool:
        """They are whole JSON: what comes now cannot belong to them."""
        if not self._input or not self._input[-1].rstrip().endswith(("}", "]")):
            return False
        try:
            json.loads(self._input.joined())
        except (ValueError, RecursionError):
            return False
        return True

    def built(self) -> dict[str, Any]:
        head = {"id": self.id} if self.id else {}
        fields = {"type": self._body_key, **built(self._fields)}
        return {**head, **fields, self._body_key: {"name": self.name, self._input_key: self._input.joined(), **built(self._body_fields)}}


class Calls:
    """The tool calls of one answer, told apart by id where there is one, else by index, else by what a fragment can belong to."""

    def __init__(self) -> None:
        self._calls: list[Call] = []
        self._by_index: dict[int, Call] = {}
        self._by_id: dict[str, Call] = {}

    def feed(self, fragment: dict[str, Any]) -> Call:
        """Take in one element of a delta's `tool_calls`; gives the call that it belongs to."""
        index = fragment["index"] if type(fragment.get("index")) is int else None
        call = self._goes_on(fragment, index)
        if call is None:
            call = Call()
            call.index = index
            self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        if _id(fragment):
            self._by_id[_id(fragment)] = call
        call.feed(fragment)
        return call

    def built(self) -> list[dict[str, Any]]:
        """The calls, in the order in which they began."""
        return [call.built() for call in self._calls]

    def _goes_on(self, fragment: dict[str, Any], index: int | None) -> Call | None:
        """The call that a fragment goes on with; None if it begins one."""
        known = self._by_id.get(_id(fragment)) if _id(fragment) else None
        if known:
            return None if _begins_anew(known, fragment, index) else known
        last = self._calls[-1] if self._calls else None
        call = last if index is None else self._by_index.get(index)
        if call is None:
            return None if _id(fragment) or _name(_body(fragment)[1]) else last
        if _id(fragment) and call.id:
            return _same_under_new_id(call, fragment)
        return None if _is_another(call, fragment, index) else call


def _begins_anew(call: Call, fragment: dict[str, Any], index: int | None) -> bool:
    """A second call under the same id: servers that name calls by their function, or number them anew."""
    elsewhere = index is None or index != call.index
    return elsewhere and _names_another(call, fragment)


def _names_another(call: Call, fragment: dict[str, Any]) -> bool:
    """It names a function, and the call has all it needs; an empty repetition of the name is none."""
    body = _body(fragment)[1]
    name = _name(body)
    return bool(name) and call.has_all_arguments and bool(name != call.name or body.get("arguments") or body.get("input"))


def _same_under_new_id(call: Call, fragment: dict[str, Any]) -> Call | None:
    """Two ids under one index are two calls, but for servers that make up a new id for every fragment of one (vLLM's had that fault)."""
    return None if _name(_body(fragment)[1]) or call.has_all_arguments else call


def _is_another(call: Call, fragment: dict[str, Any], index: int | None) -> bool:
    """A name says that a call begins, unless it repeats that of an unfinished one."""
    name = _name(_body(fragment)[1])
    if index is None and name and call.name and name != call.name:
        return True
    return bool(call.name) and _names_another(call, fragment)


def _body(fragment: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    for key in ("function", "custom"):
        if isinstance(body := fragment.get(key), dict):
            return key, body
    return "function", {}


def _name(body: dict[str, Any]) -> str:
    name = body.get("name")
    return name if isinstance(name, str) else ""


def _id(fragment: dict[str, Any]) -> str:
    value = fragment.get("id")
    return value if isinstance(value, str) else ""
