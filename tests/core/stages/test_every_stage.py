import pytest
from hypothesis import given, settings, HealthCheck, strategies as st
from ctxproxy.core import stages
from ctxproxy.core.stages.base import REGISTRY
from ctxproxy.core.pipeline import run
from ctxproxy.core.pairing import alternates
from ctxproxy.core.transcript import violations, protected, untouchable
from tests.core import histories as h
S=settings(max_examples=300,deadline=None,suppress_health_check=list(HealthCheck))
MINE=["superseded_results","duplicate_results","compact_tool_results","media_to_notes","compact_messages","drop_oldest","shrink_newest","aggressive_trim","clear"]
@pytest.mark.parametrize("name",MINE)
@S
@given(t=h.transcripts(), frac=st.sampled_from([0,0.2,0.5]), lang=st.sampled_from(["en","zh"]))
def test_laws(name,t,frac,lang):
    stage=REGISTRY[name]()
    c=h.context(int(t.tokens*frac),language=lang)
    o=run(t,[stage],c)
    assert not o.failed
    a=[e.message for e in t.entries]; b=[e.message for e in o.transcript.entries]
    if not violations(a): assert not violations(b)
    if alternates(a): assert alternates(b)
    if a[0].role=="user": assert b[0].role=="user"
    assert o.transcript.tokens<=t.tokens
    for i in untouchable(t): assert t.entries[i].message.raw in [m.raw for m in b]
    assert b[-1].role==a[-1].role
    again=run(o.transcript,[stage],c)
    assert [e.message.raw for e in again.transcript.entries]==[m.raw for m in b], again.actions
    assert run(t,[stage],c)==o
    for e in o.transcript.entries:
        assert e.tokens==h.count(e.message)
