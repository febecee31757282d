"""Runs: what waits for what, what is blocked, and what much depends on."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knapper.agents.runs import planning
from knapper.agents.runs.model import RunNode
from knapper.agents.runs.planning import PlanPart, TaskPlan
from knapper.errors import BadInput


def node(own: str, hard: tuple[str, ...] = (), soft: tuple[str, ...] = (), **more: object) -> RunNode:
    return replace(RunNode(id=own, task=own, hard=hard, soft=soft), **more)


@pytest.mark.parametrize(
    "needs", [{"a": ["a"]}, {"a": ["b"], "b": ["a"]}, {"a": ["b"], "b": ["c"], "c": ["a"], "d": []}]
)
def test_a_plan_whose_parts_wait_for_each_other_is_refused(needs: dict[str, list[str]]) -> None:
    with pytest.raises(BadInput, match="wait for each other") as caught:
        planning.check_dependencies(needs)

    assert caught.value.code == "plan_cycle"


def test_a_plan_whose_part_waits_for_what_is_not_there_is_refused() -> None:
    with pytest.raises(BadInput, match="'x', which isn't a part"):
        planning.check_dependencies({"a": ["x"]})


def test_soft_cycles_are_refused_as_well() -> None:
    parts = [PlanPart(id="a", title="", task="a", uses=["b"]), PlanPart(id="b", title="", task="b", needs=["a"])]

    with pytest.raises(BadInput, match="wait for each other"):
        planning.check_plan(TaskPlan(parts=parts), 8)


@pytest.mark.parametrize(("count", "most"), [(1, 8), (9, 8), (4, 3)])
def test_a_plan_of_too_few_or_too_many_parts_is_refused(count: int, most: int) -> None:
    parts = [PlanPart(id=str(number), title="", task="t") for number in range(count)]

    with pytest.raises(BadInput, match=f"has {count} parts"):
        planning.check_plan(TaskPlan(parts=parts), most)


def test_two_parts_of_one_id_are_refused() -> None:
    with pytest.raises(BadInput, match="same id"):
        planning.check_plan(
            TaskPlan(parts=[PlanPart(id="a", title="", task="a"), PlanPart(id="a", title="", task="b")]), 8
        )


def test_parts_become_children_with_ids_that_show_where_they_lie() -> None:
    made = TaskPlan(
        parts=[PlanPart(id="x", title="X", task="x"), PlanPart(id="y", title="Y", task="y", needs=["x"], uses=["x"])]
    )
    parent = node("2", depth=1)

    grown, children = planning.make_child_nodes(parent, made)

    assert grown.children == ("2.1", "2.2")
    assert [child.depth for child in children] == [2, 2]
    assert children[1].hard == ("2.1",)
    assert children[1].soft == ()
    assert children[0].parent == "2"


def test_hard_needs_want_an_answer_and_soft_ones_an_end() -> None:
    failed = node("a", state="failed")
    wants, likes, waits = node("b", hard=("a",)), node("c", soft=("a",)), node("d", soft=("e",))
    going = node("e", state="running")

    assert planning.list_ready_nodes([failed, wants, likes, waits, going]) == [likes]
    assert [one.id for one, _ in planning.list_blocked_nodes([failed, wants, likes, waits, going])] == ["b"]


def test_half_an_answer_is_one_to_build_on() -> None:
    assert planning.list_ready_nodes([node("a", state="partial"), node("b", hard=("a",))])


def test_much_depends_on_what_half_of_the_others_need_or_the_plan_marks() -> None:
    needs = {"a": [], "b": ["a"], "c": ["b"], "d": [], "e": []}

    assert planning.is_high_impact("a", "none", 1, needs)
    assert not planning.is_high_impact("b", "none", 1, needs)
    assert planning.is_high_impact("e", "security", 1, needs)
    assert not planning.is_high_impact("e", "security", 2, needs)
    assert not planning.is_high_impact("a", "none", 2, needs)


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=20))
def test_whatever_is_accepted_can_be_done_to_its_end(edges: list[tuple[int, int]]) -> None:
    needs = {str(number): [str(to) for of, to in edges if of == number] for number in range(8)}
    try:
        planning.check_dependencies(needs)
    except BadInput:
        return
    nodes = {one: node(one, hard=tuple(others)) for one, others in needs.items()}

    for _ in range(8):
        for one in planning.list_ready_nodes(list(nodes.values())):
            nodes[one.id] = node(one.id, hard=one.hard, state="done")

    assert all(one.state == "done" for one in nodes.values())
