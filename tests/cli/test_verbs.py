"""The verbs, run in this process; those that ask a proxy ask a small HTTP server with recorded answers."""

from __future__ import annotations

import contextlib
import io
import json
import sqlite3
import sys
import threading
from collections.abc import Iterator
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import pytest

from ctxproxy import __version__
from ctxproxy.cli.main import VERBS, main
from ctxproxy.config.reload import Holder
from ctxproxy.config.schema import Settings
from ctxproxy.store.queries import migrations
from ctxproxy.store.sqlite_file import APPLICATION_ID

SESSION = {"id": "ab12cd34:talk", "name": "talk", "turns": 3, "rate": 0.5, "title": "x" * 70, "gone": None, "branches": [1]}
MESSAGES = [{"role": "user", "content": "你好\n"}, {"role": "assistant", "content": "\ud800"}, {"role": "user", "content": "bye"}]


class FakeProxy(ThreadingHTTPServer):
    """Answers the admin API's paths from a table and notes what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: dict[str, tuple[int, bytes]] = {}
        self.asked: list[tuple[str, str, dict[str, list[str]], str | None, bytes]] = []
        self.cut = 0  # bytes that are promised and do not come

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def answer(self, path: str, value: object, *, status: int = 200, cursor: str = "") -> None:
        self.answers[f"/ctxproxy/api/{path}{cursor}"] = (status, value if isinstance(value, bytes) else json.dumps(value).encode())


class Handler(BaseHTTPRequestHandler):
    def _reply(self) -> None:
        server = self.server
        assert isinstance(server, FakeProxy)
        parts = urlsplit(self.path)
        query = parse_qs(parts.query)
        body = self._chunks() if self.headers.get("Transfer-Encoding") else self.rfile.read(int(self.headers.get("Content-Length", "0")))
        server.asked.append((self.command, parts.path, query, self.headers.get("Authorization"), body))
        status, content = server.answers[parts.path + query.get("cursor", [""])[0]]
        self.send_response(status)
        self.send_header("Content-Length", str(len(content) + server.cut))
        self.end_headers()
        self.wfile.write(content)

    def _chunks(self) -> bytes:
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    do_GET = _reply  # noqa: N815 - the names are the library's
    do_POST = _reply  # noqa: N815
    do_DELETE = _reply  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeProxy]:
    server = FakeProxy()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    (tmp_path / "config.yaml").write_text(f"listen: {{host: 0.0.0.0, port: {server.server_address[1]}}}\nadmin: {{token: adm}}", encoding="utf-8")
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_lists_are_printed_as_tables_of_their_plain_values(proxy: FakeProxy, capsys: pytest.CaptureFixture[str]) -> None:
    proxy.answer("sessions", {"data": [SESSION, {"id": "x", "name": "y"}], "next_cursor": None})
    assert main(["sessions", "list", "tal"]) == 0
    head, first, second = capsys.readouterr().out.splitlines()
    assert head.split() == ["ID", "NAME", "TURNS", "RATE", "TITLE", "GONE"]
    assert first.split() == ["ab12cd34:talk", "talk", "3", "0.50", "x" * 59 + "…", "-"]
    assert second.split() == ["x", "y", "-", "-", "-", "-"]
    assert proxy.asked == [("GET", "/ctxproxy/api/sessions", {"limit": ["50"], "q": ["tal"]}, "Bearer adm", b"")]


def test_points_in_time_are_shown_as_dates(proxy: FakeProxy, capsys: pytest.CaptureFixture[str]) -> None:
    proxy.answer("models", {"data": [{"model": "a", "when": 1_700_000_000.5}, {"model": "b", "when": None}], "next_cursor": None})
    assert main(["models"]) == 0
    _, first, second = capsys.readouterr().out.splitlines()
    assert datetime.fromisoformat(first.split(maxsplit=1)[1]).timestamp() == 1_700_000_000
    assert second.split() == ["b", "-"]


def test_a_list_goes_on_over_pages_up_to_its_limit(proxy: FakeProxy, capsys: pytest.CaptureFixture[str]) -> None:
    proxy.answer("sessions", {"data": [{"id": "1"}, {"id": "2"}], "next_cursor": "n"})
    proxy.answer("sessions", {"data": [{"id": "3"}, {"id": "4"}], "next_cursor": "m"}, cursor="n")
    assert main(["sessions", "list", "--json", "--limit", "3"]) == 0
    assert [entry["id"] for entry in json.loads(capsys.readouterr().out)] == ["1", "2", "3"]
    assert len(proxy.asked) == 2


def test_a_server_that_repeats_its_cursor_ends_the_list(proxy: FakeProxy, capsys: pytest.CaptureFixture[str]) -> None:
    proxy.answer("models", {"data": [{"model": "a"}], "next_cursor": "n"})
    proxy.answer("models", {"data": [{"model": "b"}], "next_cursor": "n"}, cursor="n")
    assert main(["models"]) == 0
    assert capsys.readouterr().out.split() == ["MODEL", "a", "b"]


@pytest.mark.parametrize(
    ("words", "path", "said"), [(["sessions", "list"], "sessions", "no sessions"), (["models"], "models", "no model has been used yet")]
)
def test_an_empty_list_is_said_in_words(proxy: FakeProxy, capsys: pytest.CaptureFixture[str], words: list[str], path: str, said: str) -> None:
    proxy.answer(path, {"data": [], "next_cursor": None})
    assert main(words) == 0
    assert capsys.readouterr().out.strip() == said


@pytest.mark.parametrize(
    ("words", "path"),
    [
        (["sessions", "show", "a/b c"], "sessions/a%2Fb%20c"),
        (["sessions", "view", "ab:talk", "--json"], "sessions/ab%3Atalk/view"),
        (["sessions", "view", "of-another-version"], "sessions/of-another-version/view"),
        (["stats"], "stats"),
    ],
)
def test_single_answers_are_printed_as_json(proxy: FakeProxy, capsys: pytest.CaptureFixture[str], words: list[str], path: str) -> None:
    proxy.answer(path, {"名": "值"})
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out) == {"名": "值"}


REPORT = {
    "changed": True,
    "fits": False,
    "tokens_in": 4321,
    "tokens_sent": 1234,
    "budget": {"prompt": 2000, "history": 1900},
    "actions": [{"stage": "drop_oldest", "edits": 2, "saved_tokens": 3087}],
    "failed": ["my_parts:Mine"],
    "messages": [
        {"tip": None, "message": {"role": "system", "content": "be brief\nand kind"}, "tokens": 5, "why": "leading"},
        {
            "tip": "b1" * 16,
            "message": {"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "image_url"}]},
            "tokens": 900,
            "why": "x" * 80,
        },
        {
            "tip": "c1" * 16,
            "message": {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "ls"}}]},
            "tokens": 9,
            "why": "kept",
        },
        {"tip": "d1" * 16, "message": {"role": "tool", "content": "word " * 40}, "tokens": 9, "why": "kept"},
    ],
    "history": [
        {"tip": "a1" * 16, "role": "user", "state": "dropped", "tokens_before": 3087, "stands_in": None, "why": "left out: too old"},
        {"tip": "b1" * 16, "role": "user", "state": "sent", "tokens_before": 900, "stands_in": 1, "why": "kept"},
    ],
}


@pytest.mark.parametrize(("words", "path"), [(["sessions", "view", "talk"], "sessions/talk/view"), (["plan", "request.json"], "plan")])
def test_a_plan_and_a_view_are_told_in_words(
    proxy: FakeProxy, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], path: str
) -> None:
    (tmp_path / "request.json").write_text('{"messages": []}', encoding="utf-8")
    proxy.answer(path, REPORT)
    assert main(words) == 0
    figures, sent, gone = capsys.readouterr().out.split("\n\n")
    assert figures.splitlines() == [
        "1,234 of 4,321 prompt tokens are sent",
        "budget 2,000, 1,900 of it for the history",
        "drop_oldest: 2 edits, 3,087 tokens saved",
        "my_parts:Mine: failed and was left out",
        "it does not fit the budget",
    ]
    assert [line.split() for line in sent.splitlines()] == [
        ["What", "is", "sent:"],
        ["#", "ROLE", "TOKENS", "TEXT", "WHY"],
        ["0", "system", "5", "be", "brief", "and", "kind", "leading"],
        ["1", "user", "900", "look", "image_url", "x" * 80],
        ["2", "assistant", "9", "→", "ls()", "kept"],
        ["3", "tool", "9", *["word"] * 8, "wor…", "kept"],
    ]
    assert [line.split() for line in gone.splitlines()] == [
        ["What", "is", "left", "out:"],
        ["TIP", "ROLE", "STATE", "TOKENS", "IN", "#", "WHY"],
        ["a1" * 8, "user", "dropped", "3087", "-", "left", "out:", "too", "old"],
    ]


@pytest.mark.parametrize(("changed", "words"), [(True, "an earlier decision is sent again"), (False, "nothing is changed")])
def test_a_view_without_a_new_decision_says_so(proxy: FakeProxy, capsys: pytest.CaptureFixture[str], changed: bool, words: str) -> None:
    proxy.answer("sessions/talk/view", {**REPORT, "actions": [], "failed": [], "fits": True, "changed": changed, "history": []})
    assert main(["sessions", "view", "talk"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[2] == words
    assert out.splitlines()[-1] == "Nothing is left out."


WHY = {
    "session": "ab12cd34:talk",
    "text": "code",
    "searched": 40,
    "in_prompt": [],
    "pins": [2],
    "pin": {"method": "POST", "path": "sessions/ab12cd34%3Atalk/pins", "body": {"text": "The \ud800 code."}},
    "data": [
        {
            "tip": "ab" * 16,
            "role": "user",
            "time": 10.0,
            "turn": 3,
            "branch": "cd" * 16,
            "branches": 2,
            "place": "content",
            "excerpt": "… the code …",
            "sentence": "The \ud800 code.",
            "state": "summarized",
            "stage": "summarize",
            "why": "summarized by summarize: summary",
            "left": None,
            "steps": [
                {"time": 20.0, "turn": 9, "tip": "ef" * 16, "state": "compacted", "stage": "s", "why": "shortened by s"},
                {"time": None, "turn": None, "tip": None, "state": "summarized", "stage": "summarize", "why": "summarized by summarize: summary"},
            ],
            "stands_in": {"at": 1, "kind": "frame", "holds": False, "excerpt": "They spoke."},
            "marker": "ab" * 8,
        }
    ],
    "left_off": 3,
    "next_cursor": None,
}


def test_where_a_phrase_went_is_told_in_words(proxy: FakeProxy, capsys: pytest.CaptureFixture[str]) -> None:
    proxy.answer("sessions/talk/why", WHY)
    assert main(["why", "talk", "code"]) == 0
    said = capsys.readouterr().out
    for line in (
        "'code' stands in 4 of the 40 messages of ab12cd34:talk",
        "the next request does not carry it",
        "pinned: 2",
        "   now summarized: summarized by summarize: summary",
        "   with the next request: summarized by summarize: summary",
        "   in its place: frame at #1, without the phrase: They spoke.",
        f"   original: /ctxproxy/api/expand/{'ab' * 8} (tip {'ab' * 16})",
        "3 more are not told of",
        "to have it back: POST /ctxproxy/api/sessions/ab12cd34%3Atalk/pins",
        '{"text": "The \\ud800 code."}',
    ):
        assert line in said.splitlines()
    assert "turn 3" in said
    assert "on 2 branches" in said
    assert "with turn 9: shortened by s" in said


def test_what_is_sent_and_what_nothing_stands_for_is_told(proxy: FakeProxy, capsys: pytest.CaptureFixture[str]) -> None:
    one = {**WHY["data"][0], "branches": 1, "steps": [], "stands_in": None}  # type: ignore[index]
    data = [{**one, "state": "sent", "why": "recent"}, {**one, "state": "dropped"}]
    proxy.answer("sessions/talk/why", {**WHY, "data": data, "in_prompt": [0, 4], "pins": [], "pin": None, "left_off": 0})
    assert main(["why", "talk", "the", "code"]) == 0
    said = capsys.readouterr().out
    assert "the next request carries it, at #0, #4" in said
    assert said.count("nothing stands in its place") == 1
    assert not {"branches", "pinned", "back", "not told"} & set(said.split())
    assert main(["why", "talk", "code", "--json", "--limit", "9"]) == 0
    assert json.loads(capsys.readouterr().out)["in_prompt"] == [0, 4]
    assert [asked[2] for asked in proxy.asked] == [{"text": ["the code"]}, {"text": ["code"], "limit": ["9"]}]


def test_an_export_is_one_message_a_line_and_loses_nothing(proxy: FakeProxy, capsys: pytest.CaptureFixture[str]) -> None:
    proxy.answer("sessions/talk/messages", {"data": [{"tip": "1", "message": MESSAGES[0]}, {"tip": "2", "message": MESSAGES[1]}], "next_cursor": "n"})
    proxy.answer("sessions/talk/messages", {"data": [{"tip": "3", "message": MESSAGES[2]}], "next_cursor": None}, cursor="n")
    assert main(["sessions", "export", "talk", "--messages", "--branch", "ff"]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == MESSAGES
    assert [query["branch"] for _, _, query, _, _ in proxy.asked] == [["ff"], ["ff"]]


FILE = b'{"record":"session"}\n{"record":"end","lines":1}\n'


def test_an_export_is_the_file_as_it_comes(proxy: FakeProxy, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    proxy.answer("sessions/talk/export", FILE)
    assert main(["sessions", "export", "talk"]) == 0
    assert capsysbinary.readouterr().out == FILE
    assert main(["sessions", "export", "talk", "-o", str(tmp_path / "talk.jsonl")]) == 0
    assert (tmp_path / "talk.jsonl").read_bytes() == FILE
    assert (tmp_path / "talk.jsonl").stat().st_mode & 0o777 == 0o600


def test_an_export_that_fails_leaves_no_file(proxy: FakeProxy, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    proxy.answer("sessions/talk/export", {"error": {"message": "no such session"}}, status=404)
    assert main(["sessions", "export", "talk", "-o", str(tmp_path / "talk.jsonl")]) == 1
    assert "no such session" in capsys.readouterr().err
    proxy.answer("sessions/talk/export", b"cut")
    proxy.cut = 10
    assert main(["sessions", "export", "talk", "-o", str(tmp_path / "talk.jsonl")]) == 1
    assert "not whole" in capsys.readouterr().err
    assert main(["sessions", "export", "talk", "-o", str(tmp_path / "none" / "talk.jsonl")]) == 1
    assert "No such file" in capsys.readouterr().err
    assert sorted(file.name for file in tmp_path.iterdir()) == ["config.yaml"]


def test_a_file_is_imported(proxy: FakeProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    proxy.answer("import", {"id": "ab12cd34:copy"}, status=201)
    (tmp_path / "talk.jsonl").write_bytes(FILE)
    assert main(["sessions", "import", "talk.jsonl", "--as", "copy", "--tenant", "ab12cd34"]) == 0
    assert json.loads(capsys.readouterr().out) == {"id": "ab12cd34:copy"}
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(FILE)))
    assert main(["sessions", "import", "-"]) == 0
    assert [(method, query, body) for method, _, query, _, body in proxy.asked] == [
        ("POST", {"as": ["copy"], "tenant": ["ab12cd34"]}, FILE),
        ("POST", {}, FILE),
    ]
    capsys.readouterr()
    assert main(["sessions", "import", "none.jsonl"]) == 1
    assert capsys.readouterr().err == "ctxproxy: none.jsonl: No such file or directory\n"


def test_a_session_is_erased(proxy: FakeProxy, capsys: pytest.CaptureFixture[str]) -> None:
    proxy.answer("sessions/talk", b"")
    assert main(["sessions", "delete", "talk"]) == 0
    assert proxy.asked[0][0] == "DELETE"
    assert "talk" in capsys.readouterr().out


def test_a_plan_is_asked_for_what_takes_room_in_the_prompt(proxy: FakeProxy, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    proxy.answer("plan", {"actions": []})
    request = {"model": "m", "messages": [{"role": "user", "content": "x"}], "tools": [{}], "max_tokens": 5, "stream": True}
    (tmp_path / "request.json").write_text(json.dumps(request), encoding="utf-8")
    assert main(["plan", "request.json", "--preset", "lossless", "--max-tokens", "300", "--json"]) == 0
    method, path, _, _, body = proxy.asked[0]
    assert (method, path) == ("POST", "/ctxproxy/api/plan")
    assert json.loads(body) == {"model": "m", "messages": request["messages"], "tools": [{}], "preset": "lossless", "max_tokens": 300}
    assert json.loads(capsys.readouterr().out) == {"actions": []}


def test_a_plan_can_be_asked_for_standard_input(proxy: FakeProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy.answer("plan", {})
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b'{"messages": []}')))
    assert main(["plan", "-"]) == 0
    assert json.loads(proxy.asked[0][4]) == {"messages": []}


@pytest.mark.parametrize(
    ("content", "said"), [("{", "it is not JSON"), ("[]", "with a list of messages"), ('{"messages": 1}', "with a list of messages")]
)
def test_a_request_that_is_none_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, said: str) -> None:
    (tmp_path / "request.json").write_text(content, encoding="utf-8")
    assert main(["plan", str(tmp_path / "request.json")]) == 1
    assert said in capsys.readouterr().err


def test_a_request_file_that_is_not_there_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", str(tmp_path / "nowhere.json")]) == 1
    assert capsys.readouterr().err.endswith("nowhere.json: No such file or directory\n")


@pytest.mark.parametrize(
    ("status", "answer", "said"),
    [
        (401, {"error": {"message": "wrong token"}}, "the proxy answered 401: wrong token; set admin.token as the proxy has it"),
        (404, {"error": {"message": "no such session"}}, "the proxy answered 404: no such session"),
        (500, b"<html>", "the proxy answered 500: no reason was given"),
        (500, b"[]", "the proxy answered 500: no reason was given"),
        (200, b"<html>", "not JSON; is it ctxproxy?"),
    ],
)
def test_a_refusal_is_one_clear_sentence(proxy: FakeProxy, capsys: pytest.CaptureFixture[str], status: int, answer: object, said: str) -> None:
    proxy.answer("stats", answer, status=status)
    assert main(["stats"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("ctxproxy: ")
    assert said in line
    assert "adm" not in line.replace("admin", "")


@pytest.mark.parametrize("answer", [[], {"data": 1}, {}])
def test_a_list_that_is_none_is_told(proxy: FakeProxy, capsys: pytest.CaptureFixture[str], answer: object) -> None:
    proxy.answer("models", answer)
    assert main(["models"]) == 1
    assert "something that is no list" in capsys.readouterr().err


def test_no_proxy_is_one_clear_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    port = server.server_address[1]
    server.server_close()
    assert main(["stats", "--url", f"http://127.0.0.1:{port}"]) == 1
    assert (
        capsys.readouterr().err
        == f"ctxproxy: no proxy listens at http://127.0.0.1:{port}; start one with `ctxproxy serve`, or say where it is with --url\n"
    )


@pytest.mark.parametrize(("url", "said"), [("ftp://x", "expected http://host:port"), ("http://host.invalid", "cannot be reached")])
def test_a_wrong_address_is_told(capsys: pytest.CaptureFixture[str], url: str, said: str) -> None:
    assert main(["stats", "--url", url]) == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(("host", "address"), [("::", "http://[::1]:"), ("192.0.2.1", "http://192.0.2.1:")])
def test_the_address_is_the_one_that_is_listened_at(tmp_path: Path, host: str, address: str) -> None:
    from ctxproxy.cli.admin_client import _address  # noqa: PLC0415
    from ctxproxy.config.schema import Listen  # noqa: PLC0415

    assert _address(Listen(host=host, port=5)) == f"{address}5"


def test_serve_hands_the_settings_over_with_its_flags_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[tuple[Settings, Holder]] = []
    import ctxproxy  # noqa: PLC0415

    monkeypatch.setattr(ctxproxy, "serving", SimpleNamespace(serve=lambda *given: served.append(given) or 3), raising=False)
    monkeypatch.setitem(sys.modules, "ctxproxy.serving", ctxproxy.serving)  # type: ignore[attr-defined]
    (tmp_path / "own.yaml").write_text("listen: {port: 1, host: a}", encoding="utf-8")
    words = ["serve", "--config", str(tmp_path / "own.yaml"), "--port", "0", "--upstream", "demo", "--workers", "1", "--log-level", "debug"]
    assert main(words) == 3
    ((settings, holder),) = served
    assert holder.current() is settings
    assert (settings.listen.host, settings.listen.port, settings.upstream.base_url, settings.log.level) == ("a", 0, "demo", "debug")
    assert settings.origin == tmp_path / "own.yaml"
    assert settings.overrides["upstream.base_url"] == "demo"


def test_serve_stops_at_a_wrong_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "own.yaml").write_text("listen: {port: x}", encoding="utf-8")
    assert main(["serve", "--config", str(tmp_path / "own.yaml")]) == 1
    assert "listen.port: expected whole number" in capsys.readouterr().err


def test_check_prints_what_is_in_force(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "own.yaml"
    path.write_text("admin: {token: sesame}", encoding="utf-8")
    assert main(["check", "--config", str(path)]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"# valid: {path}\n")
    assert "sesame" not in out


def test_check_fails_for_a_wrong_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "own.yaml"
    path.write_text("admin: {tokn: sesame}", encoding="utf-8")
    assert main(["check", "--config", str(path)]) == 1
    assert "did you mean admin.token?" in capsys.readouterr().err


def migrating(folder: Path, capsys: pytest.CaptureFixture[str], url: str = "sqlite:///s.db") -> tuple[int, str, str]:
    path = folder / "config.yaml"
    path.write_text(f"data_dir: {folder}\nstore: {{url: '{url}'}}\n", encoding="utf-8")
    status = main(["migrate", "--config", str(path)])
    said = capsys.readouterr()
    return status, said.out.replace(str(folder), ""), said.err


def test_migrating_brings_a_store_to_the_newest_schema(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    newest = len(migrations())
    assert migrating(tmp_path, capsys) == (0, f"sqlite:////s.db has schema version {newest} now, and was made\n", "")
    assert migrating(tmp_path, capsys) == (0, f"sqlite:////s.db has schema version {newest} already\n", "")
    older = tmp_path / "older.db"
    with contextlib.closing(sqlite3.connect(older)) as connection:
        for statement in (*migrations()[0].statements, f"PRAGMA application_id = {APPLICATION_ID}", "PRAGMA user_version = 1"):
            connection.execute(statement)
        connection.commit()
    assert migrating(tmp_path, capsys, "sqlite:///older.db") == (0, f"sqlite:////older.db has schema version {newest} now, 1 before\n", "")
    assert migrating(tmp_path, capsys, "memory://") == (0, "memory:// keeps nothing on disk: there is nothing to migrate\n", "")


def test_migrating_says_what_is_wrong_with_a_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.db").write_bytes(b"no database" * 500)
    status, out, err = migrating(tmp_path, capsys)
    assert (status, "and was made" in out) == (1, True)
    assert "was damaged (the file does not begin as a database does); it was set aside as s.db.corrupt-" in err
    with contextlib.closing(sqlite3.connect(tmp_path / "s.db")) as connection:
        connection.execute(f"PRAGMA user_version = {len(migrations()) + 1}")
    status, out, err = migrating(tmp_path, capsys)
    assert (status, out, "use a newer ctxproxy" in err) == (1, "", True)


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"ctxproxy {__version__}\n"


@pytest.mark.parametrize("words", [[], ["nope"], ["sessions"], ["serve", "--port", "x"], ["plan"]])
def test_wrong_usage_ends_with_status_2(words: list[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(words)


def test_the_help_names_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    out = capsys.readouterr().out
    assert [verb for verb in VERBS if f"  {verb} " not in out] == []


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_its_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main([verb, "--help"])
    assert f"usage: ctxproxy {verb}" in capsys.readouterr().out


@pytest.mark.parametrize(("raised", "status"), [(KeyboardInterrupt(), 130)])
def test_an_interrupt_ends_quietly(monkeypatch: pytest.MonkeyPatch, raised: BaseException, status: int) -> None:
    def interrupted(_: object) -> int:
        raise raised

    monkeypatch.setattr("ctxproxy.cli.check.run", interrupted)
    assert main(["check"]) == status
