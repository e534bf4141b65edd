from dataclasses import dataclass

from croqtile.dump import program_text, tree
from croqtile.ir import Elem, Span
from hb_analyzer import model


@dataclass(frozen=True)
class Leaf:
    span: Span
    name: str
    kind: Elem | None = None


@dataclass(frozen=True)
class Node:
    left: Leaf
    items: tuple[Leaf, ...]
    count: int = 0


def test_trees_leave_out_places_and_what_is_empty():
    span = Span("a.co", 1, 2)
    node = Node(Leaf(span, "x", Elem.F16), (Leaf(span, "y"), Leaf(span, "z")), 3)
    assert list(tree(node)) == [
        "Node count=3",
        "  left: Leaf name=x kind=F16",
        "  items: Leaf name=y",
        "  items: Leaf name=z",
    ]


def test_programs(golden):
    n, i = model.Name("n"), model.Name("i")
    slot = model.BinOp("%", i, model.Const(2))
    body = (
        model.Opaque("line 3: it depends on data", ("tile",), ("full",)),
        model.Loop(
            "i",
            n,
            (
                model.Wait("full", slot, "wait full[i % 2]"),
                model.Access("tile", "w", slot, None, "event", "full", slot, "async", label="copy into tile"),
                model.If(
                    model.BinOp("<", i, n),
                    (model.Trigger("full", slot, "trigger full[i % 2]"),),
                    (model.Step("count", 2), model.Commit(), model.Drain(1, "mma.wait<1>")),
                ),
            ),
        ),
        model.Barrier("sync.wg 0, 1", ("a", "b")),
        model.Access("tile", "r", fenced=False, label="read tile"),
    )
    program = model.Program(
        name="example",
        buffers=(model.Buffer("tile", 4096, 1024, 2, (32, 32)),),
        events=(model.Event("full", 2, 1),),
        roles=(model.Role("a", body), model.Role("b", (), "thread")),
        parameters=(model.Parameter("n", 1), model.Parameter("flag", 0, 1)),
        assumptions=("`n` and `m` are analysed as unrelated values",),
    )
    golden(program_text(program))
