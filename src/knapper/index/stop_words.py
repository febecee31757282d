"""Know the words of a query that carry no meaning beside its others, in seven languages.

Apart from the tokenizer, as what prints results needs these alone.
"""

import re
from collections.abc import Collection, Sequence
from typing import Final

_ENGLISH_WORDS: Final = """
a about after all also am an and any are aren't as at be because been before being between both but by can can't
cannot could couldn't did didn't do does doesn't doing don't during each either else ever for from had has hasn't
have haven't having he he's her here hers him his how how's i i'd i'll i'm i've if in into is isn't it it's its just
let's me might mine more most must my neither no nor not of off on onto or other our ours out over she she's should
shouldn't so some such than that that's the their theirs them then there there's these they they're this those
through to too until up upon very was wasn't we we're were weren't what what's when where where's whether which
while who who's whom whose why will with within without won't would wouldn't you you're your yours
"""
_ENGLISH: Final = frozenset(_ENGLISH_WORDS.split())
_OTHERS: Final = tuple(
    frozenset(words.split())
    for words in (
        # German
        """
        aber alle allem allen aller alles als also am an auch auf aus bei beim bin bis bist da dabei damit dann das dass
        dein deine dem den denn der des dich die dies diese diesem diesen dieser dieses dir doch du durch ein eine einem
        einen einer eines er es für gegen habe haben hat hatte hier ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im in
        ins ist ja jede jedem jeden jeder jedes kann kein keine können man mein meine meinem meinen mich mir mit muss
        nach nicht noch nun nur ob oder ohne sehr sein seine seinem seinen seiner sich sie sind so soll über um und uns
        unser unsere unter vom von vor wann warum was welche welchem welchen welcher welches wem wen wenn wer werden
        wessen wie wieso wir wird wo wurde wurden zu zum zur zwischen
        """,
        # French
        """
        à afin ai ainsi alors après as au aucun aussi autre aux avant avec avez avoir avons c'est ce ceci cela celle
        celui ces cet cette ceux chez comme comment dans de depuis des dont du elle elles en encore entre es est et
        était être eu eux fait fut il ils je l la le les leur leurs lui ma mais me même mes moi mon ne ni nos notre nous
        on ont ou où par pas plus pour pourquoi qu'est quand que quel quelle quelles quels qui quoi sa sans se ses si
        son sont sous sur ta te tes toi ton très tu un une vos votre vous y
        """,
        # Spanish
        """
        a al algo algún ante antes aquel aquella así aún aunque cada como cómo con contra cual cuál cuales cuando cuándo
        de del desde donde dónde dos durante el él ella ellas ellos en entre era es esa ese eso esta está estaba están
        estas este esto estos fue ha hace hacia han hasta hay la las le les lo los más me mi mis mucho muy nada ni no
        nos nosotros nuestra nuestro o otra otro para pero poco por porque qué que quien quién se según ser si sí sin
        sobre son su sus también tan te tengo ti tiene todo todos tu tú tus un una uno unos y ya yo
        """,
        # Italian
        """
        a ad ai al alla alle allo anche avere c'è che chi ci come con contro cosa cui da dagli dai dal dalla dalle dei
        del della delle dello di dove e è ed era essere fra gli ha hai hanno ho i il in io l la le lei li lo loro lui ma
        mi mia mie miei mio ne negli nei nel nella nelle noi non nostro o per perché più quale quali quando quanto
        quella quelle quelli quello questa queste questi questo sei si sia sono sta su sua sue sugli sui sul sulla suo
        suoi ti tra tu tua tuo un una uno vi voi
        """,
        # Portuguese
        """
        a à ao aos aquela aquele aquilo as às até com como da das de dela dele depois do dos e é ela elas ele eles em
        entre era essa esse esta está este eu foi há isso isto já lhe mais mas me mesmo meu meus minha muito na nas não
        nem no nos nós nossa nosso num numa o onde os ou para pela pelas pelo pelos por porque quais qual quando que
        quem são se sem ser seu seus só sua suas também te tem tu tua tudo um uma você vocês
        """,
        # Dutch
        """
        aan al alle als ben bij daar dan dat de deze die dit door een en er ge geen had hebben heeft hem het hier hij
        hoe hun ik in is ja je kan kunnen maar me met mij mijn moet na naar niet nog nu of om omdat ons onze ook op over
        te tegen toch toen tot u uit uw van veel voor waar waarom wanneer want waren was wat we welke werd wie wij wil
        worden wordt zal ze zelf zich zij zijn zo zonder zou
        """,
    )
)
_MIN_OTHER: Final = 2
"""Words of another language than English that a query holds at least: *die* and *war* are English words, too."""
_EDGES: Final = re.compile(r"^[^\w]+|[^\w]+$")
_APOSTROPHES: Final = str.maketrans("’ʼ", "''")  # noqa: RUF001 - what people type for it


def find_stop_words(words: Sequence[str]) -> frozenset[str]:
    """Return those words of a query, as given, that carry no meaning beside its others.

    Empty where none of the others is left: *to be or not to be* asks for all of them. A word in capitals, such as *IT*,
    is a name where the others aren't in capitals.
    """
    folded_by_word = {word: fold_word(word) for word in words}
    stops = _language_of(frozenset(folded_by_word.values()))
    shouted = all(word == word.upper() for word in words)
    found = frozenset(
        word
        for word, folded in folded_by_word.items()
        if folded in stops and (shouted or len(folded) < 2 or word != word.upper())
    )
    is_content_left = any(word not in found and folded for word, folded in folded_by_word.items())
    return found if is_content_left else frozenset()


def fold_word(word: str) -> str:
    """Fold a word's case and apostrophes, and cut punctuation around it."""
    return _EDGES.sub("", word.translate(_APOSTROPHES)).casefold()


def _language_of(words: Collection[str]) -> frozenset[str]:
    """Return the stop words of the language from which most of the words are; English where no other has more."""
    counts = [(len(stops.intersection(words)), stops) for stops in _OTHERS]
    most, stops = max(counts, key=lambda one: one[0])
    return stops if most >= _MIN_OTHER and most > len(_ENGLISH.intersection(words)) else _ENGLISH
