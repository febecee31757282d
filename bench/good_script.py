"""Compare a script that retrieves with care with a direct search that gives as many characters."""

import random
from collections.abc import Iterator, Sequence
from statistics import mean

from bench import ir
from bench.frame import Row, say
from bench.judged import Collection, note_of
from knapper.codemode.retrieval import Retriever
from knapper.codemode.tasks import Prompt, Reply, Retrieval, RetrievalOptions, RetrievalTask, Thresholds

SCRIPT = """
import math
import re
from collections import Counter

TASKS, BUDGET = __TASKS__, __BUDGET__
WORD = re.compile(r"[^\\W_]{3,}")

def words(text):
    return {word.lower()[:6] for word in WORD.findall(text)}

def passages(text):
    at, held = 0, ""
    for part in re.split(r"(?<=[.!?\\n])\\s+", text):
        place = text.find(part, at)
        if held and place + len(part) - at > 400:
            yield at, held
            at, held = place, ""
        held = text[at:place + len(part)]
    if held.strip():
        yield at, held

texts, ranks, queries = {}, Counter(), []
for task in TASKS:
    spoken = WORD.findall(task)
    asked = [task[:1500]] + [" ".join(spoken[at:at + 5]) for at in range(0, max(len(spoken) - 4, 1), 4)][:4]
    queries += asked
    for query in asked:
        weight = 4 if query == asked[0] else 1
        for place, note in enumerate(obsidian.search(query, limit=15)):
            texts[note["path"]] = note["content"]
            ranks[task, note["path"]] += weight / (place + 5)

common = Counter(word for text in texts.values() for word in words(text))
rarity = {word: math.log((len(texts) + 1) / count) for word, count in common.items()}
lists = []
for task in TASKS:
    wanted, found = words(task), []
    best = max((value for (one, _), value in ranks.items() if one == task), default=1)
    total = sum(rarity.get(word, 0) for word in wanted) or 1
    for path, text in texts.items():
        value = max(((sum(rarity.get(w, 0) for w in wanted & words(part + path)) / total, at, part)
                     for at, part in passages(text)), default=None)
        if value and (task, path) in ranks:
            found.append((ranks[task, path] / best + 0.25 * value[0], path, value[1], value[2]))
    lists.append(sorted(found, reverse=True))

context, citations, used, taken = [], [], 0, set()
for place in range(max(map(len, lists), default=0)):
    for found in lists:
        for _, path, start, part in found[place:place + 1]:
            piece = f"## {path}\\n{part.strip()}"
            if path not in taken and used + len(piece) <= BUDGET:
                taken.add(path)
                used += len(piece) + 2
                context.append(piece)
                citations.append({"path": path, "snip_start": start, "snip_end": start + len(part)})

__result__ = {"context": "\\n\\n".join(context), "citations": citations,
              "queries": queries[:20], "confidence": 0.7, "why": "passages with the task's rarest words"}
"""


def compare(collection: Collection, most: int, half: int = 1) -> Iterator[Row]:
    """Retrieve for single queries of one half, and for tasks that join two of them."""
    say(f"{collection.name}: scripts")
    rng = random.Random(f"{collection.name} scripts")
    known = sorted(query for query in collection.queries if ir.half(query) == half)
    ids = rng.sample(known, min(most, len(known)))
    pairs = [(one, rng.choice([other for other in ids if other != one])) for one in ids]
    for label, tasks in (("one question", [(one,) for one in ids]), ("two questions", pairs)):
        both = [_both(collection, task) for task in tasks]
        direct, script = ([one[way] for one in both] for way in (0, 1))
        for way, found in (("direct search", direct), ("script", script)):
            recalls = [_recall(collection, task, one) for task, one in zip(tasks, found, strict=True)]
            yield Row(
                what=f"{collection.name}, {label}: {way}, share of the relevant notes cited",
                values=[mean(recalls)],
                digits=3,
            )
        chars = [mean(len(one.context) for one in found) for found in (direct, script)]
        yield Row(what=f"{collection.name}, {label}: characters of context, direct search", values=[chars[0]], digits=0)
        yield Row(what=f"{collection.name}, {label}: characters of context, script", values=[chars[1]], digits=0)


def _both(collection: Collection, ids: Sequence[str]) -> tuple[Retrieval, Retrieval]:
    queries = [collection.queries[one] for one in ids]
    task = RetrievalTask(text=" ".join(queries), aspects=tuple(queries))
    direct = Retriever(collection.context).retrieve(task)
    script = SCRIPT.replace("__TASKS__", repr(queries)).replace("__BUDGET__", str(len(direct.context)))

    def ask(prompt: Prompt) -> Reply:
        del prompt  # the script is known
        return Reply(text=f"```python\n{script}\n```")

    options = RetrievalOptions(thresholds=Thresholds(low_score=0, low_confidence=0))
    found = Retriever(collection.context, ask=ask, options=options).retrieve(task)
    if found.tier != "script" or found.attempts[0].error:
        raise SystemExit(f"bench: the script failed: {found.attempts[0].error} {found.notes}")
    return direct, found


def _recall(collection: Collection, ids: Sequence[str], found: Retrieval) -> float:
    cited = {note_of(one.path) for one in found.citations}
    return mean(len(collection.wanted[one] & cited) / len(collection.wanted[one]) for one in ids)
