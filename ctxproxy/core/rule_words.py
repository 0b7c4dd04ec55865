"""The words in which English states rules, limits and lasting preferences, and what only looks like one.

All patterns are for one lower-cased sentence. An order needs its place ("never push", not "I never went there"); what cheers
somebody up ("never give up", "stay safe") is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple


class Words(NamedTuple):
    """A pattern, and words of which one stands in all that it finds: looking for these is cheaper."""

    pattern: re.Pattern[str]
    cues: tuple[str, ...]

    def found(self, low: str) -> bool:
        return any_of(self.cues, low) and self.pattern.search(low) is not None

    def places(self, low: str) -> Iterable[re.Match[str]]:
        return self.pattern.finditer(low) if any_of(self.cues, low) else ()


def words(pattern: str, cues: str) -> Words:
    """A pattern with its cues, which are parted by bars."""
    return Words(re.compile(pattern), tuple(cues.split("|")))


def any_of(cues: Iterable[str], low: str) -> bool:
    """Whether one of them is in a text."""
    for cue in cues:  # noqa: SIM110  a generator would cost more than what it looks at
        if cue in low:
            return True
    return False


RULE_ID = words(
    r"\b(?:rule|req|requirement|policy|constraint|guideline|rules)(?:[-_ #:]{1,2}\d|:)",
    "rule|req|policy|constraint|guideline",
)
CHEER = (
    "(?:worry|forget(?! to (?:add|run|use|include|update|write|check|send|cc|sign|test|keep|ask|log|call|pin|always|never|put|mark|set|close"
    "|commit|back))|give up|get me wrong|be (?:daunted|afraid|scared|shy|sad|hard|too|discouraged|so|sorry)|know|think|let (?:it|that|this|them"
    "|anyone|anything|fear|yourself)|sweat|you|mention|even|stress|beat|feel|lose|miss|look back|see|get it|understand|hesitate|mind|care|seem"
    r"|recall|want|like|love|have|need|believe|really|remember|put too much|say)\b"
)
"""What is said to cheer somebody up, or of oneself."""
ADVERB = words(
    r"\b(?:never(?! (?:give|know|knew|mind|been|had|have i|have you|thought|heard|seen|too late|gets?|fails?|ends?|felt|let (?:it|that|go|them"
    "|anyone|short)|forget|stop (?:learning|dreaming|believing|being)|looked|imagined|a (?:dull|bad)|as|so|quite|really|even|once|mean|say never"
    r"|again rely)\b)|always(?! (?:good|great|nice|fun|an?|by|here|there|been|had|happy|glad|wonderful|loved?|so|was|were|is|are|has|wanted|room"
    r"|hope|next|welcome|remember you|believe|something|someone|up for|filled|true|\w+ing|stay true|worth)\b)|only (?:use|in|with|if|when|after"
    r"|reply|answer|ever|change|write|edit|touch|work|speak|call|commit|deploy))\b",
    "never|always|only",
)
BEFORE_ADVERB = re.compile(
    r"(?:^[\W\d_]{0,6}|[,;:.!(–—>•*|\x22“]\s?|\b(?:please|also|then|you|and|but|we|should|must|shall|kindly|just|so|you to|remember to|sure to"
    r"|are to|want it to|code|tests?|files?|folder|table|branch|database|replies|answers)\s)$"
)
"""What may stand before "never": nothing, a mark, a word that leaves it an order ("you never", not "I never")."""
ORDER = words(
    rf"\b(?:(?:do not|don['’]t)(?! {CHEER}"
    ")|avoid|make sure|be sure (?:to|that)|ensure|refrain from|under (?:no|any|all) circumstances|on no account|not under any circumstances"
    "|use only|(?:from (?:now|here) on|going forward)(?! i)|strictly no|stop (?:using|calling|adding|doing|writing|asking|suggesting|sending"
    r"|making|explaining|apologi[sz]ing|repeating))\b",
    "do not|don't|don’t|avoid|make sure|be sure|ensure|refrain|under |no account|use only|from now|from here|forward|strictly|stop ",
)
BEFORE_ORDER = re.compile(
    r"(?:^[\W\d_]{0,6}|[,;:.!(–—>•*|\x22“]\s?|\b(?:please|also|then|and|but|should|must|shall|kindly|just|so|now|you to|remember to|sure to|are to"
    r"|always|but please)\s)$"
)
BEFORE_CHARS = 12
ANYWHERE = words(
    r"\b(?:off[- ]limits|out of the question|at all times|without exception|no exceptions|hands off)\b",
    "limits|question|all times|exception|hands off",
)
OPENING_ORDER = words(
    r"[\W\d_]{0,6}(?:please |and |but |also |so |now |then )?(?:use (?!case|of\b)|stick to|only(?! (?:yesterday|time|because|then|then|a (?:few"
    r"|bit|little)|had|saw|just)\b)|no (?=[a-z])(?!one\b|way|problem|worr|doubt|idea|matter|need|longer|pressure|rush|kidding|big deal|luck|wonder"
    r"|thanks|thank|more than ever|i\b|it\b|that\b|we\b|but\b|not\b)|leave (?!me alone|it at that)|limit |cap |stay (?:in(?! touch| the loop)"
    r"|within|on|under|below|away|out|with|at|inside|polite|formal|concise|brief|short)\b|keep (?!it up|up\b|going|in touch|in mind|\w+ing\b|on\b"
    "|your (?:head|chin)|me (?:posted|updated|in the loop)|believing|at it|an eye|smil|those|dream)|(?:answer|reply|respond|speak"
    r"|talk)(?: [^\s,.]+){0,5} (?:in|with|as|using|to me|briefly)\b|call me (?!back|when|later|tomorrow|if|at|on|now)|treat |write (?:all|every"
    r"|any|each|your|in)\b|remember(?:: ?| that(?! (?:time|when|day|one|first|we\b|you['’]?|how|guy|girl|it))| to (?:always|never|use|keep|not"
    "|only|run|add|check|write|include|send|ask|call))|nothing (?:over|above|under|below|more|after|before)|whenever you )",
    "use |stick to|only|no |leave|limit |cap |stay |keep |answer|reply|respond|speak|talk|call me|treat |write |remember|nothing|whenever",
)
"""What is an order only at the beginning of a sentence."""
DUTY = words(
    r"(?<!\ba )(?<!\bbe )(?<!\bthey )\bmust(?:n['’]t\b| not\b| never\b|\b(?![-–]|[.,!?]|$| (?:have (?:been|\w+ed|had|gone|done|made|seen|felt)"
    r"|be (?:so|a|hard|nice|great|proud|tough|really|very|exciting|fun|amazing|frustrating)|say|admit|confess|feel|miss|see|really|love|enjoy)\b))"
    r"|(?:\b(?:is|are|be|stays?)|['’]s) (?:\w+ly )?(?:not allowed|forbidden|prohibited|required|mandatory|capped|taboo|never to|not to)"
    r"|\b(?:not allowed|not permitted|may not|may only|you (?:can['’]?t|cannot|can not|can only)|no one (?:may|can)|should(?:n['’]t| not| never"
    r"| always)|shall(?! we| i)|(?<!\bi )(?<!\bwe )(?<!['’]ll )(?<!just )(?<!you )(?:has|have|needs?) to (?:be|stay|have|keep|use|fit|contain|end"
    "|start|go) |(?:answers?|replies|reply|output|code|responses?|results?|text|reports?|summary|comments?|tests?|names?|everything|all of it"
    "|messages?|documentation|functions?) (?:should|needs? to|has to|have to) |(?:not|n['’]t|cannot|never|no) exceed|not (?:go|be|get|cost|spend"
    r"|take) (?:over|above|beyond|more than|longer than)|at (?:the (?:very )?)?(?:most|least),? (?:[$€£¥\d]|one|two|three|four|five|six|seven"
    r"|eight|nine|ten|a hundred|an? (?:hour|day|week|month|year)\b)|no (?:more|less|fewer|later|earlier|longer|bigger|larger) than|not (?:more"
    r"|less|fewer|later|earlier) than (?=\W?\w*\d)|(?:maximum|minimum|limit|cap|ceiling) (?:of|is|to|at) |(?:max|min)\.? (?:of )?\d|(?:maximum"
    r"|minimum|max|limit|cap)\s?[:=]|limited to|capped at|up to [$€£¥\d]|(?:under|below|within|beneath) [$€£¥]\s?\d|[$€£¥]\s?\d[\d,.]* (?:max"
    r"|maximum|at most|or less|tops)|budget(?=.{0,40}\d)|\d.{0,20} budget|(?:within|over|exceed|stay (?:in|on)|stick to|under) (?:the |my |our "
    r"|a )?budget|deadline.{0,30}(?:\d|day\b|tomorrow|tonight|noon|midnight|end of|week|month)|at the latest|spending limit|price limit|(?:it is"
    r"|it['’]s) (?:important|essential|crucial|vital|imperative|critical) (?:that (?!people)|you\b|for you to|to (?:always|never|use|keep|not"
    r"|only)\b)|constraint (?:is|that)|by no means|in no case|i (?:want|need) you to (?:use|keep|always|never|only|not|answer|reply|respond|write"
    "|speak|treat|avoid|stick|stay))",
    "must|allowed|forbidden|prohibited|required|mandatory|capped|taboo|never to|not to|permitted|may not|may only|you can|no one|should|shall"
    "|has to|have to|need to|needs to|exceed|over|above|beyond|than|at most|at least|at the |maximum|minimum|limit|cap|ceiling|max|min|up to"
    "|under|below|within|beneath|budget|deadline|latest|$|€|£|¥|price|important|essential|crucial|vital|imperative|critical|constraint"
    "|by no means|in no case|you to ",
)
PREFERRED = words(
    r"\b(?:(?:i|we|she|he|my \w+) (?:strongly |really |much |would |always |generally |usually )?prefers?\b(?! not to say)|preferably"
    r"|i['’]d rather (?!not say)|i would rather|i (?:really |absolutely )?(?:hate|dislike|detest|can['’]t stand)|allerg(?:y|ic) to|\w+ allergy"
    r"|(?:gluten|lactose|nut)[- ](?:free|intoleran\w+)|celiac|(?:i['’]?m|i am|is|are) (?:an? )?(?:strict )?(?:vegetarian|vegan|pescatarian"
    "|lactose intolerant)|i (?:always|never|only|don['’]t|do not|can['’]t|cannot) (?:eat|drink|fly|use|take|travel|work|drive|write|want (?:any"
    r"|you)|read)\b)",
    "prefer|i'd rather|i’d rather|i would rather|hate|dislike|detest|stand|allerg|gluten|lactose|nut|celiac|vegetarian|vegan|pescatarian|i always"
    "|i never|i only|i don|i do not|i can't|i can’t|i cannot",
)
EASING = words(
    r"\b(?:(?:do(?:es)?(?:n['’]t| not)|did(?:n['’]t| not)|never) (?:have|need) to|need(?:n['’]t| not)|no need (?:to|for)|don['’]t (?:worry|you\b"
    "|mention)|must have been|must['’]ve|is no longer|are no longer|no longer (?:applies|apply|need|required)|not (?:required|mandatory"
    r"|forbidden)|wish i|used to|would never have|as if)\b|\bdon['’]t forget to (?:have|rest|enjoy|take)",
    "have to|need|don't|don’t|must|no longer|not required|not mandatory|not forbidden|wish i|used to|would never|as if",
)
"""What takes the force out of it: "you don't have to"."""
POLITE = words(
    r"\b(?:can|could|would|will) you (?:please |kindly )?(?:always|never|only|not\b|make sure|avoid|stop|keep|ensure|refrain|stick)|(?:from now on"
    "|going forward)",
    "can you|could you|would you|will you|from now|forward",
)
"""A question that is an order all the same."""
LIST_HEADING = words(
    r"\b(?:rules|requirements|constraints|guidelines|conventions|restrictions|preferences|policies|conditions|limits|instructions|principles"
    r"|(?:keep|bear) in mind|please (?:note|remember|observe|follow)|follow(?:ing)? (?:these|this)|remember)\b[^.!?]{0,60}[:：]\s*$",
    "rules|requirements|constraints|guidelines|conventions|restrictions|preferences|policies|conditions|limits|instructions|principles|in mind"
    "|please |follow|remember",
)
"""Above a list of rules."""
ENGLISH = (RULE_ID, ADVERB, ORDER, OPENING_ORDER, ANYWHERE, DUTY, PREFERRED, POLITE, LIST_HEADING)
CUES = tuple(dict.fromkeys(cue for one in ENGLISH for cue in one.cues))
"""One of these is in every sentence that is a rule, or heads a list of some."""
