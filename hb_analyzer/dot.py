"""The phases of a pattern and the edges between them, for Graphviz (``dot -Tsvg``)."""

from __future__ import annotations

from .infer import Inference
from .pattern import Pattern, Phase, PhaseId
from .phase_graph import Meeting

_FILL = {"producer": "#dcebf7", "other": "#fdebd8"}


def dot_text(pattern: Pattern, inference: Inference) -> str:
    """A digraph: a cluster per role, loops as boxes in it; event edges solid, carried ones dashed, barriers dotted."""
    lines = [
        f"digraph {_quote(pattern.kernel)} {{",
        "  graph [rankdir=TB, compound=true, fontname=Helvetica, labelloc=t, nodesep=0.4, "
        f"label={_quote(pattern.kernel)}];",
        '  node [shape=box, style="filled,rounded", fontname=Helvetica, fontsize=11];',
        "  edge [fontname=Helvetica, fontsize=9];",
    ]
    for number, group in enumerate(pattern.groups):
        lines.append(f"  subgraph cluster_{number} {{")
        lines.append(f"    label={_quote(group.name)}; color=grey70; style=rounded;")
        fill = _FILL["producer" if group.is_producer else "other"]
        previous: tuple[str, ...] = ()
        for i, phase in enumerate(group.phases):
            path = inference.loops[PhaseId(group.name, i)]
            previous = _enter(lines, previous, path, f"{number}_{i}")
            lines.append(
                f"    {_node(pattern, PhaseId(group.name, i))} [label={_label(phase)}, fillcolor={_quote(fill)}];"
            )
        _enter(lines, previous, (), "")
        lines.append("  }")
    lines += _edge_lines(pattern, inference)
    return "\n".join([*lines, "}"]) + "\n"


def _enter(lines: list[str], previous: tuple[str, ...], path: tuple[str, ...], id: str) -> tuple[str, ...]:
    """Close and open the boxes of loops between two phases."""
    common = 0
    while common < min(len(previous), len(path)) and previous[common] == path[common]:
        common += 1
    lines += ["    }"] * (len(previous) - common)
    for depth, name in enumerate(path[common:], start=common):
        lines.append(
            f"    subgraph cluster_loop_{id}_{depth} {{ label={_quote('loop ' + name)}; style=dashed; color=grey40;"
        )
    return path


def _edge_lines(pattern: Pattern, inference: Inference) -> list[str]:
    lines = []
    meetings = sorted({node for e in inference.edges for node in (e.source, e.target) if isinstance(node, Meeting)})
    for meeting in meetings:
        lines.append(
            f"  {_meeting(meeting)} [shape=hexagon, style=filled, fillcolor={_quote('#eadcf0')}, "
            f"label={_quote('barrier ' + meeting.barrier)}];"
        )
    for edge in inference.edges:
        source, target = _end(pattern, edge.source), _end(pattern, edge.target)
        if edge.kind == "program":
            style = "color=grey55"
        elif edge.kind == "barrier":
            style = f"style=dotted, penwidth=1.5, color={_quote('#7b3f6c')}"
        elif isinstance(edge.target, Meeting) or isinstance(edge.source, Meeting):
            continue
        elif edge.name in inference.carried and inference.looped(edge.source) and inference.looped(edge.target):
            tip = _quote(f"carried: {inference.carried[edge.name]}")
            style = (
                f"style=dashed, constraint=false, color={_quote('#c05a00')}, fontcolor={_quote('#c05a00')}, "
                f"label={_quote(edge.name + ' (next iteration)')}, edgetooltip={tip}"
            )
        else:
            style = f"color={_quote('#1f5f8b')}, fontcolor={_quote('#1f5f8b')}, label={_quote(edge.name)}"
        lines.append(f"  {source} -> {target} [{style}];")
    return lines


def _end(pattern: Pattern, node: PhaseId | Meeting) -> str:
    return _node(pattern, node) if isinstance(node, PhaseId) else _meeting(node)


def _node(pattern: Pattern, id: PhaseId) -> str:
    number = next(i for i, group in enumerate(pattern.groups) if group.name == id.role)
    return f"p{number}_{id.position}"


def _meeting(meeting: Meeting) -> str:
    return _quote(f"barrier {meeting.barrier} {meeting.position}")


def _label(phase: Phase) -> str:
    verbs = {"r": "reads", "w": "writes", "rw?": "uses"}
    uses = dict.fromkeys(f"{verbs[access.mode]} {access.buffer}" for access in phase.accesses)
    return _quote("\n".join([phase.label, *uses]))


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
