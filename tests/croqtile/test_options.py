import pytest

from croqtile.options import HELP, HIDDEN_HELP, Options, UsageError, parse


def test_flags_in_any_order():
    wanted = Options(input="k.co", output="out", mode="script", sala=False, defines={"A": "1", "B": "x=y"})
    assert parse(["-gs", "-t", "cute", "-arch=sm_90a", "--no-sala", "-DA=1", "-DB=x=y", "k.co", "-o", "out"]) == wanted
    assert (
        parse(
            [
                "-D",
                "B=x=y",
                "k.co",
                "-oout",
                "--use-warpspec",
                "-D",
                "A=1",
                "-gs",
                "-arch",
                "sm_90a",
                "--no-sala",
                "-tcute",
            ]
        )
        == wanted
    )


def test_modes():
    assert parse(["k.co"]).mode == "executable"
    assert parse(["-es", "k.co"]).mode == "source"
    assert parse(["--explain", "k.co"]).mode == "inform"
    assert parse(["--explain", "-es", "k.co"]).mode == "source"


def test_a_define_without_a_value_is_one():
    assert parse(["-DFAST", "k.co"]).defines == {"FAST": "1"}
    assert parse(["-DEMPTY=", "k.co"]).defines == {"EMPTY": ""}


def test_the_file_of_emit_pattern_is_optional():
    assert parse(["--emit-pattern", "k.co"]).pattern == "-"
    assert parse(["--emit-pattern", "p.json", "k.co"]).pattern == "p.json"
    assert parse(["--emit-pattern=p.txt", "k.co"]).pattern == "p.txt"


def test_words_after_a_double_dash_are_names():
    assert parse(["-es", "--", "-odd.co"]).input == "-odd.co"


def test_help_lists_the_hidden_options_only_on_request():
    assert parse(["--help"]).message == HELP
    assert "--no-sala  " not in HELP
    assert "--no-sala  " in HIDDEN_HELP
    assert "--stress  " in HELP
    assert parse(["--help-hidden"]).message == HIDDEN_HELP
    version = parse(["--version"]).message
    assert version is not None
    assert version.startswith("choreo ")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no input file"),
        (["a.co", "b.co"], "one input file expected, got 2: a.co, b.co"),
        ([""], "the input file's name is empty"),
        (["--wrong", "a.co"], "unknown option `--wrong`"),
        (["-g", "a.co"], "unknown option `-g`"),
        (["a.co", "-o"], "-o needs a value"),
        (["a.co", "-gs"], "-gs needs -o OUT"),
        (["-gs", "-es", "a.co", "-o", "x"], "-es contradicts an earlier option"),
        (["-o", "x", "-o", "y", "a.co"], "-o is given twice"),
        (["-arch=sm_80", "a.co"], "-arch `sm_80` is not supported: only sm_90a"),
        (["-t", "hip", "a.co"], "-t `hip` is not supported: only cute"),
        (["-D3=4", "a.co"], "-D needs NAME or NAME=VALUE on one line, got '3=4'"),
        (["-DA=1\n2", "a.co"], "-D needs NAME or NAME=VALUE on one line"),
        (["--dump=parse,nothing", "a.co"], "--dump: unknown pass `nothing`"),
        (["--json", "a.co"], "--json goes with --explain"),
        (["--explain", "a.co", "-o", "x"], "-o goes with"),
        (["--memory-map=", "a.co"], "--memory-map needs the name of a file"),
    ],
)
def test_mistakes_are_one_line(words, message):
    with pytest.raises(UsageError) as caught:
        parse(words)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
