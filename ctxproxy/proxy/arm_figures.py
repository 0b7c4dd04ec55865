"""What the arms of an experiment achieve, side by side (001-74): counted since the program's start, read back for `GET stats`."""

from __future__ import annotations

from ctxproxy.config.schema import Experiment
from ctxproxy.proxy.attempt import Refused
from ctxproxy.proxy.metrics import Metrics
from ctxproxy.proxy.rescue import Got


def count_answer(metrics: Metrics, arm: str, got: Got) -> None:
    """Count a request that the upstream answered or refused, if an arm chose its policy."""
    if not arm:
        return
    metrics.arm_requests.labels(arm, "refused" if isinstance(got.result, Refused) else "answered").inc()
    metrics.arm_tokens_in.labels(arm).inc(got.plan.tokens_in)
    metrics.arm_tokens_sent.labels(arm).inc(got.plan.tokens_sent)
    metrics.arm_compactions.labels(arm).inc(int(got.plan.compacts))
    if got.overflow:
        metrics.arm_overflows.labels(arm, got.overflow).inc()


def count_unanswered(metrics: Metrics, arm: str) -> None:
    """Count a request to which nothing came, if an arm chose its policy."""
    if arm:
        metrics.arm_requests.labels(arm, "unanswered").inc()


def figures(metrics: Metrics, experiment: Experiment) -> dict[str, object]:
    """The experiment and the figures of each of its arms; shares are of what their names say."""
    return {
        "name": experiment.name,
        "since": "start",
        "arms": [{"arm": arm.profile, "share": arm.share, **_of(metrics, arm.profile)} for arm in experiment.arms],
    }


def _of(metrics: Metrics, arm: str) -> dict[str, object]:
    answered, refused, unanswered = (_sum(metrics, "requests", arm, outcome=outcome) for outcome in ("answered", "refused", "unanswered"))
    rescued, gave_up = (_sum(metrics, "overflows", arm, result=result) for result in ("rescued", "gave_up"))
    requests, overflows = answered + refused + unanswered, rescued + gave_up
    tokens_in, tokens_sent = _sum(metrics, "tokens_in", arm), _sum(metrics, "tokens_sent", arm)
    return {
        "requests": requests,
        "failed": refused + unanswered,
        "failed_of_requests": _part(refused + unanswered, requests),
        "tokens_in": tokens_in,
        "tokens_sent": tokens_sent,
        "saved_of_tokens_in": _part(tokens_in - tokens_sent, tokens_in),
        "compactions": _sum(metrics, "compactions", arm),
        "compactions_of_requests": _part(_sum(metrics, "compactions", arm), requests),
        "overflows": overflows,
        "rescued": rescued,
        "rescued_of_overflows": _part(rescued, overflows),
    }


def _sum(metrics: Metrics, name: str, arm: str, **labels: str) -> int:
    return int(metrics.registry.get_sample_value(f"ctxproxy_arm_{name}_total", {"arm": arm, **labels}) or 0)


def _part(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0
