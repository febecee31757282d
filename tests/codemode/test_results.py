"""Hold the reading of results, and the check of citations, to what hostile scripts may put there."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as some

from knapper.codemode import evidence
from knapper.codemode.evidence import MAX_CITATIONS, MAX_CONTEXT, CheckedCitations, ReportedCitation
from knapper.errors import BadInput, NotFound
from knapper.jsontypes import JSONValue
from knapper.tools.context import Context
from knapper.vault import parser
from tests.tools.opened import Opener

NOTES = {
    "A.md": "# A\n\nFirst line.\nSecond line.\nThird line.\n",
    "Empty.md": "",
    "Properties.md": "---\nstatus: open\n---\n",
    "日本語.md": "# 柵\n\n庭の北側に柵を建てる。\n",
    "Folder/B.md": "# B\n\nText of B.\n",
    "Secret/Plan.md": "# Plan\n\nHidden.\n",
    "Clippings/Web.md": "# Web\n\nOthers wrote it.\n",
}


@pytest.fixture
def context(vault: Opener) -> Iterator[Context]:
    with vault.open("agent") as made:
        yield made


def check(context: Context, *written: ReportedCitation) -> CheckedCitations:
    def open_vault(name: str) -> Context:
        if name in {"", "main"}:
            return context
        raise NotFound(f"there is no vault '{name}'", code="no_vault")

    return evidence.check_citations(open_vault, written)


def test_a_documented_result_is_read_as_it_is() -> None:
    found = evidence.parse_result(
        {
            "context": "text",
            "citations": [{"vault": "main", "path": "A.md", "snip_start": 0, "snip_end": 2000}, {"path": "B.md"}],
            "queries": ["one", "two"],
            "signals": {"num_notes": 2, "total_chars": 40.5, "keyword_hits": 3},
            "confidence": 0.72,
            "why": "because",
        }
    )

    assert found.context == "text"
    assert found.citations == (
        ReportedCitation(path="A.md", vault="main", start=0, stop=2000),
        ReportedCitation(path="B.md"),
    )
    assert (found.queries, found.confidence, found.why, found.remarks) == (("one", "two"), 0.72, "because", ())
    assert found.signals == {"num_notes": 2, "total_chars": 40.5, "keyword_hits": 3}


def test_the_context_alone_is_enough() -> None:
    assert evidence.parse_result({"context": ""}).confidence is None


@pytest.mark.parametrize("result", [None, [], "text", 7, True, {}, {"context": None}, {"context": ["a"]}, {"x": 1}])
def test_what_is_no_result_is_refused_with_the_shape(result: JSONValue) -> None:
    with pytest.raises(BadInput) as caught:
        _ = evidence.parse_result(result)

    assert caught.value.code == "bad_result"
    assert "'context': str" in caught.value.hint


WRONG: list[dict[str, JSONValue]] = [
    {"citations": "A.md"},
    {"citations": {"path": "A.md"}},
    {"citations": [1, None, [], {"path": 7}, {"vault": "x"}, "", {"path": " "}]},
    {"queries": "one"},
    {"queries": [1, None]},
    {"signals": [1]},
    {"confidence": "high"},
    {"confidence": True},
    {"confidence": 10**400},
    {"why": 7},
]


@pytest.mark.parametrize("more", WRONG, ids=repr)
def test_what_is_of_a_wrong_type_is_left_out_and_said(more: dict[str, JSONValue]) -> None:
    found = evidence.parse_result({"context": "text", **more})

    assert (found.citations, found.queries, found.signals, found.confidence, found.why) == ((), (), {}, None, "")
    assert len(found.remarks) == 1


@pytest.mark.parametrize(("said", "taken"), [(-3, 0.0), (1.0001, 1.0), (0, 0.0), (1, 1.0), (5e300, 1.0)])
def test_confidence_is_brought_between_0_and_1(said: float, taken: float) -> None:
    assert evidence.parse_result({"context": "", "confidence": said}).confidence == taken


def test_huge_results_are_cut_and_it_is_said() -> None:
    many: list[JSONValue] = [{"path": f"{number}.md"} for number in range(5_000)]
    long: list[JSONValue] = ["q" * 10_000] * 1_000
    counts: dict[str, JSONValue] = {str(number): number for number in range(1_000)}

    found = evidence.parse_result(
        {
            "context": "x" * (MAX_CONTEXT + 1),
            "citations": many,
            "queries": long,
            "signals": counts,
            "why": "w" * 100_000,
        }
    )

    assert len(found.context) == MAX_CONTEXT
    assert len(found.citations) == MAX_CITATIONS
    assert sum(map(len, found.queries)) <= 50 * 500
    assert (len(found.signals), len(found.why)) == (20, 2_000)
    assert len(found.remarks) == 2


jsons = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False) | some.text(max_size=8),
    lambda inner: some.lists(inner, max_size=4) | some.dictionaries(some.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
names = some.sampled_from(["context", "citations", "queries", "signals", "confidence", "why", "path", "snip_start"])


@given(some.dictionaries(names, jsons | some.lists(some.dictionaries(names, jsons, max_size=4), max_size=3)))
def test_any_dictionary_is_read_or_refused(result: dict[str, JSONValue]) -> None:
    try:
        found = evidence.parse_result(result)
    except BadInput:
        assert not isinstance(result.get("context"), str)
    else:
        assert found.confidence is None or 0 <= found.confidence <= 1
        assert all(isinstance(one.start, int | None) for one in found.citations)


def test_a_citation_holds_with_its_place_lines_and_hash(context: Context) -> None:
    text = NOTES["A.md"]
    start = text.index("Second")

    found = check(context, ReportedCitation(path="A.md", vault="main", start=start, stop=start + 12)).citations[0]

    assert (found.vault, found.path, found.text) == (context.vault, "A.md", "Second line.")
    assert (found.first_line, found.last_line) == (4, 4)
    assert found.hash == parser.content_hash(text.encode())
    assert found.as_dict()["snip_start"] == start


@pytest.mark.parametrize(
    ("start", "stop"),
    [(None, None), (0, 10**9), (-5, None), (None, 10**30), (-(10**30), 10**30), (0, len(NOTES["A.md"]))],
)
def test_a_span_is_brought_inside_its_note_and_a_missing_one_is_all_of_it(
    context: Context, start: int | None, stop: int | None
) -> None:
    found = check(context, ReportedCitation(path="A.md", start=start, stop=stop)).citations[0]

    assert (found.start, found.stop, found.text) == (0, len(NOTES["A.md"]), NOTES["A.md"])


@pytest.mark.parametrize(
    ("written", "code"),
    [
        (ReportedCitation(path="Nowhere.md"), "no_note"),
        (ReportedCitation(path="Folder/"), "no_note"),
        (ReportedCitation(path="Secret/Plan.md"), "no_note"),
        (ReportedCitation(path="secret/plan"), "no_note"),
        (ReportedCitation(path="Empty.md"), "empty_span"),
        (ReportedCitation(path="A.md", start=10**6), "empty_span"),
        (ReportedCitation(path="A.md", start=9, stop=3), "empty_span"),
        (ReportedCitation(path="A.md", start=0, stop=0), "empty_span"),
        (ReportedCitation(path="A.md", start=3, stop=5), "empty_span"),
        (ReportedCitation(path="A.md", stop=-1), "empty_span"),
        (ReportedCitation(path="../../etc/passwd"), "outside_vault"),
        (ReportedCitation(path="/etc/passwd"), "outside_vault"),
        (ReportedCitation(path="A.md\0"), "bad_input"),
        (ReportedCitation(path="x" * 100_000), "no_note"),
        (ReportedCitation(path="A.md", vault="other"), "no_vault"),
        (ReportedCitation(path="A.md", quote="Fourth line."), "not_quoted"),
        (ReportedCitation(path="A.md", start=0, stop=8, quote="Second line."), "not_quoted"),
    ],
    ids=lambda one: repr(one)[:60],
)
def test_a_citation_that_doesnt_hold_is_dropped_with_its_reason(
    context: Context, vault: Opener, written: ReportedCitation, code: str
) -> None:
    found = check(context, written)

    assert found.citations == ()
    assert len(found.dropped) == 1
    assert len(found.dropped[0].path) <= 200
    assert str(vault.root) not in found.dropped[0].reason
    if code != "no_note":
        assert found.dropped[0].code == code


def test_a_quotation_may_differ_in_white_space(context: Context) -> None:
    assert check(context, ReportedCitation(path="A.md", quote="First line. Second\nline.")).dropped == ()


def test_properties_and_other_scripts_can_be_cited(context: Context) -> None:
    found = check(context, ReportedCitation(path="Properties.md"), ReportedCitation(path="日本語.md", start=6, stop=8))

    assert [one.text for one in found.citations] == [NOTES["Properties.md"], "の北"]


def test_a_note_is_cited_without_its_ending_too_and_the_same_place_once(context: Context) -> None:
    found = check(
        context, ReportedCitation(path="A"), ReportedCitation(path="A.md"), ReportedCitation(path="A.md", start=0)
    )

    assert [one.path for one in found.citations] == ["A.md"]


def test_citations_of_very_much_text_end_somewhere(context: Context, vault: Opener) -> None:
    (vault.root / "Large.md").write_text("word " * 500_000, encoding="utf-8")

    found = check(context, *(ReportedCitation(path="Large.md", start=number) for number in range(50)))

    assert len(found.citations) == 1
    assert {one.code for one in found.dropped} == {"too_long"}


def test_a_note_that_is_named_in_many_ways_is_not_read_without_end(context: Context, vault: Opener) -> None:
    (vault.root / "Large.md").write_text("x" * 30_000_000, encoding="utf-8")

    found = check(context, *(ReportedCitation(path=f"{'./' * number}Large.md") for number in range(200)))

    assert found.citations == ()
    assert {one.code for one in found.dropped} == {"too_long"}


def test_a_citation_of_what_others_wrote_taints_like_any_reading(context: Context) -> None:
    _ = check(context, ReportedCitation(path="Clippings/Web.md"))

    assert context.writer.taints.is_tainted("agent")
