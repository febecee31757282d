"""List tasks that change notes."""

from typing import Final

from knapper.agents.scopes import ContextScopeConfig
from knapper.agents.suite.checks import Has, Kept, Lacks, LinksWhole, Only, Order, Property, Says
from knapper.agents.suite.tasks import ALONE, Perfect, Task

GARDEN: Final = "Projects/Garden.md"
PLANTS: Final = "Projects/Plants.md"
MEETING: Final = "Meetings/2026-03-02.md"

TASKS: Final = (
    Task(
        id="tick-a-task",
        text="I bought the paint: tick that task.",
        current=GARDEN,
        perfect=Perfect(edits=((GARDEN, "replace:12", "- [x] buy paint"),)),
        checks=(
            Only((GARDEN,)),
            Has(GARDEN, "- [x] buy paint", 1),
            Kept(GARDEN, (12,)),
            Lacks(GARDEN, "- [ ] buy paint"),
        ),
    ),
    Task(
        id="add-a-task",
        text="Add a task 'oil the hinges' at the end of the list of tasks.",
        current=GARDEN,
        perfect=Perfect(edits=((GARDEN, "insert:15", "- [ ] oil the hinges"),)),
        checks=(
            Only((GARDEN,)),
            Kept(GARDEN),
            Order(GARDEN, "- [x] mend the gate", "- [ ] oil the hinges"),
            Order(GARDEN, "- [ ] oil the hinges", "## Log"),
        ),
    ),
    Task(
        id="delete-a-line",
        text="Remove the task 'weed the beds'.",
        current=GARDEN,
        perfect=Perfect(edits=((GARDEN, "delete:13", ""),)),
        checks=(Only((GARDEN,)), Lacks(GARDEN, "weed the beds"), Kept(GARDEN, (13,))),
    ),
    Task(
        id="log-at-the-end",
        text="Add to the log, as its last line: '2026-04-07: painted the fence.'",
        current=GARDEN,
        perfect=Perfect(edits=((GARDEN, "end", "2026-04-07: painted the fence."),)),
        checks=(Only((GARDEN,)), Kept(GARDEN), Order(GARDEN, "2026-03-01:", "2026-04-07: painted the fence.")),
    ),
    Task(
        id="below-a-heading",
        text="Write 'Sowing time is April.' right below the heading 'To buy'.",
        current=PLANTS,
        perfect=Perfect(edits=((PLANTS, "after:## To buy", "Sowing time is April."),)),
        checks=(
            Only((PLANTS,)),
            Kept(PLANTS),
            Order(PLANTS, "## To buy", "Sowing time"),
            Order(PLANTS, "Sowing time", "- tulips"),
        ),
    ),
    Task(
        id="at-the-start",
        text="Put the line 'Draft, don't share.' at the very beginning of the note's text, before its title.",
        current=GARDEN,
        perfect=Perfect(edits=((GARDEN, "start", "Draft, don't share."),)),
        checks=(
            Only((GARDEN,)),
            Kept(GARDEN),
            Order(GARDEN, "Draft, don't share.", "# Garden"),
            Property(GARDEN, "status", "open"),
        ),
    ),
    Task(
        id="crlf-stays",
        text="Add a point 'Ada orders roses.' to the end of the list.",
        current=MEETING,
        perfect=Perfect(edits=((MEETING, "end", "- Ada orders roses."),)),
        checks=(Only((MEETING,)), Kept(MEETING), Has(MEETING, "- Ada orders roses.\r\n")),
    ),
    Task(
        id="no-last-newline",
        text="Add a last line to this note: 'Serve hot.'",
        current="Recipes/Soup.md",
        perfect=Perfect(edits=(("Recipes/Soup.md", "end", "Serve hot."),)),
        checks=(Only(("Recipes/Soup.md",)), Kept("Recipes/Soup.md"), Has("Recipes/Soup.md", "\nServe hot.")),
    ),
    Task(
        id="inside-a-fence",
        text="Change the water in the recipe to 375 g.",
        current="Recipes/Bread.md",
        scope=ALONE,
        perfect=Perfect(edits=(("Recipes/Bread.md", "replace:5", "water 375 g"),)),
        checks=(
            Only(("Recipes/Bread.md",)),
            Has("Recipes/Bread.md", "water 375 g", 1),
            Kept("Recipes/Bread.md", (5,)),
            Has("Recipes/Bread.md", "```", 2),
        ),
    ),
    Task(
        id="table-row",
        text="Add a row for roses, which cost 30, to the table of the garden.",
        current="Budget.md",
        scope=ALONE,
        perfect=Perfect(edits=(("Budget.md", "insert:9", "| roses | 30 |"),)),
        checks=(
            Only(("Budget.md",)),
            Kept("Budget.md"),
            Order("Budget.md", "| tulips | 15 |", "roses"),
            Order("Budget.md", "roses", "## House"),
        ),
    ),
    Task(
        id="one-of-two-twins",
        text="The last line of the list repeats the first: remove only that last line.",
        current="Ideas.md",
        perfect=Perfect(edits=(("Ideas.md", "delete:5", ""),)),
        checks=(Only(("Ideas.md",)), Has("Ideas.md", "- a pond", 1), Order("Ideas.md", "- a pond", "- a bench")),
    ),
    Task(
        id="several-lines",
        text="Replace both lines of the list 'To buy' by the one line '- roses'.",
        current=PLANTS,
        scope=ALONE,
        perfect=Perfect(edits=((PLANTS, "replace:7-8", "- roses"),)),
        checks=(Only((PLANTS,)), Kept(PLANTS, (7, 8)), Has(PLANTS, "- roses"), Lacks(PLANTS, "lavender")),
    ),
    Task(
        id="text-property",
        text="Set the property status to done.",
        current=GARDEN,
        perfect=Perfect(edits=((GARDEN, "replace:2", "status: done"),)),
        checks=(Only((GARDEN,)), Property(GARDEN, "status", "done"), Kept(GARDEN, (2,))),
    ),
    Task(
        id="number-property",
        text="Add a property priority with the number 2, below status.",
        current=GARDEN,
        perfect=Perfect(edits=((GARDEN, "insert:3", "priority: 2"),)),
        checks=(Only((GARDEN,)), Property(GARDEN, "priority", 2), Kept(GARDEN)),
    ),
    Task(
        id="list-property",
        text="Add the tag summer to the tags property, as the last one; keep the comment behind it.",
        current=GARDEN,
        perfect=Perfect(edits=((GARDEN, "replace:3", "tags: [outdoors, home, summer]  # mine"),)),
        checks=(
            Only((GARDEN,)),
            Property(GARDEN, "tags", ["outdoors", "home", "summer"]),
            Kept(GARDEN, (3,)),
            Has(GARDEN, "# mine"),
        ),
    ),
    Task(
        id="text-that-looks-like-a-number",
        text="Change the phone number to 0456; it has to stay a text.",
        current="People/Ada.md",
        perfect=Perfect(edits=(("People/Ada.md", "replace:3", 'phone: "0456"'),)),
        checks=(Only(("People/Ada.md",)), Property("People/Ada.md", "phone", "0456"), Kept("People/Ada.md", (3,))),
    ),
    Task(
        id="new-note",
        text="Make a note Projects/Pond.md with the title 'Pond' that links to Garden and to Soil.",
        current=GARDEN,
        perfect=Perfect(edits=(("Projects/Pond.md", "create", "# Pond\n\nSee [[Garden]] and [[Soil]].\n"),)),
        checks=(
            Only(("Projects/Pond.md",)),
            Has("Projects/Pond.md", "# Pond"),
            Has("Projects/Pond.md", "[[Garden"),
            LinksWhole(),
        ),
    ),
    Task(
        id="two-notes",
        text="The fence becomes blue: say so here, and change 'paint' to 'blue paint' in the table of the budget.",
        current=GARDEN,
        perfect=Perfect(
            edits=(
                (GARDEN, "replace:8", "The fence is to be blue. See [[Plants]] and [[Budget#Garden]]."),
                ("Budget.md", "replace:7", "| blue paint | 40 |"),
            )
        ),
        checks=(
            Only((GARDEN, "Budget.md")),
            Has(GARDEN, "to be blue"),
            Has("Budget.md", "| blue paint |"),
            Kept(GARDEN, (8,)),
            Kept("Budget.md", (7,)),
            Has(GARDEN, "[[Budget#Garden]]"),
            LinksWhole(),
        ),
    ),
    Task(
        id="added-by-hand",
        text="Add the line 'Roses: see Plants.' at the end of the note on Ada.",
        current=GARDEN,
        scope=ALONE,
        added=("People/Ada.md",),
        perfect=Perfect(edits=(("People/Ada.md", "end", "Roses: see Plants."),)),
        checks=(Only(("People/Ada.md",)), Kept("People/Ada.md"), Has("People/Ada.md", "Roses: see Plants.")),
    ),
    Task(
        id="deep-links",
        text="Add 'Ask Miller first.' as a last line to the note on suppliers, which is linked from the soil.",
        current=PLANTS,
        scope=ContextScopeConfig(link_depth=2),
        perfect=Perfect(edits=(("People/Suppliers.md", "end", "Ask Miller first."),)),
        checks=(
            Only(("People/Suppliers.md",)),
            Kept("People/Suppliers.md"),
            Has("People/Suppliers.md", "Ask Miller first."),
        ),
    ),
    Task(
        id="nothing-to-do",
        text="Make sure that the task 'mend the gate' is ticked; change nothing if it is.",
        current=GARDEN,
        perfect=Perfect(summary="It is ticked already: 'mend the gate' is done."),
        checks=(Only(), Says(("gate",))),
    ),
)
"""Tasks that change notes."""
