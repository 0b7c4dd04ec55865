from __future__ import annotations

from pathlib import Path

import pytest

from ctxproxy.config.describe import rows
from ctxproxy.config.environment import expand, path_of, variable_of
from ctxproxy.config.load import load
from ctxproxy.config.schema import Settings, as_tree
from ctxproxy.errors import ConfigError


def from_environment(tmp_path: Path, environ: dict[str, str], text: str = "") -> Settings:
    path = tmp_path / "config.yaml"
    path.write_text(text, encoding="utf-8")
    return load(path, environ, {})


@pytest.mark.parametrize(
    ("text", "environ", "expanded"),
    [
        ("plain", {}, "plain"),
        ("${A}", {"A": "1"}, "1"),
        ("${A}", {"A": ""}, ""),
        ("x${A}y${B:-2}", {"A": "1"}, "x1y2"),
        ("${A:-}", {}, ""),
        ("${A:-d}", {"A": ""}, "d"),
        ("${A:-http://h:1/v1}", {}, "http://h:1/v1"),
        ("$A $$ {A}", {"A": "1"}, "$A $$ {A}"),
        ("$${A}", {"A": "1"}, "${A}"),
        ("${A}", {"A": "${B}"}, "${B}"),
    ],
)
def test_references_are_filled_in(text: str, environ: dict[str, str], expanded: str) -> None:
    assert expand(text, environ) == expanded


@pytest.mark.parametrize(("text", "said"), [("${A}", "A is not set"), ("${}", "write"), ("${A", "write"), ("${1}", "write"), ("${A-b}", "write")])
def test_wrong_references_say_what_would_be_right(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        expand(text, {})


def test_a_missing_variable_is_told_with_the_key_that_wants_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"models\[0\]\.match: the environment variable NAME is not set"):
        from_environment(tmp_path, {}, "models: [{match: '${NAME}'}]")


@pytest.mark.parametrize("row", [row for row in rows() if "[]" not in row.path], ids=lambda row: row.path)
def test_every_key_has_a_variable_that_leads_back_to_it(tmp_path: Path, row: object) -> None:
    path, default = row.path, row.default  # type: ignore[attr-defined]
    assert path_of(variable_of(path)) == path
    settings = from_environment(tmp_path, {variable_of(path): "" if path.endswith(("api_key", "token")) else default})
    assert as_tree(settings) == as_tree(Settings())


@pytest.mark.parametrize(
    ("name", "value", "read"),
    [
        ("CONTEXT__MAX_TOKENS", "8000", lambda s: s.context.max_tokens == 8000),
        ("CONTEXT__MAX_TOKENS", "auto", lambda s: s.context.max_tokens == "auto"),
        ("CONTEXT__MAX_TURNS", "", lambda s: s.context.max_turns is None),
        ("CONTEXT__PRESET", "off", lambda s: s.context.preset == "off"),
        ("CONTEXT__OBSERVE", "true", lambda s: s.context.observe is True),
        ("CONTEXT__PIPELINE", "[{stage: drop_oldest}]", lambda s: s.context.pipeline == ({"stage": "drop_oldest"},)),
        ("CONTEXT", "{max_turns: 3, target: 0.5}", lambda s: (s.context.max_turns, s.context.target) == (3, 0.5)),
        ("DATA_DIR", "elsewhere", lambda s: s.data_dir == "elsewhere"),
        ("DATA_DIR", "2024", lambda s: s.data_dir == "2024"),
        ("UPSTREAM__BASE_URL", "http://h:1/v1", lambda s: s.upstream.base_url == "http://h:1/v1"),
        ("UPSTREAM__BASE_URL", "'http://h:1/v1'", lambda s: s.upstream.base_url == "http://h:1/v1"),
        ("MODELS", "[{match: a, window: 9}]", lambda s: s.models[0].window == 9),
        ("PROFILES__SMALL__MAX_TOKENS", "300", lambda s: s.profiles["small"].max_tokens == 300),
        ("PROFILES", "{small: {max_tokens: 300}}", lambda s: s.profiles["small"].max_tokens == 300),
        ("MEMORY__PRELOAD__CHUNKS", "0", lambda s: s.memory.preload.chunks == 0),
        ("ADMIN__TOKEN", "12345", lambda s: s.admin.token == "12345"),
        ("ADMIN__TOKEN", "a#b:'c", lambda s: s.admin.token == "a#b:'c"),
        ("SUMMARIZER__API_KEY", "", lambda s: s.summarizer.api_key is None),
        ("SUMMARIZER__MODEL", "[1", lambda s: s.summarizer.model == "[1"),
        ("SUMMARIZER__MODEL", "1.5", lambda s: s.summarizer.model == "1.5"),
    ],
)
def test_variables_are_read_as_their_key_wants_them(tmp_path: Path, name: str, value: str, read: object) -> None:
    assert read(from_environment(tmp_path, {f"CTXPROXY_{name}": value}))  # type: ignore[operator]


def test_a_key_goes_before_its_section(tmp_path: Path) -> None:
    environ = {"CTXPROXY_CONTEXT__MAX_TURNS": "4", "CTXPROXY_CONTEXT": "{max_turns: 3, max_tokens: 9}"}
    context = from_environment(tmp_path, environ).context
    assert (context.max_turns, context.max_tokens) == (4, 9)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("CTXPROXY_CONTEXT_MAX_TOKENS", "did you mean CTXPROXY_CONTEXT__MAX_TOKENS?"),
        ("CTXPROXY_LISTEN__PROT", "did you mean CTXPROXY_LISTEN__PORT?"),
        ("CTXPROXY_LISTEN__PORT__X", "did you mean CTXPROXY_LISTEN__PORT?"),
        ("CTXPROXY_ZZZZ", "settings are named CTXPROXY_<SECTION>__<KEY>"),
        ("CTXPROXY_", "there is no such setting"),
    ],
)
def test_a_variable_that_names_no_setting_stops_the_start(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        from_environment(tmp_path, {name: "a-value"})
    assert caught.value.message.startswith(f"{name}: there is no such setting; ")
    assert said in caught.value.message
    assert "a-value" not in caught.value.message


def test_variables_that_the_file_refers_to_are_no_settings(tmp_path: Path) -> None:
    settings = from_environment(tmp_path, {"CTXPROXY_MY_KEY": "k", "CTXPROXY_TEST_SERVICES": "required"}, "upstream: {api_key: '${CTXPROXY_MY_KEY}'}")
    assert settings.upstream.api_key == "k"


def test_credentials_come_from_the_environment_by_default_and_the_file_goes_before(tmp_path: Path) -> None:
    environ = {"OPENAI_API_KEY": "sk-1", "CTXPROXY_ADMIN_TOKEN": "adm"}
    settings = from_environment(tmp_path, environ)
    assert (settings.upstream.api_key, settings.admin.token) == ("sk-1", "adm")
    settings = from_environment(tmp_path, environ, "admin: {token: ''}")
    assert (settings.upstream.api_key, settings.admin.token) == ("sk-1", "")


@pytest.mark.parametrize(("port", "key"), [("9000", "9000"), ("0", "true"), ("1", "a: b")])
def test_what_is_expanded_is_text_unless_the_key_wants_something_else(tmp_path: Path, port: str, key: str) -> None:
    text = "listen: {port: '${P}'}\nsummarizer: {model: '${K}'}"
    settings = from_environment(tmp_path, {"P": port, "K": key}, text)
    assert (settings.listen.port, settings.summarizer.model) == (int(port), key)


def test_lists_and_sections_can_be_expanded(tmp_path: Path) -> None:
    settings = from_environment(tmp_path, {"M": "[{match: a}]", "C": "{max_turns: 2}"}, "models: ${M}\ncontext: ${C}")
    assert (settings.models[0].match, settings.context.max_turns) == ("a", 2)


def test_a_section_that_is_no_yaml_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"context: line 1: .*from CTXPROXY_CONTEXT"):
        from_environment(tmp_path, {"CTXPROXY_CONTEXT": "[1"})
