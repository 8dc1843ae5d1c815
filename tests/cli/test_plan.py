import json
import re

import pytest

import neardup
from neardup.cli import forecast_view
from neardup.cli.plan import plan as plan_command
from neardup.errors import ConfigError
from neardup.jobs.forecast import Estimate, Forecast
from neardup.theory import plot


def test_plan_draws_the_curve_and_says_what_it_promises(run):
    finished = run("plan")
    assert finished.returncode == 0
    assert finished.stdout.startswith("16 bands x 6 rows find 99.22 % of pairs at 0.8.\n")
    assert "100 % ┤╌" in finished.stdout
    assert "found, with a chance of 0.9922 at the threshold (target 0.99, ╌╌)" in finished.stdout
    assert (
        "       0.8  0.992281  the threshold; "
        "found with a chance of 0.992181, because the signature filter may drop 0.0001\n"
        in finished.stdout
    )
    assert finished.stderr == ""


def test_the_pointer_is_below_the_line_of_the_threshold(run):
    lines = run("plan", "--threshold", "0.5", "--num-perm", "256").stdout.splitlines()
    at = next(line.index("▲") for line in lines if line.strip() == "▲")
    assert {line[at] for line in lines if "┤" in line} == {"│"}


def test_a_plan_that_misses_the_requested_recall_says_so(run):
    finished = run("plan", "--bands", "9", "--rows", "13")
    assert "9 bands x 13 rows find 40 % of pairs at 0.8 (target 99 %)" in finished.stdout
    assert finished.returncode == 0


@pytest.mark.parametrize("columns", [30, 60, 200])
def test_the_curve_fits_the_terminal(run, columns):
    lines = run("plan", COLUMNS=str(columns)).stdout.splitlines()
    assert max(len(line) for line in lines if "│" in line or "┤" in line) <= max(columns, 31)


def test_a_terminal_without_unicode_gets_plain_characters(run):
    finished = run("plan", PYTHONIOENCODING="ascii")
    assert finished.stdout.isascii()
    assert "?" not in finished.stdout


def test_json_holds_the_plan_and_its_curve(run):
    answer = json.loads(run("plan", "--json", "--threshold", "0.9").stdout)
    assert (answer["bands"], answer["rows"], answer["method"]) == (11, 10, "lsh")
    assert answer["chances"][18] == [0.9, neardup.plan(threshold=0.9).chance(0.9)]


def test_a_plan_without_inputs_loads_neither_arrow_nor_numba(run_afresh):
    check = (
        "import atexit, sys; "
        "atexit.register(lambda: print({'pyarrow', 'numba'} & set(sys.modules), file=sys.stderr))"
    )
    assert run_afresh("plan", before=check).stderr == "set()\n"


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_equal_plans_give_equal_pictures_and_another_measure_another(tmp_path, ending):
    for name, measure in (("one", "jaccard"), ("two", "jaccard"), ("three", "cosine")):
        asked = ["--plot", str(tmp_path / f"{name}.{ending}"), "--measure", measure]
        plan_command.main(asked, standalone_mode=False)
    one, two, three = (
        (tmp_path / f"{name}.{ending}").read_bytes() for name in ("one", "two", "three")
    )
    assert one == two != three
    assert one.startswith(b"<?xml" if ending == "svg" else b"\x89PNG")


def labels(plan, path, **settings):
    """Every text of a picture; an SVG names in a comment what it draws as paths."""
    plot.plot(plan, str(path), **settings)
    return re.findall("<!-- (.+) -->", path.read_text("utf-8"))


def test_the_picture_marks_the_step_of_the_curve(tmp_path):
    found = labels(neardup.plan(bands=20, rows=5), tmp_path / "curve.svg")
    assert {
        "(1/b)^(1/r): 0.549",
        "20 bands x 5 rows",
        "threshold 0.8",
        "similarity of two documents",
    } <= set(found)
    assert not [
        label
        for label in labels(neardup.plan(method="exact"), tmp_path / "exact.svg")
        if "1/b" in label
    ]


def test_the_picture_compares_two_plans(tmp_path):
    found = labels(neardup.plan(), tmp_path / "both.svg", other=neardup.plan(bands=9, rows=13))
    assert {
        "16 bands x 6 rows",
        "9 bands x 13 rows",
        "(1/b)^(1/r): 0.630",
        "(1/b)^(1/r): 0.844",
    } <= set(found)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (
            {"distance": 0.3},
            {"distance, 1 - similarity", "distance 0.3", "step, by (1/b)^(1/r): 0.508"},
        ),
        ({"measure": "cosine", "distance": 0.1}, {"distance, 1 - cosine", "distance 0.1"}),
        (
            {"measure": "hamming", "distance": 3, "dimension": 64},
            {"bits that differ", "distance 3"},
        ),
        ({"measure": "euclidean", "distance": 2}, {"Euclidean distance", "distance 2"}),
        ({"measure": "euclidean", "distance": 0}, {"Euclidean distance", "distance 0"}),
    ],
)
def test_the_axis_shows_distances_if_the_threshold_is_a_distance(tmp_path, settings, expected):
    assert expected <= set(
        labels(neardup.plan(**settings), tmp_path / "curve.svg", by_distance=True)
    )


def test_plot_options_are_applied(tmp_path):
    path = tmp_path / "both.svg"
    asked = [
        "--distance",
        "0.3",
        "--plot",
        str(path),
        "--compare-bands",
        "20",
        "--compare-rows",
        "5",
    ]
    plan_command.main(asked, standalone_mode=False)
    found = re.findall("<!-- (.+) -->", path.read_text("utf-8"))
    assert {"distance, 1 - similarity", "17 bands x 4 rows", "20 bands x 5 rows"} <= set(found)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--compare-bands", "9"],
            "a second curve needs bands and rows, but `--compare-rows` is missing",
        ),
        (
            ["--compare-rows", "9"],
            "a second curve needs bands and rows, but `--compare-bands` is missing",
        ),
        (
            ["--compare-bands", "9", "--compare-rows", "0"],
            "`compare_rows` must be a whole number from 1 to 1024, got 0",
        ),
        (["--compare-bands", "9", "--compare-rows", "9"], "which was not given"),
        (
            [
                "--compare-bands",
                "9",
                "--compare-rows",
                "9",
                "--plot",
                "x.svg",
                "--measure",
                "containment",
            ],
            "banding cannot find containment",
        ),
    ],
)
def test_a_comparison_that_cannot_be_drawn_is_refused(options, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        plan_command.main(options, standalone_mode=False)


def test_an_unknown_plot_extension_is_wrong_usage_and_writes_nothing(run, tmp_path):
    finished = run("plan", "--plot", "curve.pdf")
    assert finished.returncode == 2
    assert "--plot must be a file that ends in .svg or .png, got 'curve.pdf'" in finished.stderr
    assert (finished.stdout, list(tmp_path.iterdir())) == ("", [])


def test_without_matplotlib_the_error_says_how_to_install_it(run):
    finished = run(
        "plan", "--plot", "curve.svg", before="import sys; sys.modules['matplotlib'] = None"
    )
    assert finished.returncode == 1
    assert "hint: pip install 'neardup[plot]'" in finished.stderr


def test_an_infeasible_plan_is_wrong_usage_with_a_hint(run):
    finished = run("plan", "--threshold", "0.1", "--num-perm", "16")
    assert finished.returncode == 2
    assert "hint: use --num-perm 64" in finished.stderr


def test_inputs_add_documents_memory_disk_and_time(run, pages):
    finished = run("plan", pages.name)
    assert finished.returncode == 0
    *_, titles, lsh, exact, reason = (
        line for line in finished.stdout.splitlines() if not line.startswith("advice")
    )
    assert titles.split() == "method bands x rows recall comparisons pairs memory disk time".split()
    assert (lsh.split()[:5], exact.split()[:3]) == (
        ["lsh", "16", "x", "6", "0.9922"],
        ["exact", "-", "1.0000"],
    )
    assert reason.startswith("A run would use the exact join: ")
    estimate = json.loads(run("plan", pages.name, "--json").stdout)["estimate"]
    assert {
        "documents",
        "text_bytes",
        "disk_bytes",
        "memory_bytes",
        "seconds",
        "forecasts",
        "advice",
    } <= set(estimate)


def test_plotting_opens_no_window():
    with pytest.raises(NotADirectoryError):
        plot.plot(neardup.plan(), "/dev/null/x.svg")


def test_the_exact_method_has_no_curve_to_draw(run, pages):
    finished = run("plan", "--method", "exact", "--threshold", "0.7")
    assert (
        finished.stdout.splitlines()[0]
        == "The exact method finds every pair with similarity >= 0.7."
    )
    assert "sharing a bucket" not in finished.stdout
    with_input = run("plan", pages, "--method", "exact")
    assert "documents  " in with_input.stdout
    as_json = json.loads(run("plan", "--recall", "1", "--json").stdout)
    assert (as_json["method"], as_json["bands"], as_json["recall_at_threshold"]) == (
        "exact",
        0,
        1.0,
    )


def test_plan_explains_why_the_curve_and_the_promised_recall_differ(run):
    printed = run("plan", "--bands", "20", "--rows", "5").stdout
    assert printed.startswith("20 bands x 5 rows find 99.954 % of pairs at 0.8.\n")
    reason = "the threshold; found with a chance of 0.999544, because the signature filter may drop 0.0001"
    assert f"       0.8  0.999644  {reason}\n" in printed
    assert (
        "  the threshold\n"
        in run("plan", "--bands", "20", "--rows", "5", "--no-signature-filter").stdout
    )


def test_a_picture_is_replaced_only_on_request(run, tmp_path):
    path = tmp_path / "curve.svg"
    path.write_text("mine")
    finished = run("plan", "--plot", str(path))
    assert finished.returncode == 1
    assert (
        f"the plot {path} already exists\n\nhint: choose another --plot, or pass --overwrite"
        in finished.stderr
    )
    assert path.read_text() == "mine"
    assert run("plan", "--plot", str(path), "--overwrite").returncode == 0
    assert path.read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("num_pairs", "ratio", "cell", "words"),
    [
        (0, 1.0, "0", None),
        (
            0,
            0.02,
            "unknown",
            "A sample of 2.0 % rarely holds both documents of a pair; the number of pairs may be",
        ),
        (
            50,
            0.02,
            "50",
            "A sample of 2.0 % rarely holds both documents of a pair; the number of pairs may be",
        ),
        (900, 0.17, "900", "if similar documents are far apart, there are about 6 times as many."),
    ],
)
def test_a_number_of_pairs_from_a_small_sample_is_called_uncertain(num_pairs, ratio, cell, words):
    forecast = Forecast(
        method="lsh",
        bands=16,
        rows=6,
        recall_at_threshold=0.99,
        candidates=7,
        pairs=num_pairs,
        memory_bytes=1,
        disk_bytes=1,
        seconds=1.0,
    )
    estimate = Estimate(
        documents=100,
        text_bytes=1,
        disk_bytes=1,
        memory_bytes=1,
        seconds=1.0,
        sampled_documents=2,
        sampled_ratio=ratio,
        forecasts=(forecast,),
        advice=(),
    )
    printed = list(forecast_view.lines(estimate))
    row = next(line for line in printed if line.startswith("lsh"))
    assert row.split()[5:7] == ["7", cell]
    assert (
        any(words in line for line in printed)
        if words
        else not any("sample of" in line for line in printed)
    )
