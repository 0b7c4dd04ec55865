from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxproxy.core.urls import DEMO_ORIGIN, check_base_url, join_url
from ctxproxy.errors import ConfigError

CHAT = "/v1/chat/completions"

JOINED = [
    # with and without /v1, on either side
    ("https://api.openai.com/v1", CHAT, "https://api.openai.com/v1/chat/completions"),
    ("https://api.openai.com/v1/", CHAT, "https://api.openai.com/v1/chat/completions"),
    ("https://api.openai.com", CHAT, "https://api.openai.com/v1/chat/completions"),
    ("https://api.openai.com/", CHAT, "https://api.openai.com/v1/chat/completions"),
    ("https://api.openai.com/v1", "/chat/completions", "https://api.openai.com/v1/chat/completions"),
    ("https://api.openai.com", "/chat/completions", "https://api.openai.com/v1/chat/completions"),
    ("https://api.openai.com", "chat/completions", "https://api.openai.com/v1/chat/completions"),
    ("  http://127.0.0.1:8000/v1  ", CHAT, "http://127.0.0.1:8000/v1/chat/completions"),
    ("HTTP://[::1]:8000", CHAT, "HTTP://[::1]:8000/v1/chat/completions"),
    # a prefix of the upstream is kept
    ("https://host/api/openai/v1", CHAT, "https://host/api/openai/v1/chat/completions"),
    ("https://host/api/openai", CHAT, "https://host/api/openai/v1/chat/completions"),
    ("https://host/api/openai/", "/chat/completions", "https://host/api/openai/v1/chat/completions"),
    ("https://host/a%2Fb//c/v1", CHAT, "https://host/a%2Fb//c/v1/chat/completions"),
    ("https://host/vault/v1x", CHAT, "https://host/vault/v1x/v1/chat/completions"),
    # a version of its own
    ("https://host/api/paas/v4/", CHAT, "https://host/api/paas/v4/chat/completions"),
    ("https://host/v1beta/openai/", CHAT, "https://host/v1beta/openai/chat/completions"),
    ("https://host/v1/account/gateway/openai", CHAT, "https://host/v1/account/gateway/openai/chat/completions"),
    # only a whole segment at the front is a version
    ("https://h/v1", "/v1", "https://h/v1"),
    ("https://h/v1", "/v1/", "https://h/v1/"),
    ("https://h/v1", "", "https://h/v1"),
    ("https://h/v1", "/", "https://h/v1/"),
    ("https://h/v1", "/v10/x", "https://h/v1/v10/x"),
    ("https://h/v1", "/v1beta/x", "https://h/v1/v1beta/x"),
    ("https://h/v1", "/V1/x", "https://h/v1/V1/x"),
    ("https://h/v1", "/v1/v1/x", "https://h/v1/v1/x"),
    ("https://h/v1", "/x/v1/y", "https://h/v1/x/v1/y"),
    # path bytes
    ("https://h/v1", "/v1/files/a%2Fb/../c;d=1/%E4%BD%A0", "https://h/v1/files/a%2Fb/../c;d=1/%E4%BD%A0"),
    ("https://h/v1", "/v1//models", "https://h/v1//models"),
    # query bytes
    ("https://h/v1", "/v1/models?limit=2&after=a%20b+c&&x", "https://h/v1/models?limit=2&after=a%20b+c&&x"),
    ("https://h/v1", "/v1?x=/v1/y?z", "https://h/v1?x=/v1/y?z"),
    ("https://h/v1", "/v1/models?", "https://h/v1/models?"),
    ("https://h/p?api-version=1", "/v1/models", "https://h/p/v1/models?api-version=1"),
    ("https://h/p/v1/?api-version=1", "/v1/models?x=2", "https://h/p/v1/models?api-version=1&x=2"),
    ("https://h/p?api-version=1", "/v1/models?", "https://h/p/v1/models?api-version=1"),
    # user and password stay: they are the upstream's
    ("https://me:secret@h/v1", "/v1/models", "https://me:secret@h/v1/models"),
    ("demo", CHAT, f"{DEMO_ORIGIN}/v1/chat/completions"),
    (" demo ", "/models?a=1", f"{DEMO_ORIGIN}/v1/models?a=1"),
]


@pytest.mark.parametrize(("base", "path", "url"), JOINED)
def test_a_base_and_a_path_give_one_url(base: str, path: str, url: str) -> None:
    assert join_url(base, path) == url


@pytest.mark.parametrize(
    ("base", "hint"),
    [
        ("", "http://"),
        ("api.openai.com/v1", "http://"),
        ("ftp://h/v1", "http://"),
        ("http://", "http://"),
        ("http:///v1", "http://"),
        ("http://h:0/v1", "http://"),
        ("http://h:99999/v1", "Port"),
        ("http://h:abc/v1", "Port"),
        ("http://[::1/v1", "IPv6"),
        ("http://h/v1#x", "#"),
        ("http://h/a b/v1", "blank"),
        ("https://h/v1/chat/completions", "leave /chat/completions away"),
        ("https://h/v1/models/", "leave /models away"),
        ("demos", "http://"),
    ],
)
def test_a_wrong_base_is_refused_with_what_would_be_right(base: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(hint)) as caught:
        check_base_url(base)
    assert "https://api.openai.com/v1" in caught.value.message
    assert caught.value.param == "upstream.base_url"


def test_a_password_is_not_shown_in_the_error() -> None:
    with pytest.raises(ConfigError) as caught:
        check_base_url("https://me:hunter2@host/v1#x")
    assert "hunter2" not in caught.value.message


SEGMENTS = st.lists(st.text("abcz09-._~%", min_size=1, max_size=5), max_size=4)
QUERIES = st.one_of(st.just(""), st.text("ab=&%?/+", max_size=9).map(lambda q: "?" + q))


@given(prefix=SEGMENTS, path=SEGMENTS, query=QUERIES)
def test_v1_comes_out_once_wherever_it_stands(prefix: list[str], path: list[str], query: str) -> None:
    base = "https://host" + "".join("/" + s for s in prefix)
    rest = "".join("/" + s for s in path)
    expected = f"{base}/v1{rest}{query}"
    for one in (base + "/v1", base + "/v1/", base, base + "/"):
        for other in ("/v1" + rest, rest):
            assert join_url(one, other + query) == expected
