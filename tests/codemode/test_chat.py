"""What a script leaves behind when a chat's model runs it."""

from knapper.tools.context import Context
from tests.agents import scripted
from tests.agents.scripted import Call, Model

NOTES = {"Garden.md": "# Garden\n\nThe fence is to be green.\n"}


def test_what_a_script_proposes_is_handed_to_the_person(context: Context) -> None:
    model = Model([[Call("run_script", {"code": "obsidian.write_note('New.md', 'text')\n1/0"})], ["It failed."]])

    events = scripted.run(scripted.chat(model), context)

    (told,) = scripted.of(events, "proposal")
    shown = told.as_dict()["proposal"]
    assert isinstance(shown, dict)
    assert scripted.done(events).proposals == [shown["id"]]
