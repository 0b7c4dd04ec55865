"""`ctxproxy demo`: a long conversation through a proxy of its own and the built-in model, with a live view of what is sent.

Uses only what any client can use: the chat endpoint, the X-Context headers and the admin API.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ctxproxy.cli.admin_client import AdminClient, CallFailed
from ctxproxy.cli.demo_script import FACTS, SYSTEM, TOOLS, Lang, result_of, turns
from ctxproxy.errors import CtxproxyError

SESSION = "demo"
START_S = 30.0
STOP_S = 10.0
PAUSE_S = 0.15
"""Between two turns, so that a person can follow."""
SMALL = "demo-small"
SMALL_WINDOW_TOKENS = 2048
"""The built-in model's second one: with it, an overflow is shown."""
SHOWN_ENTRIES = 5
SHOWN_CHARS = 100
"""Of what the admin API tells."""
MIN_TURNS = 8
MIN_BUDGET_TOKENS = 1500
"""Under this the newest tool result alone fills the prompt."""


class DemoFailed(CtxproxyError):
    """The proxy of the demo did not start or did not answer."""


class Answered(NamedTuple):
    """An answer of the proxy: status, decoded body, headers in small letters."""

    status: int
    body: Any
    headers: Mapping[str, str]


@dataclass
class Tally:
    """Sums over all requests."""

    requests: int = 0
    tokens_in: int = 0
    tokens_sent: int = 0
    last_sent: int = 0
    rescued: int = 0
    actions: dict[str, int] = field(default_factory=dict)

    def add(self, headers: Mapping[str, str]) -> None:
        self.requests += 1
        self.tokens_in += _number(headers, "tokens-in")
        self.last_sent = _number(headers, "tokens-sent")
        self.tokens_sent += self.last_sent
        self.rescued += _number(headers, "attempts") > 1
        for action in _context(headers, "actions").split(","):
            name, _, times = action.strip().partition("=")
            if name not in ("", "none", "-"):
                self.actions[name] = self.actions.get(name, 0) + int(times or 1)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """How long the conversation is and how much room it gets."""
    parser.add_argument("--turns", type=int, default=64, metavar="N", help=f"turns of the conversation, {MIN_TURNS} or more (default 64)")
    parser.add_argument("--budget", type=int, default=3000, metavar="TOKENS", help=f"prompt budget, {MIN_BUDGET_TOKENS} or more (default 3000)")
    parser.add_argument("--lang", choices=("en", "zh"), default="en", help="language of the conversation")
    parser.add_argument("--fast", action="store_true", help="no pauses between the turns")


def run(arguments: argparse.Namespace) -> int:
    """Hold the conversation; 0 if every request was answered; raises DemoFailed."""
    if arguments.turns < MIN_TURNS or arguments.budget < MIN_BUDGET_TOKENS:
        raise DemoFailed(f"--turns must be {MIN_TURNS} or more and --budget {MIN_BUDGET_TOKENS} or more")
    with tempfile.TemporaryDirectory(prefix="ctxproxy-demo-") as folder, _proxy(Path(folder), arguments.budget) as (url, token):
        talk = Conversation(url, arguments.lang)
        print(f"A proxy at {url}, upstream demo, prompt budget {arguments.budget} tokens.\n")
        print(_line("turn", "in", "sent", "budget", "tries", "window", "actions"))
        for number, text in enumerate(turns(arguments.lang, arguments.turns), 1):
            late = number > arguments.turns * 2 // 3
            talk.say(f"{number}", text, model=SMALL if late and talk.would_overflow else "demo")
            if not arguments.fast:
                time.sleep(PAUSE_S)
        _report(talk, AdminClient(url, token), arguments.budget)
    return 0


class Conversation:
    """A client as most are: it sends the whole history with every request."""

    def __init__(self, url: str, lang: Lang) -> None:
        self.url = url
        self.lang = lang
        self.tally = Tally()
        self.messages: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM[lang]}]

    @property
    def would_overflow(self) -> bool:
        """Whether the prompt is too long for the model with the small window, and no overflow has been seen yet."""
        return self.tally.rescued == 0 and self.tally.last_sent > SMALL_WINDOW_TOKENS

    def say(self, label: str, text: str, *, model: str = "demo") -> str:
        """One turn: the user's text, tool calls and results as long as the model calls; the answer's text."""
        self.messages.append({"role": "user", "content": text})
        while True:
            answered = self.ask(self.messages, model)
            if answered.status != 200:
                raise DemoFailed(f"turn {label}: the proxy answered {answered.status}: {json.dumps(answered.body, ensure_ascii=False)[:300]}")
            self.tally.add(answered.headers)
            print(_line(label, *_columns(answered.headers)), flush=True)
            message = answered.body["choices"][0]["message"]
            self.messages.append({key: value for key, value in message.items() if value is not None})
            if not message.get("tool_calls"):
                return str(message["content"])
            for call in message["tool_calls"]:
                function = call["function"]
                result = result_of(function["name"], function["arguments"], len(self.messages))
                self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})

    def ask(self, messages: Sequence[Mapping[str, Any]], model: str, *, bypass: bool = False) -> Answered:
        """One request, in the demo's session or around it."""
        headers = {"Content-Type": "application/json", "X-Session-Id": SESSION, **({"X-Context-Bypass": "true"} if bypass else {})}
        body = {"model": model, "messages": messages, "tools": TOOLS}
        return _post(f"{self.url}/v1/chat/completions", json.dumps(body).encode(), headers)


def _report(talk: Conversation, admin: AdminClient, budget: int) -> None:
    """What the model still knows, what a plain cut would have left, and what it cost."""
    print("\nWhat the model still knows:\n")
    facts = FACTS[talk.lang]
    known = plain = 0
    history = list(talk.messages)
    for number, fact in enumerate(facts, 1):
        answer = talk.say(f"?{number}", fact.asked)
        right = fact.value in answer
        known += right
        plain += fact.value in _without_proxy(talk, history, fact.asked, budget)
        print(f"       {'yes' if right else 'no '}  {fact.asked}  {' '.join(answer.split())[:110]}")
    whole = talk.ask(talk.messages, "demo", bypass=True)
    tally = talk.tally
    saved = 1 - tally.tokens_sent / tally.tokens_in if tally.tokens_in else 0.0
    unmanaged = "still fits" if whole.status == 200 else f"refused, {whole.status}"
    print(f"\nknown            {known} of {len(facts)} facts from the first turns ({plain} of {len(facts)} if the oldest messages are just cut off)")
    print(f"unmanaged        the whole conversation sent as it is: {unmanaged}")
    print(f"prompt tokens    {tally.tokens_in:,} in, {tally.tokens_sent:,} sent over {tally.requests} requests: {saved:.0%} saved")
    print(f"actions          {', '.join(f'{name} {times}' for name, times in sorted(tally.actions.items())) or 'none'}")
    print(f"overflows        {tally.rescued} rescued" + (": the upstream refused, the client did not see it" if tally.rescued else ""))
    for line in _from_admin(admin):
        print(line)


def _without_proxy(talk: Conversation, history: Sequence[Mapping[str, Any]], question: str, budget: int) -> str:
    """The answer to a question after the newest messages that fit: what cutting the oldest off leaves."""
    system, rest = history[0], history[1:]
    asked = {"role": "user", "content": question}
    starts = [at for at, message in enumerate(rest) if message["role"] == "user"]
    for start in starts:
        kept = [system, *rest[start:], asked]
        if sum(len(json.dumps(message, ensure_ascii=False)) for message in kept) > budget * (4 if talk.lang == "en" else 2):
            continue
        answered = talk.ask(kept, "demo", bypass=True)
        if answered.status == 200:
            return str(answered.body["choices"][0]["message"]["content"])
    return ""


def _from_admin(admin: AdminClient) -> Iterator[str]:
    """What the admin API knows of the session and of the windows."""
    for title, path in (("session", f"sessions/{SESSION}"), ("windows", "models")):
        try:
            told = admin.call("GET", path)
        except CallFailed as error:
            told = {"error": error.message}
        entries = told.get("data", [told]) if isinstance(told, dict) else []
        for entry in entries[:SHOWN_ENTRIES]:
            yield f"{title:<16} {_plain(entry)}"


def _plain(entry: Mapping[str, Any]) -> str:
    """The plain values of an entry on one line, lists as their lengths."""
    values = {name: len(value) if isinstance(value, list) else value for name, value in entry.items() if not isinstance(value, dict)}
    return ", ".join(f"{name} {' '.join(str(value).split())[:SHOWN_CHARS]}" for name, value in values.items() if value not in (None, "", 0))


@contextmanager
def _proxy(folder: Path, budget: int) -> Iterator[tuple[str, str]]:
    """A proxy in a process of its own, with its data in `folder`: its URL and admin token."""
    port, token = _free_port(), secrets.token_hex(16)
    config = folder / "config.yaml"
    config.write_text(json.dumps(_settings(folder, port, token, budget)), encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CTXPROXY_")}
    command = [sys.executable, "-m", "ctxproxy", "serve", "--config", str(config)]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)  # noqa: S603 - our own program
        try:
            url = f"http://127.0.0.1:{port}"
            _wait(url, process, folder / "log")
            yield url, token
        finally:
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _settings(folder: Path, port: int, token: str, budget: int) -> dict[str, Any]:
    return {
        "listen": {"host": "127.0.0.1", "port": port},
        "upstream": {"base_url": "demo"},
        "context": {"max_tokens": budget},
        "data_dir": str(folder / "data"),
        "store": {"url": f"sqlite:///{folder / 'demo.db'}"},
        "admin": {"token": token},
        "log": {"level": "warning"},
    }


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + START_S
    while time.monotonic() < until and process.poll() is None:
        try:
            with _opener().open(f"{url}/healthz", timeout=5) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.05)
    raise DemoFailed(f"the proxy did not start: {log.read_text(errors='replace')[-2000:].strip() or 'it said nothing'}")


def _post(url: str, raw: bytes, headers: Mapping[str, str]) -> Answered:
    request = urllib.request.Request(url, raw, dict(headers))  # noqa: S310 - our own proxy
    try:
        with _opener().open(request, timeout=120) as answer:
            return Answered(answer.status, _decoded(answer.read()), {k.lower(): v for k, v in answer.headers.items()})
    except urllib.error.HTTPError as error:
        with error:
            return Answered(error.code, _decoded(error.read()), {k.lower(): v for k, v in error.headers.items()})
    except OSError as error:
        raise DemoFailed(f"the proxy does not answer: {error}") from error


def _decoded(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return raw.decode(errors="replace")


def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(urllib.request.ProxyHandler({}))


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def _context(headers: Mapping[str, str], name: str) -> str:
    return headers.get(f"x-context-{name}", "-")


def _number(headers: Mapping[str, str], name: str) -> int:
    value = _context(headers, name)
    return int(value) if value.isdigit() else 0


def _columns(headers: Mapping[str, str]) -> list[str]:
    return [_context(headers, name) for name in ("tokens-in", "tokens-sent", "budget", "attempts", "window", "actions")]


def _line(turn: str, tokens_in: str, sent: str, budget: str, tries: str, window: str, actions: str) -> str:
    return f"{turn:>5} {tokens_in:>8} {sent:>7} {budget:>7} {tries:>5}  {window:<22} {actions}".rstrip()
