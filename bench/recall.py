"""How many planted facts a prompt still holds, word for word, after 1 and after 10 generations of compaction. Run: python -m bench.recall

Own conversations, English and Chinese, full of small facts (names, numbers, ids, dates, paths, decisions), go through the core request by
request; nothing is sent anywhere. The summarizer is the extractive one, or a stand-in for a model: the best sentences of what it is given
by tf-idf, as long as the call allows. Tokens are estimated as in the core's tests. A fact counts if its exact value stands in the prompt;
a generation is a decision in which something was summarized or dropped.
"""

from __future__ import annotations

import argparse
import math
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ctxproxy.core.messages import Message, text_of
from ctxproxy.core.policy import Policy, SummarizerPolicy
from ctxproxy.core.records import Summary
from ctxproxy.core.sentences import split
from ctxproxy.core.situation import Situation
from ctxproxy.core.stages.base import REGISTRY
from ctxproxy.core.summaries import Draft, Need, complete, requests, verify
from ctxproxy.proxy.summary_desk import need_of
from tests.core.chains import Chain
from tests.core.histories import assistant, call, count_text, result, user

GENERATIONS = (1, 10)
WINDOW_TOKENS = 128_000
LIMIT = 4000
SUMMARY_TOKENS = 300
TURNS = 400
SEEDS = 3
KINDS = ("name", "number", "id", "date", "path", "decision")
FIRST = ("Anna", "Boris", "Clara", "Dmitri", "Elena", "Farid", "Greta", "Hassan", "Ines", "Jonas", "Keiko", "Lars", "Mira", "Nils", "Olga", "Pavel")
LAST = (
    "Abel",
    "Brandt",
    "Castro",
    "Duran",
    "Engel",
    "Fischer",
    "Gomez",
    "Hale",
    "Ibsen",
    "Jansen",
    "Kovac",
    "Lindt",
    "Moreau",
    "Novak",
    "Orlov",
    "Petit",
)
SURNAMES_ZH, GIVEN_ZH = "赵钱孙李周吴郑王冯陈褚卫蒋沈韩杨", "明华强丽军敏静伟芳磊洋艳勇杰娟涛"
TOPICS = ("billing", "search", "export", "login", "upload", "report", "invoice", "backup", "chat", "calendar", "map", "mail")
TOPICS_ZH = ("计费", "搜索", "导出", "登录", "上传", "报表", "发票", "备份", "聊天", "日历", "地图", "邮件")
TOOLS = ("Redis", "Kafka", "SQLite", "Postgres", "Celery", "Nginx", "Vue", "React", "Rust", "Go", "gRPC", "GraphQL")
SAID = {
    "name": "{value} looks after the {topic} part.",
    "number": "The {topic} job handled {value} rows last night.",
    "id": "The {topic} ticket is {value}.",
    "date": "The {topic} review is on {value}.",
    "path": "The {topic} code is in {value}.",
    "decision": "For {topic} we decided on {value}.",
}
SAID_ZH = {
    "name": "{topic}这块由{value}负责。",
    "number": "昨晚{topic}任务处理了{value}行。",
    "id": "{topic}的工单号是{value}。",
    "date": "{topic}评审定在{value}。",
    "path": "{topic}的代码在{value}。",
    "decision": "{topic}我们决定用{value}。",
}
TALK = (
    "I had a look at it and it seems fine so far.",
    "Let us go on with the next part then.",
    "It is a bit slower than I thought it would be.",
    "We spoke about that in the hallway as well.",
    "The page loads and the list shows up as it should.",
    "There is not much to say about it at the moment.",
)
TALK_ZH = (
    "我看了一下，目前没什么问题。",
    "那我们继续下一部分吧。",
    "比我想的要慢一点。",
    "我们在走廊里也聊过这个。",
    "页面能打开，列表也正常显示。",
    "目前没有太多要说的。",
)
WORDS = re.compile("[a-z0-9][a-z0-9_./-]*|[\u3400-\u9fff]")


@dataclass(frozen=True)
class Fact:
    """A planted value, what kind it is, and the index of the message that holds it."""

    value: str
    kind: str
    at: int


class Teller:
    """Tells one conversation; the same seed and language tell the same."""

    def __init__(self, seed: int, *, zh: bool) -> None:
        self.draw = random.Random(f"{seed}-{zh}")  # noqa: S311  nothing here is secret
        self.zh = zh
        self.messages: list[Message] = []
        self.facts: list[Fact] = []
        self.number = 1000

    def value(self, kind: str) -> str:
        """A value that no other fact has."""
        draw = self.draw
        self.number += draw.randint(1, 40)
        tag = f"{draw.choice('BCDFGHKMPRTW')}{draw.choice('BCDFGHKMPRTW')}-{self.number}"
        if kind == "name":
            chinese = draw.choice(SURNAMES_ZH) + draw.choice(GIVEN_ZH) + draw.choice(GIVEN_ZH)
            return chinese if self.zh else f"{draw.choice(FIRST)} {draw.choice('ABCDEFGHKLMNPRSTW')}. {draw.choice(LAST)}"
        if kind == "date":
            return f"20{draw.randint(24, 39)}-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}"
        if kind == "path":
            return f"src/{draw.choice(TOPICS)}/{draw.choice(TOPICS)}_{self.number}.py"
        if kind == "decision":
            return f"{draw.choice(TOOLS)} {self.number % 9 + 1}.{self.number}"
        return tag if kind == "id" else f"{self.number * 7919 % 900_000 + 100_000}"

    def fact(self) -> str:
        kind = self.draw.choice(KINDS)
        value = self.value(kind)
        if any(value == known.value for known in self.facts):
            return self.talk(1)
        self.facts.append(Fact(value, kind, len(self.messages)))
        form = (SAID_ZH if self.zh else SAID)[kind]
        return form.format(value=value, topic=self.draw.choice(TOPICS_ZH if self.zh else TOPICS))

    def talk(self, sentences: int) -> str:
        return ("" if self.zh else " ").join(self.draw.choices(TALK_ZH if self.zh else TALK, k=sentences))

    def text(self, chance: float) -> str:
        return self.talk(self.draw.randint(1, 4)) + ("" if self.zh else " ") + (self.fact() if self.draw.random() < chance else self.talk(1))

    def tell(self, turns: int) -> None:
        for turn in range(turns):
            self.messages.append(user(self.text(0.4)))
            if self.draw.random() < 0.3:
                name = f"c{turn}"
                self.messages.append(call(name, path=f"{self.draw.choice(TOPICS)}.log"))
                self.messages.append(result(name, "\n".join(self.text(0.1) for _ in range(6))))
            self.messages.append(assistant(self.text(0.4)))
        self.messages.append(user(self.talk(1)))


def best_sentences(text: str, most_tokens: int) -> str:
    """A plain summarizer: the sentences whose words are rare in the text, in their order, as many as fit."""
    sentences = list(dict.fromkeys(split(text)))
    bags = [Counter(WORDS.findall(sentence.lower())) for sentence in sentences]
    seen = Counter(word for bag in bags for word in bag)
    scores = [sum(n * math.log((len(bags) + 1) / (seen[word] + 0.5)) for word, n in bag.items()) / math.sqrt(sum(bag.values()) + 8) for bag in bags]
    kept: list[int] = []
    for at in sorted(range(len(sentences)), key=lambda at: (-scores[at], at)):
        cost = count_text(sentences[at]) + 1
        if cost <= most_tokens:
            kept.append(at)
            most_tokens -= cost
    return "\n".join(sentences[at] for at in sorted(kept))


@dataclass
class Session(Chain):
    """A chain whose summaries are written: by no model, or by the stand-in for one."""

    model: bool = False

    def situation(self, history: Sequence[Message], limit: int, model: str = "m") -> Situation:
        made = super().situation(history, limit, model)
        return replace(made, summarizer="llm" if self.model else "extractive", summary_max_tokens=SUMMARY_TOKENS)

    def _deliver(self) -> None:
        for when, tip in self.due if self.model and self.steps else ():
            if when <= len(self.steps) and tip not in self.summaries:
                need = need_of(self.steps[-1].situation, tip, SummarizerPolicy(max_tokens=SUMMARY_TOKENS), WINDOW_TOKENS)
                text = written(need)
                if text:
                    self.summaries[tip] = Summary(tip, text, "llm", "stand-in", len(need.messages), count_text(text), 0.0, 1.0, 2.0)


def written(need: Need) -> str:
    """What the stand-in answers, verified and completed as a model's answer is; "" if it is refused."""
    calls = requests(need, WINDOW_TOKENS, count_text)
    draft = "\n".join(best_sentences(one.user, one.max_tokens // len(calls)) for one in calls)
    return complete(draft, need, count_text) if verify(Draft(draft), need, count_text).ok else ""


def found(session: Session, facts: Sequence[Fact]) -> Counter[tuple[str, bool]]:
    """How many of these facts stand in the last prompt, by kind."""
    text = "\n".join(text_of(message) for message in session.steps[-1].plan.messages)
    return Counter((fact.kind, fact.value in text) for fact in facts)


def measured(seed: int, *, zh: bool, model: bool, preset: str, limit: int) -> Iterator[tuple[str, Counter[tuple[str, bool]]]]:
    """The facts whose messages the first generation took out or cut, there and in the tenth; and all those that were by then."""
    teller = Teller(seed, zh=zh)
    teller.tell(TURNS)
    session = Session(Policy(preset=preset), late=2, model=model)  # type: ignore[arg-type]
    generations = 0
    early: list[Fact] = []
    for end, message in enumerate(teller.messages, 1):
        if message.role != "user":
            continue
        step = session.ask(teller.messages[:end], limit)
        if step.plan.checkpoint is None or not any(name in REGISTRY and REGISTRY[name].loss == "lossy" for name, _ in step.plan.actions):
            continue
        kept = {entry.tip for entry in step.plan.transcript.entries if entry.origin == "original"}
        gone = {at for at, tip in enumerate(step.situation.reconciled.tips) if tip not in kept}
        early = early or [fact for fact in teller.facts if fact.at in gone]
        generations += bool(early)
        if generations in GENERATIONS and early:
            yield f"first facts, generation {generations}", found(session, early)
        if generations == GENERATIONS[-1]:
            yield f"all facts, generation {generations}", found(session, [fact for fact in teller.facts if fact.at in gone])
            return


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="adaptive")
    parser.add_argument("--limit", type=int, default=LIMIT, help="tokens that a prompt's history may have")
    asked = parser.parse_args()
    print(f"{'summarizer':<12}{'language':<10}{'measured':<34}{'facts':>6}{'found':>7}  " + "".join(f"{kind:>10}" for kind in KINDS))
    for model in (False, True):
        for zh in (False, True):
            sums: dict[str, Counter[tuple[str, bool]]] = defaultdict(Counter)
            for seed in range(SEEDS):
                for what, counts in measured(seed, zh=zh, model=model, preset=asked.preset, limit=asked.limit):
                    sums[what] += counts
            for what, counts in sums.items():
                hits = sum(n for (_, there), n in counts.items() if there)
                shares = "".join(f"{counts[kind, True] / max(counts[kind, True] + counts[kind, False], 1):>10.2f}" for kind in KINDS)
                name = "stand-in" if model else "extractive"
                print(f"{name:<12}{'zh' if zh else 'en':<10}{what:<34}{counts.total():>6}{hits / max(counts.total(), 1):>7.2f}  {shares}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
