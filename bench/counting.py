"""How fast tokens are counted, in megabytes a second of processor time, and what a short text costs.

    python -m bench.counting [encoding]

Rows: what counts here (with the extra `fast`: toktok, and tiktoken for texts where that may differ), tiktoken alone, and of the libraries that were
looked at those that are installed. Texts: messages of the shared quality conversations, in pieces of 4,000 characters, each counted once, since
every one of these libraries remembers words.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Callable, Iterator

from ctxproxy.tokenizers.fast import may_differ
from ctxproxy.tokenizers.open import library, load_reference, open_tokenizer
from tests.shared_dir import shared

Count = Callable[[str], int]
TEXTS = {"English": ("locomo",), "code": ("swe",), "Chinese": ("zhmem", "zhkd")}
PIECE_CHARS, MOST_PIECES = 4000, 500
SHORT_CHARS = (20, 250, 1000)


def strings(value: object) -> Iterator[str]:
    """All strings in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from strings(inner)


def pieces(names: tuple[str, ...]) -> list[str]:
    """The messages of these files, cut."""
    files = [path for name in names for path in sorted(shared("quality/data/dev").glob(f"{name}*.jsonl"))]
    lines = (json.loads(line)["messages"] for path in files for line in path.read_text(encoding="utf-8").splitlines())
    text = "\n".join(one for messages in lines for one in strings(messages))
    return [text[at : at + PIECE_CHARS] for at in range(0, len(text), PIECE_CHARS)][:MOST_PIECES]


def counters(encoding: str) -> Iterator[tuple[str, Count]]:
    """What can count here, by name."""
    yield f"ctxproxy with {library()}", open_tokenizer(encoding).count
    reference = load_reference(encoding)
    yield reference.library, reference.count
    for name, make in {"quicktok count": quicktok, "bpe-openai encode": bpe_openai}.items():
        try:
            yield name, make(encoding)
        except ImportError:
            continue


def quicktok(encoding: str) -> Count:
    """Needs quicktok-v1."""
    count: Count = importlib.import_module("quicktok").get_encoding(encoding).count
    return count


def bpe_openai(encoding: str) -> Count:
    """Needs bpe-openai."""
    encode = importlib.import_module("bpe_openai").get_encoding(encoding).encode_ordinary
    return lambda text: len(encode(text))


def seconds(count: Count, texts: list[str]) -> float:
    """Processor time for all of them."""
    began = time.process_time()
    for text in texts:
        count(text)
    return time.process_time() - began


def main(encoding: str) -> None:
    """Print the table."""
    kinds = {kind: pieces(names) for kind, names in TEXTS.items()}
    short = {size: [text[-size:] for text in kinds["code"]] for size in SHORT_CHARS}
    for kind, texts in kinds.items():
        print(f"{kind}: {sum(len(text.encode()) for text in texts) / 1e6:.1f} MB, {sum(map(may_differ, texts))} of {len(texts)} pieces for tiktoken")
    print(f"{encoding:34}" + "".join(f"{kind + ' MB/s':>14}" for kind in kinds) + "".join(f"{size:>6} chars us" for size in SHORT_CHARS))
    for name, count in counters(encoding):
        speeds = [sum(len(text.encode()) for text in texts) / seconds(count, texts) / 1e6 for texts in kinds.values()]
        costs = [seconds(count, texts) / len(texts) * 1e6 for texts in short.values()]
        print(f"{name:34}" + "".join(f"{speed:14.1f}" for speed in speeds) + "".join(f"{cost:15.1f}" for cost in costs))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "o200k_base")
