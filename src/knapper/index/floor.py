"""Learn for a model from which cosine on a passage counts as found by its meaning.

Cosines of different models can't be compared: unrelated texts reach 0.1 with one and 0.8 with another. So each model
embeds the same short questions and passages, each pair about something else, and the floor is set above nearly all
cosines between a question and the passages that don't belong to it. It depends on the model alone and not on the vault:
notes that are all about one subject resemble each other, and would raise a floor learnt from them.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from knapper.index.arrays import np
from knapper.index.embedders.base import Embedder, EmbedderStopped
from knapper.index.store import IndexStore, floor_key

if TYPE_CHECKING:
    from numpy.typing import NDArray

DEVIATIONS: Final = 3.5
"""Standard deviations between the mean cosine of unrelated texts and the floor.

Of 3, 3.5, 4 and 4.5 this one was chosen on the half of the judged queries that chooses: at 3, a fifth of the questions
about something else find a passage; at 4, the built-in table misses half of the right passages in another language.
"""
_MAX_FLOOR: Final = 0.98
"""For a model that gives all texts nearly the same vector."""

TOPICS: Final[Sequence[tuple[str, str]]] = (
    (
        "sourdough starter",
        "Feed it flour and water twice a day until it doubles in four hours. Then knead the dough, let it "
        "rise overnight in the fridge, and bake the loaf in a hot iron pot.",
    ),
    (
        "when does the lease end and how much is the deposit",
        "The flat is rented until the end of June. The landlord holds three months' rent, which he pays back "
        "with interest once the keys are returned and the rooms were inspected.",
    ),
    (
        "black holes",
        "Nothing that falls past the horizon of a collapsed star comes back, not even light. Astronomers "
        "weigh it by the orbits of the stars around it and by the glow of the gas it swallows.",
    ),
    (
        "how to tune a guitar by ear",
        "Press the lowest string at the fifth fret and turn the peg of the next one until both sound the "
        "same. Chords ring clearly only when every string is in pitch.",
    ),
    (
        "quarterly sales report",
        "Revenue in Europe grew by eight percent, margins fell because of freight costs. The board expects "
        "twelve new customers in autumn and has approved a larger budget for marketing.",
    ),
    (
        "what helps against a migraine attack",
        "Patients should lie down in a dark, quiet room and take the tablets early. Doctors advise a diary of "
        "symptoms, regular sleep, and less caffeine and alcohol.",
    ),
    (
        "football training",
        "After the warm-up the team practised passing and corner kicks. The goalkeeper is injured, so the "
        "substitute plays on Saturday; the coach wants the defenders to stay closer to their strikers.",
    ),
    (
        "why did the roman empire fall",
        "Emperors followed each other within months, legions fought civil wars, and taxes no longer paid for "
        "the borders along the Rhine. In 476 the last ruler in the west was deposed by his own general.",
    ),
    (
        "database index",
        "The query planner chose a full table scan. Adding a key over both columns brought the statement from "
        "nine seconds to four milliseconds, at the price of slower inserts.",
    ),
    (
        "where shall we go hiking in the mountains this summer",
        "The path climbs from the lake through larch woods to a hut at 2,300 metres. Above it there is snow "
        "until July; the last bus down the valley leaves at six.",
    ),
    (
        "watercolour",
        "Wet the paper first and let the pigment run. Paint the sky with a broad brush, lift out the clouds "
        "with a sponge, and leave the white of the sheet for the brightest places.",
    ),
    (
        "how do I apply for a visa for japan",
        "The embassy wants the passport, two photographs, a flight booking and a bank statement. Tourists "
        "from some countries may stay for ninety days without asking beforehand.",
    ),
    (
        "tomato seedlings",
        "Sow in March on a warm windowsill, plant out after the last frost, and tie the stems to stakes. "
        "Water the soil and never the leaves, or blight will spread through the whole bed.",
    ),
    (
        "what did the judge decide about the contract",
        "The court held that the clause was void because the buyer had never been told of it. The defendant "
        "must return the payment and bear the costs of both lawyers.",
    ),
    (
        "bicycle chain",
        "Shift to the smallest sprocket, open the quick link with pliers and measure the wear. A stretched "
        "one ruins the cassette; afterwards clean the derailleur and put on a few drops of oil.",
    ),
    (
        "how do children learn to speak two languages",
        "Toddlers mix words of both parents at first and sort them out by the age of four. Teachers find that "
        "pupils who grow up so read a little later and switch between grammars with ease.",
    ),
    (
        "tax return",
        "Expenses for the home office, insurance and donations can be deducted if the receipts are kept. The "
        "form has to be filed by the end of July, and a refund arrives about two months later.",
    ),
    (
        "how deep can whales dive",
        "Sperm whales hunt squid a kilometre below the surface and hold their breath for an hour. Their "
        "muscles store oxygen, and their lungs collapse under the pressure of the sea.",
    ),
    (
        "wedding guests",
        "Aunt Clara sits beside the groom's parents, the musicians near the dance floor. Forty invitations "
        "are still unanswered; flowers and the cake arrive on the morning of the ceremony.",
    ),
    (
        "how does a heat pump save energy",
        "A compressor lifts warmth from the outside air to the radiators. In a well insulated house it "
        "delivers four kilowatt hours for each one of electricity, less on frosty days.",
    ),
    (
        "meditation",
        "Sit upright, close your eyes and follow the breath. When a thought appears, notice it without "
        "judging and come back; ten minutes each morning calm the mind more than an hour once a week.",
    ),
    (
        "who wrote the novel about the lighthouse keeper",
        "The author spent eleven years on her second book. Critics praised the storm scenes and the lonely "
        "narrator, and a publisher in Paris bought the rights for a translation.",
    ),
    (
        "chess opening",
        "White gives up a pawn for quick development and an attack on the king's side. Black should castle "
        "early, trade the bishops, and keep the knight on its strong square in the centre.",
    ),
    (
        "which vaccines does the dog need",
        "The vet gave the puppy an injection against rabies and distemper and a tablet for worms. In four "
        "weeks the second dose is due; until then it shouldn't meet other animals in the park.",
    ),
)
"""A question in few or many words, and a passage that answers it."""


def has_floor(store: IndexStore, embedder: Embedder) -> bool:
    """Return whether the index knows the model's floor; nothing needs one where no chunk is stored."""
    return bool(store.meta(floor_key(embedder.model_id))) or store.is_empty


def learn_floor(embedder: Embedder, *, stop: threading.Event | None = None) -> float:
    """Return the cosine below which a passage isn't found by its meaning.

    Raises:
        EmbedderError: The embedder failed.
        EmbedderStopped: *stop* was set meanwhile.
    """
    passages = embedder.passages([passage for _, passage in TOPICS], stop=stop)
    queries: list[NDArray[np.float32]] = []
    for query, _ in TOPICS:
        if stop and stop.is_set():
            raise EmbedderStopped("the embedding was stopped")
        queries.append(embedder.query(query))
    cosines = np.stack(queries) @ passages.T
    unrelated = cosines[~np.eye(len(cosines), dtype=np.bool_)]
    return min(float(unrelated.mean() + DEVIATIONS * unrelated.std()), _MAX_FLOOR)


def ensure_floor(store: IndexStore, embedder: Embedder, *, stop: threading.Event | None = None) -> None:
    """Learn and store the model's floor where the index has none yet.

    Raises:
        EmbedderError: The embedder failed.
    """
    if not has_floor(store, embedder):
        store.set_meta(floor_key(embedder.model_id), f"{learn_floor(embedder, stop=stop):.4f}", counts=False)
