"""No credential reaches a repr, an error or the output of `check`."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxproxy.config.explain import explain
from ctxproxy.config.load import read
from ctxproxy.errors import ConfigError

SECRET = "sk-very-secret"
SET = {
    "upstream": f"upstream: {{api_key: {SECRET}, base_url: 'http://user:{SECRET}@host/v1'}}",
    "route": f"upstream: {{routes: [{{match: a, api_key: {SECRET}}}]}}",
    "summarizer": f"summarizer: {{api_key: {SECRET}, base_url: 'http://u:{SECRET}@host'}}",
    "admin": f"admin: {{token: {SECRET}}}",
    "expanded": "admin: {token: '${NAME}'}",
}
WRONG = {
    "blank": f"admin: {{token: '{SECRET} x'}}",
    "line end": f'upstream: {{api_key: "{SECRET}\\n"}}',
    "list": f"upstream: {{api_key: [{SECRET}]}}",
    "in the wrong key": "listen: {port: '${NAME}'}",
    "in a section's place": "listen: '${NAME}'",
    "in a list's place": "models: '${NAME}'",
    "twice": f"admin: {{token: {SECRET}, token: {SECRET}}}",
    "broken": f"admin: {{token: '{SECRET}",
    "tag": f"admin: {{token: !x {SECRET}}}",
    "taken for the address": f"upstream: {{base_url: {SECRET}}}",
    "address": f"upstream: {{base_url: 'ftp://u:{SECRET}@host'}}",
    "beside another fault": f"admin: {{token: {SECRET}, x: 1}}",
}


@pytest.mark.parametrize("text", SET.values(), ids=SET)
def test_settings_do_not_show_their_secrets(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text, encoding="utf-8")
    loaded = read(path, {"NAME": SECRET}, {})
    settings = loaded.settings
    shown = [
        repr(settings),
        repr(loaded),
        str(settings.upstream),
        repr(settings.upstream.routes),
        repr(settings.summarizer),
        repr(settings.admin),
        explain(loaded),
    ]
    assert [text for text in shown if SECRET in text] == []
    assert "********" in explain(loaded)


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_errors_do_not_show_secrets(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        read(path, {"NAME": SECRET}, {})
    assert SECRET not in caught.value.message


def test_no_secret_shows_nothing_masked(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("", encoding="utf-8")
    assert "***" not in explain(read(path, {}, {}))
