from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ctxproxy.config import checks
from ctxproxy.config.describe import rows
from ctxproxy.config.load import Loaded, load, read
from ctxproxy.config.schema import ModelEntry, Settings, as_tree
from ctxproxy.errors import ConfigError

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(text: str) -> Path:
        path = tmp_path / "config.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def refusal(path: Path, environ: dict[str, str] | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        load(path, environ or {}, {})
    return caught.value.message


def test_without_a_file_everything_has_its_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load(None, {}, {}) == Settings()


def test_a_file_in_the_current_folder_is_read_if_it_is_there(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write("listen: {port: 9}")
    monkeypatch.chdir(tmp_path)
    assert load(None, {}, {}).listen.port == 9


def test_a_file_that_was_named_must_be_there(tmp_path: Path) -> None:
    assert "no such file" in refusal(tmp_path / "nowhere.yaml")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    assert "cannot be read" in refusal(tmp_path)


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "context:\n", "context: null\nprofiles: null\nmodels: null\n", "\ufeffcontext: {}"])
def test_empty_files_and_empty_sections_mean_the_defaults(write: Write, text: str) -> None:
    path = write(text)
    assert load(path, {}, {}) == Settings(origin=path)


def test_the_command_line_goes_before_the_environment_and_that_before_the_file(write: Write) -> None:
    path = write("listen: {host: a, port: 1, max_body_mb: 1}")
    environ = {"CTXPROXY_LISTEN__HOST": "b", "CTXPROXY_LISTEN__PORT": "2"}
    listen = load(path, environ, {"listen.host": "c"}).listen
    assert (listen.host, listen.port, listen.max_body_mb, listen.workers) == ("c", 2, 1, 1)


def test_each_key_is_told_where_it_was_set(write: Write) -> None:
    path = write("listen: {host: a}\nadmin: {token: t}")
    sources = read(path, {"CTXPROXY_LISTEN__PORT": "2"}, {"log.level": "debug"}).sources
    assert sources == {"listen.host": str(path), "admin.token": str(path), "listen.port": "CTXPROXY_LISTEN__PORT", "log.level": "the command line"}


@pytest.mark.parametrize(
    "text",
    ["agent_max_context_tokens: 5\nagent_max_context_turns: 6", "context: {agent_max_context_tokens: 5, agent_max_context_turns: 6}"],
)
def test_the_old_names_of_the_limits_are_accepted(write: Write, text: str) -> None:
    context = load(write(text), {}, {}).context
    assert (context.max_tokens, context.max_turns) == (5, 6)


def test_old_names_work_in_profiles_and_in_the_environment(write: Write) -> None:
    settings = load(write("profiles: {small: {agent_max_context_tokens: 5}}"), {"CTXPROXY_AGENT_MAX_CONTEXT_TOKENS": "7"}, {})
    assert (settings.profiles["small"].max_tokens, settings.context.max_tokens) == (5, 7)


def test_a_key_under_both_names_is_refused(write: Write) -> None:
    assert "context.max_tokens: it is set twice" in refusal(write("agent_max_context_tokens: 5\ncontext: {max_tokens: 6}"))


@pytest.mark.parametrize("preset", ["off", "lossless"])
def test_off_is_a_word_and_not_false(write: Write, preset: str) -> None:
    assert load(write(f"context: {{preset: {preset}}}"), {}, {}).context.preset == preset


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("context: {max_token: 5}", "context.max_token: there is no such key; did you mean context.max_tokens?"),
        ("listen: {prot: 5}", "listen.prot: there is no such key; did you mean listen.port?"),
        ("contxt: {}", "contxt: there is no such key; did you mean context?"),
        ("pre_rot_tokens: 5", "pre_rot_tokens: there is no such key; did you mean context.pre_rot_tokens?"),
        ("log: {zzz: 5}", "log.zzz: there is no such key; known here: level, format"),
        ("profiles: {a: {max_token: 5}}", "profiles.a.max_token: there is no such key; did you mean profiles.a.max_tokens?"),
        ("models: [{match: a, windw: 5}]", "models[0].windw: there is no such key; did you mean models[0].window?"),
        ("models: [{window: 5}]", "models[0].match: it is required"),
        ("context: {preset: adptive}", "did you mean adaptive?"),
        ("listen: {port: 70000}", "listen.port: expected whole number from 0 to 65535, not 70000"),
        ("listen: {port: true}", "listen.port: expected whole number from 0 to 65535, not true"),
        ("listen: {port: 1.5}", "listen.port: expected whole number from 0 to 65535, not 1.5"),
        ("listen: 5", "listen: expected keys (host, port, workers, max_body_mb), not 5"),
        ("listen: [5]", "listen: expected keys (host, port, workers, max_body_mb), not a list"),
        ("models: {a: 5}", "models: expected a list, not keys and values"),
        ("profiles: [a]", "profiles: expected names with context keys, not a list"),
        ("profiles: {a: 5}", "profiles.a: expected keys"),
        ("summarizer: {background: yes}", "summarizer.background: expected true | false, not 'yes'"),
        ("recovery: {deadline_s: .inf}", "recovery.deadline_s: expected number above 0"),
        ("recovery: {deadline_s: .nan}", "recovery.deadline_s: expected number above 0"),
        ("sessions: {header: 'a b'}", "sessions.header: expected header name, not 'a b'"),
        ("sessions: {header: X-User-ID}", "sessions.user_header: it must be another header"),
        ("context: {max_tokens: 0}", "context.max_tokens: expected whole number from 1 | auto, not 0"),
        ("context: {target: 0.9}", "context.target: 0.9 must not be above context.compact_at, which is 0.8"),
        ("profiles: {a: {compact_at: 0.5}}", "profiles.a.target: 0.55 must not be above profiles.a.compact_at, which is 0.5"),
        ("profiles: {lossless: {}}", "profiles.lossless: a preset has this name"),
        ("upstream: {base_url: 'ftp://x'}", "upstream.base_url: 'ftp://x' cannot be an upstream"),
        ("upstream: {routes: [{match: a, base_url: x}]}", "upstream.routes[0].base_url: expected an address like"),
        ("summarizer: {kind: 'my.module:write'}", "summarizer.kind: there is no module my.module"),
        ("summarizer: {base_url: 'http://'}", "summarizer.base_url: 'http://' cannot be an upstream"),
        ("upstream: {routes: [{match: a, profile: b}]}", "upstream.routes[0].profile: there is no profile or preset 'b'; known are adaptive"),
        (
            "sessions: {profiles: [{match: 'cron-*', profile: b}]}",
            "sessions.profiles[0].profile: there is no profile or preset 'b'; known are adaptive",
        ),
        ("sessions: {profiles: [{match: 'cron-*'}]}", "sessions.profiles[0].profile: it is required"),
        ("experiment: {arms: [{profile: b, share: 50}]}", "experiment.arms[0].profile: there is no profile or preset 'b'"),
        ("experiment: {arms: [{profile: off, share: 0}]}", "experiment.arms[0].share: expected number above 0 to 100, not 0"),
        ("experiment: {arms: [{profile: off, share: 5}, {profile: off, share: 5}]}", "experiment.arms[1].profile: 'off' is an arm already"),
        ("profiles: {'a b': {}}\nexperiment: {arms: [{profile: 'a b', share: 5}]}", "experiment.arms[0].profile: an arm is named in a header"),
        (
            "experiment: {arms: [{profile: off, share: 60}, {profile: adaptive, share: 41}]}",
            "experiment.arms: the shares are percentages and add up to 101",
        ),
        ("store: {url: 'sqlite://x'}", "store.url: expected memory:// or sqlite:///path"),
        ("store: {url: 'redis://x'}", "store.url: expected memory:// or sqlite:///path"),
        ("context: {pipeline: [{stage: nope}]}", "context.pipeline: unknown stage 'nope'"),
        ("context: {pipeline: [{stage: drop_oldest, nope: 1}]}", "context.pipeline: stage drop_oldest: "),
        ("a: 1\na: 2", "line 2: the key 'a' stands there twice"),
        ("context: {a: 1, a: 2}", "line 1: the key 'a' stands there twice"),
        ("[1, 2]", "expected keys and values, not a list"),
        ("word", "expected keys and values, not a single value"),
        ("a: [1", "line 1: "),
        ("--- 1\n--- 2", "line "),
        ("a: \x07", "a character that YAML does not allow"),
        ("a: &a [*a]", "nested too deeply"),
        ("a: " + "[" * 3000 + "]" * 3000, "nested too deeply"),
        ("a: !!python/object/apply:os.getcwd []", "line 1: could not determine a constructor"),
    ],
)
def test_a_wrong_file_stops_the_start_and_says_why(write: Write, text: str, said: str) -> None:
    assert said in refusal(write(text))


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_bytes(b"\xff\xfea: 1")
    assert "not UTF-8" in refusal(path)


def test_every_fault_of_a_file_is_told_at_once_with_its_source(write: Write) -> None:
    path = write("listen: {port: x}\nlog: {level: loud}")
    lines = refusal(path, {"CTXPROXY_CONTEXT__TARGET": "2"}).splitlines()
    assert [line.split(":")[0] for line in lines] == ["listen.port", "log.level", "context.target"]
    assert lines[0].endswith(f"(from {path})")
    assert lines[2].endswith("(from CTXPROXY_CONTEXT__TARGET)")


def test_several_workers_need_a_store_that_they_can_share(write: Write) -> None:
    message = refusal(write("{listen: {workers: 2}, store: {url: 'memory://'}}"))
    assert "listen.workers: several workers cannot share memory://" in message
    assert load(write("listen: {workers: 2}"), {}, {}).listen.workers == 2


def test_the_error_names_the_first_key_as_its_parameter(write: Write) -> None:
    with pytest.raises(ConfigError) as caught:
        load(write("listen: {port: x}"), {}, {})
    assert caught.value.param == "listen.port"


@pytest.mark.parametrize(
    ("text", "feature"),
    [
        ("store: {url: 'postgresql://user:secret@host/db'}", "PostgreSQL as a store"),
    ],
)
def test_what_this_version_has_not_is_refused_and_not_ignored(write: Write, text: str, feature: str) -> None:
    message = refusal(write(text))
    assert f"not available in this version: {feature}" in message
    assert "secret" not in message


EMBEDDERS = [
    ("{kind: dense}", {"wordllama"}, "retrieval.kind: it needs the package wordllama; install it: "),
    ("{embedder: wordllama}", {"wordllama"}, "retrieval.embedder: it needs the package wordllama; install it: "),
    ("{kind: dense, embedder: upstream, embedding_model: m}", {"numpy"}, "retrieval.embedder: it needs the package numpy; install it: "),
    ("{embedder: upstream}", set(), "retrieval.embedding_model: name the model"),
    ("{kind: hybrid}", {"wordllama", "numpy"}, ""),
    ("{kind: dense}", {"numpy"}, ""),
    ("{kind: keyword, embedder: upstream}", {"numpy"}, ""),
    ("{kind: dense, embedder: upstream, embedding_model: m}", {"wordllama"}, ""),
]


@pytest.mark.parametrize(("retrieval", "missing", "told"), EMBEDDERS, ids=[f"{row[0]} without {sorted(row[1])}" for row in EMBEDDERS])
def test_an_embedder_that_is_asked_for_must_be_there(
    write: Write, monkeypatch: pytest.MonkeyPatch, retrieval: str, missing: set[str], told: str
) -> None:
    monkeypatch.setattr(checks, "find_spec", lambda name: None if name in missing else object())
    file = write(f"retrieval: {retrieval}")
    if told:
        message = refusal(file)
        assert told in message
        assert not missing or f"pip install {min(missing)}" in message
    else:
        assert load(file, {}, {}).origin


@pytest.mark.parametrize(
    "text",
    [
        "sessions: {retention_days: 30, restore_turns: all}",
        "sessions: {retention_days: null}",
        "memory: {daily_files: false, facts: false, preload: {sessions: 0, chunks: 0}}",
        "retrieval: {kind: off}",
        "commands: {enabled: false}",
        "context: {max_steps: null, report_usage: logical, recall_tool: true}",
    ],
)
def test_defaults_and_what_turns_a_missing_feature_off_are_accepted(write: Write, text: str) -> None:
    assert load(write(text), {}, {}).origin


def test_the_whole_block_of_the_interface_is_accepted(write: Write) -> None:
    everything = {row.path: row.default for row in rows() if "[]" not in row.path}
    text = "\n".join(f"  {path!r}: {default}" for path, default in everything.items())
    tree: dict[str, dict[str, object]] = {}
    for path, value in yaml.safe_load("root:\n" + text.replace(": off", ": 'off'"))["root"].items():
        node: dict[str, object] = tree  # type: ignore[assignment]
        *sections, key = path.split(".")
        for section in sections:
            node = node.setdefault(section, {})  # type: ignore[assignment]
        node[key] = value
    path = write(yaml.safe_dump(tree))
    assert as_tree(load(path, {}, {})) == as_tree(Settings())


def test_models_keep_their_order(write: Write) -> None:
    settings = load(write("models: [{match: 'a*', window: 10}, {match: '*', encoding: cl100k_base}]"), {}, {})
    assert settings.models == (ModelEntry(match="a*", window=10), ModelEntry(match="*", encoding="cl100k_base"))


NAMES = st.sampled_from(sorted({part for row in rows() for part in row.path.replace("[]", "").split(".")} | {"x", "agent_max_steps"}))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["auto", "${X}", "${", "off", "llm", "a:b"])
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=12)


@given(tree=st.dictionaries(NAMES, VALUES, max_size=5))
def test_any_file_gives_settings_or_a_configuration_error(tmp_path_factory: pytest.TempPathFactory, tree: dict[str, object]) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_text(yaml.safe_dump(tree, allow_unicode=True), encoding="utf-8")
    try:
        loaded = read(path, {"X": "1"}, {})
    except ConfigError as error:
        assert error.message
    else:
        assert isinstance(loaded, Loaded)


@pytest.mark.parametrize("zone", ["local", "UTC", "Asia/Shanghai"])
def test_a_time_zone_is_known_by_its_name(tmp_path: Path, zone: str) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(f"memory: {{timezone: {zone}}}", encoding="utf-8")
    assert load(file, {}, {}).memory.timezone == zone


@pytest.mark.parametrize("zone", ["Mars/Olympus", "../../etc/passwd", "/etc/localtime", "America", "utc+8"])
def test_a_time_zone_that_is_not_there_stops_the_start(tmp_path: Path, zone: str) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(f"memory: {{timezone: {zone}}}", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"memory\.timezone: there is no time zone"):
        load(file, {}, {})
