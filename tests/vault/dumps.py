"""Write parts of an outline as lines, for the cases."""

import json

from knapper.vault import pending as waiting
from knapper.vault.source import Link, Outline
from tests.vault.cases import shown


def sections(raw: bytes, outline: Outline) -> list[str]:
    del raw
    return [
        f"{part.level} {' > '.join(part.path) or '-'} | lines {part.line}-{part.end_line} | "
        f"{part.start} {part.body_start} {part.own_stop} {part.stop}"
        for part in outline.sections
    ]


def blocks(raw: bytes, outline: Outline) -> list[str]:
    found: list[str] = []
    for block in outline.blocks:
        items = f" | items {' '.join(map(str, block.items))}" if block.items else ""
        found.append(f"{block.kind} {block.start}: {shown(raw[block.start : block.stop])}{items}")
    return found


def links(raw: bytes, outline: Outline) -> list[str]:
    return [link(raw, part) for part in outline.links]


def link(raw: bytes, part: Link) -> str:
    fields = [f"{part.kind} line {part.line}", f"target <{part.target}>"]
    fields += [f"heading {heading}" for heading in part.headings]
    fields += [f"block {part.block}"] if part.block else []
    fields += [f"alias <{part.alias}>"] if part.alias is not None else []
    fields += [f"key {part.key}"] if part.key else []
    fields.append(f"at <{shown(raw[part.start : part.stop])}>")
    fields.append(f"rewrites <{shown(raw[part.target_start : part.target_stop])}>")
    return " | ".join(fields)


def tags(raw: bytes, outline: Outline) -> list[str]:
    return [f"{tag.origin} line {tag.line} | {tag.name} | {shown(raw[tag.start : tag.stop])}" for tag in outline.tags]


def tasks(raw: bytes, outline: Outline) -> list[str]:
    return [
        f"line {task.line} | [{task.state}] {task.text} | {shown(raw[task.start : task.stop])}"
        for task in outline.tasks
    ]


def ids(raw: bytes, outline: Outline) -> list[str]:
    return [
        f"line {part.line} | {part.name} | {shown(raw[part.id_start : part.id_start + 1])} {part.id_start} | "
        f"{shown(raw[part.start : part.stop])}"
        for part in outline.block_ids
    ]


def code(raw: bytes, outline: Outline) -> list[str]:
    return [f"{start}: {shown(raw[start:stop])}" for start, stop in outline.code_spans]


def problems(outline: Outline) -> list[str]:
    return [f"{problem.code} line {problem.line}: {problem.message}" for problem in outline.problems]


def frontmatter(raw: bytes, outline: Outline) -> list[str]:
    block = outline.frontmatter
    if block is None:
        return [f"none, body at {outline.body_start}"]
    span = f"{block.start} {block.yaml_start} {block.yaml_stop} {block.stop}, to line {block.end_line}"
    values = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in block.values.items()]
    assert raw[block.start : block.start + 3] == b"---"
    return [f"{'valid' if block.valid else 'invalid'}, {span}", *values, *problems(outline)]


def pending(raw: bytes, outline: Outline) -> list[str]:
    return [
        f"line {block.line} | {block.problem or 'whole'} | {block.id} {block.kind} | "
        f"{block.before!r} -> {block.after!r} | "
        f"{shown(raw[block.start : block.tag_stop])} + {shown(raw[block.tag_stop : block.stop])}"
        for block in waiting.find_pending(raw, outline)
    ]


def canvas(raw: bytes, outline: Outline) -> list[str]:
    texts = [f"text line {part.line} | {part.key} | {part.text!r}" for part in outline.passages]
    return links(raw, outline) + texts + problems(outline)
