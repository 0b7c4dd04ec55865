"""The words in which people take a rule back, give it another value, or say that a text is to be kept or matters little.

All patterns are for one lower-cased sentence; the group that matched holds what it is about.
"""

from __future__ import annotations

import re

from ctxproxy.core.rule_words import words

NOUN = (
    "(?:rules?|limits?|restrictions?|requirements?|constraints?|budget|deadline|preferences?|ban|cap|instructions?|policy|condition"
    "|what i (?:said|told|wrote|asked))"
)
NOUN_ZH = "(?:规则|限制|要求|规定|约束|预算|期限|截止|上限|下限|禁令|偏好|说的|说过|话|那条|这条|那一条|这一条)"
OFF = words(
    r"(?:^|[.,;:!]\s*|\b(?:please|can|may|just|now|so|and|let['’]s|we|to|i)\s)"
    r"(?:forget|ignore|disregard|drop|scrap|cancel|lift|remove|never mind|void|revoke|withdraw|take back|skip)"
    rf" (?P<a>(?:about |all |the |my |that |this |any |every )*(?:[\w'’-]+ ){{0,4}}{NOUN}\b.*)"
    r"|(?:^|[.,;:!]\s*)(?:please )?forget about (?P<b>.+)"
    rf"|^(?P<c>.*\b(?:rule|req|policy|requirement|constraint)[- #]?\d+|.*\b{NOUN}\b.*) (?:is|are|has been|have been) (?:now )?"
    r"(?:off\b|void|cancelled|canceled|lifted|gone|history|obsolete|dropped|withdrawn|revoked|no longer)"
    r"|^(?P<d>.+?) (?:no longer (?:applies|apply|holds?|counts?|matters?)|(?:does|do) ?n[o'’]t apply any ?(?:more|longer)"
    r"|(?:is|are) no longer (?:a rule|required|needed|necessary|forbidden|prohibited|off[- ]limits|in force|valid|mandatory|important|taboo|banned))"
    r"|there(?:['’]s| is) no (?:longer a |longer any |more )?(?P<e>budget|deadline|limit)\b(?:.* (?:any ?more|any longer|now))",
    "forget|ignore|disregard|drop|scrap|cancel|lift|remove|never mind|void|revoke|withdraw|take back|skip| off|gone|history|obsolete|no longer"
    "|apply|there is no|there's no|there’s no",
)
OFF_ZH = words(
    rf"(?:取消|废除|撤销|解除|去掉|忘掉|忘了|忽略|不用管|别管|无视|收回|不用理会)(?P<a>.*{NOUN_ZH}.*)"
    rf"|^(?P<b>.*{NOUN_ZH}.*?)(?:作废|取消|不再适用|失效|不算了|不作数|解除|不再有效|不用遵守)"
    r"|没有(?P<c>预算|期限|字数)(?:的)?(?:限制)?了|^(?P<d>.+)不限了",
    "取消|废除|撤销|解除|去掉|忘|忽略|别管|无视|收回|理会|作废|不再|失效|不算|不作数|不用|没有|不限",
)
NEEDLESS_ZH = words(
    "(?:不用|不必|不需要|无需|用不着)再(?P<a>.+)|不再需要(?P<b>.+)|(?:不用|不必)(?P<c>[^，。！了]{2,})了",
    "不用|不必|不需要|无需|用不着|不再需要",
)
ALLOWED = words(
    r"\b(?:you|we) (?:may|can|are (?:now )?allowed to)(?! only) (?:now )(?!only)(?P<a>.+)|\b(?:you|we) (?:may|can"
    r"|are allowed to)(?! only) (?!now )(?P<b>.+?) (?:now|again|after all|from now on)\b|(?:from now on|going forward),? you (?:may"
    r"|can)(?! only) (?P<c>.+)|^(?P<d>.+) (?:is|are) (?:now )?(?:allowed|permitted|fine|ok|okay) (?:now|again|after all)\b|^(?P<e>.+) (?:is"
    r"|are) now (?:allowed|permitted|fine|ok|okay)\b",
    "you may|you can|we may|we can|you are|we are|allowed|permitted| fine| ok | okay",
)
ALLOWED_ZH = words(
    "(?:现在|以后|从现在起|今后)(?:你)?(?:又)?可以(?!只|仅)(?P<a>.+)|可以(?!只|仅)(?P<b>[^，。]+)了|(?:现在)?允许(?P<c>[^，。]+)了",
    "可以|允许",
)
NEEDLESS = words(
    r"\byou (?:don['’]t|do not|needn['’]t|no longer) (?:(?:have|need) to )?(?P<a>.+?)(?: (?:any ?more|any longer|now|from now on)\b|(?=[.!]*$))"
    r"|\bno need to (?P<b>.+?) (?:any ?more|any longer|now|from now on)\b",
    "you don|you do not|needn|no longer|no need",
)
STOPPED = words(
    r"(?:^|[.,;:!]\s*|\b(?:please|now|and|so)\s)stop (?P<a>\w+ing .+)",
    "stop ",
)
NEEDLESS_SURE = re.compile(r"\b(?:have|need) to\b|\bno longer\b|\bneedn|\bany ?more\b|\bany longer\b|\bno need\b")
EVERYTHING = re.compile(
    r"\b(?:forget|ignore|disregard|drop|scrap|cancel|lift) (?:all|every|everything)\b.{0,40}\b(?:rules|limits|constraints|restrictions"
    "|requirements|i (?:have )?(?:said|told|asked))|(?:忘掉|忽略|取消|废除|撤销)(?:我)?(?:之前|以前|前面|刚才)?(?:我)?(?:说的|的|定的"
    "|提的)?(?:所有|全部|一切)(?:的)?(?:规则|要求|限制|规定)"
)
NEGATED = re.compile(
    r"\b(?:don['’]t|do not|never|not to|must not|mustn['’]t|cannot|can['’]t)\s+(?:ever |just )?(?:forget|ignore|disregard|drop|scrap|cancel|lift"
    "|remove|skip|stop)|(?:不要|别|不能|不得|不许|禁止|切勿|请勿|千万别|不可)(?:随便|擅自)?(?:取消|废除|撤销|解除|去掉|忘|忽略|无视)"
)
""""Never forget the rule about …"."""
CHANGE = re.compile(
    r"\b(?:now|from now on|instead|change[ds]? (?:to|my mind|the|it)|switch(?:ed)?(?: over)? to|rais(?:e|ed)|increas(?:e|ed)|lower(?:ed)?"
    "|reduc(?:e|ed)|actually|rather than|new (?:budget|limit|deadline|rule)|updat(?:e|ed)|no longer|going forward|starting (?:today|tomorrow|now)"
    r"|correction|extended|cut to|moved to)\b|改成|改为|改用|改到|换成|调整为|调整到|提高到|增加到|涨到|降到|降低到|减到|放宽到|延长到|推迟到"
    "|提前到|现在|从现在|从今|以后|今后|更正|新的?(?:预算|上限|期限|规则)|更新为"
)
STRONG_CHANGE = words(
    r"\b(?:(?:is|are) now|change[ds]? .{0,40}to|switch(?:ed)?(?: over)? to|rais(?:e|ed) .{0,40}to|increas(?:e|ed) .{0,40}to|lower(?:ed)? .{0,40}to"
    r"|reduc(?:e|ed) .{0,40}to|extended to|moved to)\b|改成|改为|改用|改到|换成|调整为|调整到|提高到|增加到|降到|降低到|减到|放宽到|延长到|推迟到"
    "|提前到|更新为",
    "is now|are now|change|switch|raise|increase|lower|reduce|extended to|moved to|改成|改为|改用|改到|换成|调整|提高到|增加到|涨到|降到|降低到"
    "|减到|放宽到|延长到|推迟到|提前到|更新为",
)
"""Makes a sentence a rule if it gives an earlier one another value."""
KEEP_THIS = words(
    "(?:and |but |so |ok,? )?(?:please )?(?:always )?(?:remember|memori[sz]e|note|keep in mind|bear in mind|don['’]t forget)(?: (?:this|that|it"
    r"|these|the above|all (?:of )?(?:this|that)|everything above))?(?: (?:well|for later|please|forever|carefully|for good))*(?:, please)?\W*"
    "|(?:这(?:一)?[点条个些](?:很重要)?[，,])?(?:请|请你|一定要|务必|千万要)?(?:记住|牢记|记下来?|记好)(?:这(?:一)?[点条个些件事]{0,2}|它"
    r"|以上内容|上面的(?:话|内容))?\W*",
    "remember|memori|note|in mind|forget|记",
)
MATTERS_LITTLE = words(
    "(?:but |and |ok,? |by the way,? |btw,? |actually,? |oh,? )*(?:(?:all )?(?:of )?(?:this|that|it|the above|what i (?:just )?(?:said|wrote)"
    "|my last message)(?: (?:part|bit|message|one))?(?:['’]s not|(?: is| was)(?:n['’]t| not))(?: (?:really|so|that|very|at all))?(?: important"
    "| relevant)(?: at all)?|(?:this|that|it) (?:is|was) unimportant|(?:this|that|it) does(?:n['’]t| not) (?:really )?matter(?: at all)?"
    "|not important|unimportant|never ?mind(?: that| this| it)?|(?:please |you can |just )*(?:ignore|forget|disregard) (?:this|that|it"
    "|my last message|what i just (?:said|wrote))(?: message| one| part)?|no need to (?:remember|keep) (?:this|that|it)|you (?:don['’]t"
    r"|do not) (?:have|need) to (?:remember|keep) (?:this|that|it))(?: anyway| though| for now| then)?\W*|(?:其实|不过|另外"
    "|顺便说一句)?[，,]?(?:这|这个|这点|这一点|这条|这些|那个?|那点|上面的?|上一条|刚才(?:说的|那个|那句|那条)?|以上)?(?:内容|消息|话|部分)?(?:都"
    "|也|并|其实)?(?:不(?:太|是很|怎么|是特别)?重要|无关紧要|无所谓|不用(?:记|管|理会)(?:住|它)?|不必(?:记|理会)(?:住|它)?|可以忽略|忽略(?:即可"
    r"|就好|就行)?)[了吧]?\W*",
    "important|matter|relevant|ignore|forget|disregard|never mind|nevermind|no need to|need to remember|have to remember|need to keep"
    "|have to keep|重要|紧要|无所谓|忽略|不用|不必",
)
LITTLE_OPENING = re.compile(
    "(?:by the way,? |btw,? )?(?:(?:this|it|that)(?:['’]s| is) (?:really )?not (?:really |very |that )?important|not important|unimportant"
    r"|this does(?:n['’]t| not) (?:really )?matter)\s?[:;,]\s?(?!how|what|that|whether|if|to\b)|(?:顺便说一句[，,])?(?:这|这个|这点"
    "|下面的?)(?:不(?:太|是很)?重要|无关紧要|无所谓)[，,：:]|不重要[：:]"
)
REMARKS = (KEEP_THIS, MATTERS_LITTLE, STRONG_CHANGE, OFF, OFF_ZH, NEEDLESS_ZH, ALLOWED, ALLOWED_ZH, NEEDLESS, STOPPED)
REMARK_CUES = tuple(dict.fromkeys(cue for one in REMARKS for cue in one.cues))
"""One of these is in every sentence that takes back, changes, keeps or belittles something."""
