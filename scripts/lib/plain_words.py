"""Finds the sentences of comments that a reader has to guess: riddles, and sentences without a subject."""
import re

# Words that name nothing by themselves: articles, pronouns, prepositions, auxiliaries, and verbs that stand for any
# other.
EMPTY = frozenset("""
a an the this that these those it its they them their he him his she her we us our you your i me my
who whom whose whoever which what whatever where when while why how
some any each every all both either neither none no not nor nobody nothing nowhere never
one ones other others another same such else anybody anything somebody something everybody everything
somewhere anywhere
and or but if than then so as because until since unless though although
at by for from in into of off on onto out over to up with without about after again against before behind below
beyond down under upon
here there now later still yet ever even just only also too alone anew
more most much many few little less least
is are was were be been being am do does did done has have had having
can could may might must shall should will would need needs
go goes going gone went come comes came stay stays stand stands lie lies
take takes taken took give gives given gave bring brings brought
say says said tell tells told ask asks asked""".split())
RIDDLE_WORDS_MIN = 9
RIDDLE_SHARE = 0.7
HEADLESS = re.compile(r"(?:What|Whatever|Who|Whoever|Whom|Whose|That which)\b")
HEADLESS_WORDS_MIN = 6


def sentences_of(comment):
    return filter(None, (part.strip() for part in re.split(r"(?<=[.!?:;])\s+(?=[A-Z`\"(])", comment)))


def problem_of(sentence):
    """Why a sentence is not plain, or None."""
    words = [word.lower() for word in re.findall(r"[A-Za-z_']+", sentence)]
    if len(words) >= HEADLESS_WORDS_MIN and HEADLESS.match(sentence) and not sentence.endswith("?"):
        return "begins without its subject"
    if len(words) >= RIDDLE_WORDS_MIN and sum(word in EMPTY for word in words) >= RIDDLE_SHARE * len(words):
        return "names nothing"
    return None
