"""Everything the command line shows: progress and errors on stderr, answers on stdout.

Everything from documents, ids and file names passes through `visible` before it reaches a terminal.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from neardup.cli import curve, forecast_view
from neardup.cli.count_words import counted
from neardup.cli.symbols import ASCII, UNICODE, Symbols
from neardup.cli.usage import as_options
from neardup.cli.visible import visible, visible_json, visible_lines
from neardup.config.checks import SET_MEASURES, asks_containment
from neardup.theory.plan import Plan

if TYPE_CHECKING:  # these take a second to import, and `plan` without inputs needs none of them
    from neardup.events import Progress
    from neardup.jobs.compare import Comparison
    from neardup.jobs.evaluate import Evaluation
    from neardup.jobs.explain import Explanation, ListedPair
    from neardup.jobs.review import Review
    from neardup.jobs.tune import Tuning
    from neardup.report import Audit, ContaminationReport, PartsReport, PassagesReport, Report

MAX_MEMBERS: Final = 50
MAX_SHOWN_PASSAGES: Final = 5
MAX_MISSED: Final = 20


@contextlib.contextmanager
def progress(*, quiet: bool = False, say: Callable[[str], str] = as_options) -> Iterator[Progress]:
    """Show the events of a run on stderr while it lasts.

    say: turns the messages of the library, which name settings, into those of the caller.
    """
    if quiet:
        yield lambda _: None
        return
    from neardup.cli.compile_watch import CompilationWatch
    from neardup.cli.notebook_bars import NotebookBars, show_in_notebook
    from neardup.cli.progress import Bars, Lines
    from neardup.events import Event, Warned

    console = _console(stderr=True)
    shown: Bars | Lines | NotebookBars
    if console.is_jupyter:
        shown = NotebookBars(show_in_notebook)
    elif console.is_terminal:
        shown = Bars(console)
    else:
        shown = Lines(lambda line: click.echo(line, err=True))

    def show(event: Event) -> None:
        if isinstance(event, Warned):
            event = Warned(visible(say(event.message)), event.is_urgent)
        shown(event)

    watched = CompilationWatch(show)
    try:
        yield watched
    finally:
        watched.stop()
        shown.stop()


@contextlib.contextmanager
def working(stage: str, *, quiet: bool = False) -> Iterator[None]:
    """Show progress on stderr for work that emits no events."""
    from neardup.events import Watch

    with progress(quiet=quiet) as listener, Watch(listener).stage(stage):
        yield


def as_json(answer: dict[str, Any], indent: int | None = 2) -> None:
    """Print an answer as JSON and flush it; without an indent, on one line."""
    click.echo(visible_json(json.dumps(answer, ensure_ascii=False, indent=indent)))


def lines(shown: Iterable[str]) -> None:
    """Print an answer of several lines."""
    _print_lines(shown)


def text(words: str, *, is_error: bool = False) -> None:
    """Print a text of our own without escaping."""
    click.echo(words, err=is_error)


def failure(message: str, hint: str | None = None) -> None:
    """Print on stderr what went wrong, in one line, and what to do next."""
    click.echo(visible(message), err=True)
    if hint is not None:
        click.echo(f"\nhint: {visible(hint)}", err=True)


def crash(error: BaseException) -> None:
    """Print the traceback of an unexpected error on stderr."""
    click.echo(visible_lines("".join(traceback.format_exception(error))), err=True, nl=False)


def summary(report: Report, out: str) -> None:
    """Print what a run on files kept and removed, what it promises, and where it wrote its output."""
    numbers = report.as_dict()
    written = sorted(
        f"{path.name}/" if path.is_dir() else path.name for path in Path(out).iterdir()
    )
    _print_lines(_counts(numbers))
    _print_lines(
        [
            _found(report),
            *_ignored(report),
            *_audited(report),
            f"Written to {out}: {', '.join(written)}",
        ]
    )


def pairs_summary(report: Report, out: str) -> None:
    """Print how many pairs were found, what the run promises, and where they were written."""
    numbers = report.as_dict()
    num_pairs = report.num_pairs or 0
    found = counted(num_pairs, "pair")
    if report.plan.shared_words is None:
        found += f" with similarity >= {report.config.threshold:g}"
    beside = f"{out}.rejected.jsonl"
    see = f", see {beside}" if Path(beside).exists() else ""
    if numbers["rejected"]:
        rejected = f"; {numbers['rejected']:,} rejected{see}"
    else:
        rejected = ""
    _print_lines([f"{counted(numbers['documents'], 'document')}: {found}{rejected}."])
    _print_lines([_found(report), *_ignored(report), *_audited(report), f"Written to {out}"])


def passages_summary(report: PassagesReport, out: str) -> None:
    """Print how much is repeated, and where the tables were written."""
    from neardup.cli.progress import BYTES, amount

    share = report.repeated_words / max(report.num_words, 1)
    written = sorted(
        f"{path.name}/" if path.is_dir() else path.name for path in Path(out).iterdir()
    )
    removed = f"; {report.num_removed:,} removed" if report.num_removed else ""
    rejected = f"; {report.num_rejected:,} rejected" if report.num_rejected else ""
    min_words = report.config.min_words
    places = counted(report.num_places, "further place")
    _print_lines(
        [
            f"{counted(report.documents, 'document')}: {counted(report.num_passages, 'passage')} of at least "
            f"{min_words} word{'s'[: min_words != 1]}, in {places}{removed}{rejected}.",
            f"Repeated: {report.repeated_words:,} of {report.num_words:,} words ({share:.1%}). "
            f"Read {amount(report.bytes_read, BYTES)} of text in {report.seconds:.1f} s.",
            f"Written to {out}: {', '.join(written)}",
        ]
    )


def parts_summary(report: PartsReport, out: str) -> None:
    """Print how many paragraphs or lines a run removed, and where the tables were written."""
    share = report.removed_words / max(report.num_words, 1)
    removed = f"; {report.num_removed:,} removed" if report.num_removed else ""
    rejected = f"; {report.num_rejected:,} rejected" if report.num_rejected else ""
    parts = counted(report.num_parts, f"repeated {report.config.level}")
    action = "marked" if report.config.mark else "removed"
    _print_lines(
        [
            f"{counted(report.documents, 'document')}{removed}{rejected}; {parts} {action}: "
            f"{report.removed_words:,} of {report.num_words:,} words ({share:.1%}).",
            *_read_and_written(report, out),
        ]
    )


def contamination_summary(report: ContaminationReport, out: str) -> None:
    """Print a table of the benchmarks, how many documents contain items, and where the tables were written."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("benchmark", overflow="fold")
    for name in ("items", "found", "too short", "documents"):
        table.add_column(name, justify="right")
    for row in report.benchmarks.to_pylist():
        numbers = (f"{row[name]:,}" for name in ("items", "found", "too_short", "documents"))
        table.add_row(visible(row["benchmark"]), *numbers)
    _console().print(table)
    removed = f"; {report.num_removed:,} removed" if report.num_removed else ""
    rejected = f"; {report.num_rejected:,} rejected" if report.num_rejected else ""
    _print_lines(
        [
            f"{counted(report.documents, 'document')}: {report.num_contaminated:,} with "
            f"{report.num_items_found:,} of {counted(report.num_items, 'item')}{removed}{rejected}.",
            *_read_and_written(report, out),
        ]
    )


def _read_and_written(report: Report, out: str) -> Iterator[str]:
    from neardup.cli.progress import BYTES, amount

    written = sorted(
        f"{path.name}/" if path.is_dir() else path.name for path in Path(out).iterdir()
    )
    yield f"Read {amount(report.bytes_read, BYTES)} of text in {report.seconds:.1f} s."
    yield f"Written to {out}: {', '.join(written)}"


def _found(report: Report) -> str:
    """Say what was found, by which method, and how long it took; report.json has the reason for the method."""
    from neardup.cli.progress import BYTES, amount, duration

    if report.seconds < 60:
        seconds = f"{report.seconds:.1f} s"
    else:
        seconds = duration(report.seconds)
    return f"{report.plan.finding()} Read {amount(report.bytes_read, BYTES)} of text in {seconds}."


def neighbours(found: Any, out: str | None) -> None:
    """Print the neighbours of every document, or where they were written."""
    if out is not None:
        _print_lines(
            [f"{found.num_rows:,} neighbour{'s'[: found.num_rows != 1]}. Written to {out}"]
        )
        return
    if not found.num_rows:
        _print_lines(["No neighbours."])
        return
    _print_lines([Text("similarity  rank  document  neighbour", "bold")])
    for batch in found.to_batches(max_chunksize=1 << 16):
        _print_lines(map(_neighbour_line, batch.to_pylist()))


def _neighbour_line(row: dict[str, Any]) -> str:
    document = _named(row["doc_id"], row["file"], row["row"])
    neighbour = _named(row["neighbour_id"], row["neighbour_file"], row["neighbour_row"])
    return f"{row['similarity']:10.4f}  {row['rank']:4}  {document}  {neighbour}"


def _ignored(report: Report) -> Iterator[str]:
    if report.ignored_common is not None:
        shingles = counted(report.ignored_common["shingles"], "common shingle")
        documents = counted(report.ignored_common["documents"], "document")
        yield f"Ignored {shingles}; {documents} had no other."
    if report.weights is not None:
        documents = counted(report.weights["documents"], "document")
        shared = counted(report.weights["shingles"], "shingle")
        yield f"Weighed by how rare shingles are in {documents}; {shared} are in more than one."


def _audited(report: Report) -> Iterator[str]:
    if report.audit is not None:
        yield f"Audit: {report.audit}."


def audit(answer: Audit) -> None:
    """Print the measured recall, what it was compared with, and the pairs that were missed."""
    _print_lines(
        f"{name:<20}  {number:>8}  {meaning}" for name, number, meaning in _measured(answer)
    )
    missed = answer.missed.slice(0, MAX_MISSED).to_pylist()
    if missed:
        _print_lines(["", Text("similarity  chance  missed", "bold")])
        _print_lines(
            f"{pair['similarity']:10.4f}  {pair['chance']:.4f}  {_pair(pair)}" for pair in missed
        )
    if answer.missed.num_rows > len(missed):
        _print_lines([f"and {answer.missed.num_rows - len(missed):,} more; --json lists all"])


def _measured(answer: Audit) -> Iterator[tuple[str, str, str]]:
    if answer.recall is None:
        yield (
            "recall",
            "unknown",
            f"no sampled document has a pair with similarity >= {answer.threshold:g}",
        )
    else:
        interval = f"95 % confidence interval {answer.low:.4f} to {answer.high:.4f}"
        yield (
            "recall",
            f"{answer.recall:.4f}",
            f"of the pairs with similarity >= {answer.threshold:g}; {interval}",
        )
        if answer.promised < 1:
            yield "predicted", f"{answer.predicted:.4f}", "expected for these pairs by the S-curve"
    hardest = f"for a pair with similarity exactly {answer.threshold:g}, the easiest to miss"
    if answer.promised < 1:
        meaning = hardest
    else:
        meaning = "every pair: the run used the exact method"
    yield "promised", f"{answer.promised:.4f}", meaning
    if answer.precision is not None:
        yield (
            "precision",
            f"{answer.precision:.4f}",
            f"{answer.verified:,} reported pairs and removals, verified again",
        )
    yield "pairs", f"{answer.pairs:,}", f"true pairs of {answer.sample:,} sampled documents"
    yield "missed", f"{answer.missed.num_rows:,}", "of them"
    yield (
        "seconds",
        f"{answer.seconds:.2f}",
        "to draw the sample and compare it with every document",
    )


def _pair(pair: dict[str, Any]) -> str:
    a, b = (
        _named(str(pair[f"doc_{side}"]), pair.get(f"file_{side}"), pair.get(f"row_{side}"))
        for side in "ab"
    )
    return f"{a}  {b}"


def _counts(numbers: dict[str, Any]) -> Iterator[str]:
    rejected = (
        f"{numbers['rejected']:,} rejected{', see rejected.jsonl' if numbers['rejected'] else ''}"
    )
    yield (
        f"{counted(numbers['documents'], 'document')}: {numbers['kept']:,} kept, "
        f"{numbers['removed']:,} removed ({numbers['exact_duplicates']:,} exact), {rejected}."
    )
    if numbers["config"]["against"]:
        is_apart = numbers["config"]["only_against"]
        within = f"because of another document of the input: {numbers['removed_within']:,}"
        rest = "the input was not compared with itself" if is_apart else within
        yield f"Removed because of --against: {numbers['removed_against']:,}; {rest}."


def _print_lines(lines: Iterable[str | Text]) -> None:
    """Print lines; each stays one line, whatever it contains."""
    console = _console()
    for line in lines:
        console.print(_safe(line), soft_wrap=True)


def _safe(line: str | Text) -> str | Text:
    if isinstance(line, str):
        return visible(line)
    spelled = visible(line.plain)
    return line if spelled == line.plain else Text(spelled, line.style)


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Let `main` handle it: a reader that stops early is not a failure."""
        raise BrokenPipeError


def _console(*, stderr: bool = False) -> Console:
    """Return a console that prints texts literally: a document's id may look like markup."""
    return _Console(stderr=stderr, highlight=False, markup=False, emoji=False)


def _symbols(console: Console) -> Symbols:
    return ASCII if console.options.ascii_only else UNICODE


def plan(chosen: Plan) -> None:
    """Print what a plan promises: its curve, a table of chances and, with inputs, what a run will cost."""
    if chosen.is_exact:
        if chosen.measure in SET_MEASURES:
            bands = "method exact: no bands; candidates share one of their rarest shingles"
        else:
            bands = "method exact: no bands; every two documents are compared"
        _print_lines([f"{chosen.judgement().capitalize()}.", bands])
    else:
        _print_curve(chosen)
    if chosen.estimate is not None:
        _print_lines(forecast_view.lines(chosen.estimate))
        if chosen.reason is not None:
            _print_lines([f"A run would use {'the ' if chosen.is_exact else ''}{chosen.reason}."])


def _print_curve(chosen: Plan) -> None:
    console = _console()
    symbols = _symbols(console)
    shape = f"method {chosen.method}, num_perm {chosen.num_perm}, bands {chosen.bands}, rows {chosen.rows}"
    steepest = (
        f"S-curve steepest near {chosen.curve_threshold:.3f}, "
        "where a slot agrees with probability (1/bands)^(1/rows)"
    )
    _print_lines([f"{chosen.judgement()}.", f"{shape}; {steepest}", ""])
    _print_lines(curve.draw(chosen, console.width, symbols))
    _print_lines(curve.legend(chosen, symbols))
    _print_lines(curve.chances(chosen))


def evaluation(answer: Evaluation, out: str) -> None:
    """Print precision and recall against labels, and what was wrong."""
    from neardup.cli import evaluate_view

    _print_lines(evaluate_view.lines(answer, out))


def tuning(found: Tuning, command: str) -> None:
    """Print where copies begin, how sure that is, and the command to run next."""
    from neardup.cli import tune_view

    _print_lines(tune_view.lines(found, _symbols(_console())))
    if found.threshold is None:
        _print_lines(["Look at pairs of every similarity, and label some:"])
        command = f"{command} --threshold 0.1"
    else:
        _print_lines(["Next, list the pairs; dedup takes the same options:"])
    _print_lines([f"  {command}"])


def comparison(answer: Comparison, *, plan: Plan, names: tuple[str, str]) -> None:
    """Print the numbers of a comparison."""
    is_pair = answer.similarity(plan.measure) >= plan.threshold
    verdict = f"{'a pair' if is_pair else 'not a pair'} at threshold {plan.threshold:g}"
    if asks_containment(plan.measure):
        verdict = f"by {plan.measure} {verdict}"
    if is_pair:
        found = "by a run with these settings"
    else:
        found = "as a candidate; pairs below the threshold are not reported"
    if not answer.shared:
        found = "they have no shingle in common"
    elif plan.is_exact:
        found = plan.judgement()
    a, b = names
    rows = (
        ("exact similarity", f"{answer.jaccard:.4f}", verdict),
        ("estimated", f"{answer.estimate:.4f}", f"from signatures of {plan.num_perm} slots"),
        (
            "A contained in B",
            f"{answer.containment_a:.4f}",
            f"A: {a}, {_shingles(answer.shingles_a)}",
        ),
        (
            "B contained in A",
            f"{answer.containment_b:.4f}",
            f"B: {b}, {_shingles(answer.shingles_b)}",
        ),
        (
            "shared shingles",
            f"{answer.shared:,}",
            f"of {answer.shingles_a + answer.shingles_b - answer.shared:,}",
        ),
        ("chance of being found", f"{answer.chance:.4f}", found),
    )
    _print_lines(f"{name:<21}  {number:>8}  {meaning}" for name, number, meaning in rows)


def _shingles(count: int) -> str:
    return f"{count:,} shingle{'s'[: count != 1]}"


def texts(text_a: str, text_b: str, names: tuple[str, str]) -> None:
    """Print the differences between two texts: code line by line, prose word by word.

    If the texts are mostly different, the shared passages are listed instead.
    """
    from neardup.align.word_diff import differ
    from neardup.cli import views

    names = (visible(names[0]), visible(names[1]))
    with working("differ"):
        passages = differ(text_a, text_b)
    differences = [passage for passage in passages if not passage.is_equal]
    only_a = sum(len(difference.words_a) for difference in differences)
    only_b = sum(len(difference.words_b) for difference in differences)
    if not differences:
        _print_lines(["", f"The two texts are equal, word for word{_other_ends(text_a, text_b)}."])
        return
    num = len(differences)
    count = f"{num:,} place{'s'[: num != 1]} differ{'s'[: num == 1]}"
    _print_lines(
        ["", f"{count}: {only_a:,} word{'s'[: only_a != 1]} only in A, {only_b:,} only in B."]
    )
    titles = f"A  {names[0]}", f"B  {names[1]}"
    ellipsis = _symbols(_console()).ellipsis
    _print_lines(views.lay_out((text_a, text_b), passages, titles, ellipsis))


def _other_ends(text_a: str, text_b: str) -> str:
    """Say if two texts differ in the ends of their lines only."""
    if text_a == text_b or text_a.replace("\r\n", "\n") != text_b.replace("\r\n", "\n"):
        return ""
    with_cr = "A" if text_a.count("\r\n") > text_b.count("\r\n") else "B"
    return f"; only the ends of their lines differ (CRLF in {with_cr})"


def passages(answer: Comparison, texts: tuple[str, str], min_words: int) -> None:
    """Print the passages that two texts share."""
    from neardup.cli import shared_parts

    shown = shared_parts.list_passages(answer.passages or (), texts, _symbols(_console()).ellipsis)
    _print_lines(["", _passage_counts(answer, min_words), *shown])


def _passage_counts(answer: Comparison, min_words: int) -> str:
    count = len(answer.passages or ())
    if not count:
        return f"They share no passage of at least {counted(min_words, 'word')}."
    return (
        f"They share {count:,} passage{'s'[: count != 1]} of at least {counted(min_words, 'word')}: "
        f"{100 * (answer.share_a or 0):.1f} % of A, {100 * (answer.share_b or 0):.1f} % of B."
    )


def explanation(answer: Explanation, *, has_texts: bool) -> None:
    """Print why a document was removed, or which ones were removed in its favour."""
    name = _named(answer.doc_id, answer.file, answer.row)
    compared = answer.comparison
    if answer.kept_id is None:
        _print_lines(_members(name, answer))
        return
    kept = _named(answer.kept_id, answer.kept_file, answer.kept_row)
    _print_lines([f"{name} was removed: {_cause(answer)} {kept}, which was kept."])
    if compared is None:  # vectors, or a document of an index, whose text is not stored
        return
    _print_lines([_shared(compared, "the removed document", "the kept document")])
    _print_passages(compared)
    if has_texts:
        texts(answer.text or "", answer.kept_text or "", (answer.doc_id, answer.kept_id))


def removal_to_judge(review: Review, number: int, shown: Sequence[str]) -> None:
    """Print a removal, what differs, and the keys that judge it."""
    one = review.removals[number]
    removed = _named(str(one.doc_id), one.file, one.row)
    kept = _named(str(one.kept_id), one.kept_file, one.kept_row)
    _print_lines(
        [
            "",
            f"{number + 1} of {len(review.removals)}: {removed}, removed for {kept}, similarity {one.similarity:.4f}",
        ]
    )
    if shown:
        texts(shown[0], shown[1], (str(one.kept_id), str(one.doc_id)))
    _print_lines(["Are the two the same? y yes, n no, space skip, u back, q stop"])


def pair(listed: ListedPair, compared: Comparison) -> None:
    """Print how similar the two documents of a pair are."""
    a, b = (
        _named(listed.doc_a, listed.file_a, listed.row_a),
        _named(listed.doc_b, listed.file_b, listed.row_b),
    )
    _print_lines(
        [
            f"{a} and {b} have a similarity of {listed.similarity:.4f}.",
            _shared(compared, "the first", "the second"),
        ]
    )
    _print_passages(compared)


def pairs_of(pairs: Sequence[ListedPair]) -> None:
    """Print the pairs of one document, most similar first."""
    name = _named(pairs[0].doc_a, pairs[0].file_a, pairs[0].row_a)
    _print_lines([f"{name} is in {len(pairs):,} pair{'s'[: len(pairs) != 1]}:"])
    others = (
        f"  {pair.similarity:.4f}  {_named(pair.doc_b, pair.file_b, pair.row_b)}" for pair in pairs
    )
    _print_lines(itertools.islice(others, MAX_MEMBERS))
    if len(pairs) > MAX_MEMBERS:
        _print_lines([f"  and {len(pairs) - MAX_MEMBERS:,} more; --json lists all"])


def _print_passages(compared: Comparison) -> None:
    """Print how much of both texts lies in passages that they share, and where the longest are."""
    if not compared.passages:
        return
    from neardup.align.shared_passages import MIN_WORDS

    longest_first = sorted(compared.passages, key=lambda passage: -passage.words)
    shown = [
        f"  {passage.words:,} words: A line {passage.line_a:,}, B line {passage.line_b:,}"
        for passage in longest_first[:MAX_SHOWN_PASSAGES]
    ]
    if len(longest_first) > MAX_SHOWN_PASSAGES:
        shown.append(f"  and {len(longest_first) - MAX_SHOWN_PASSAGES:,} shorter ones")
    _print_lines([_passage_counts(compared, MIN_WORDS), *shown])


def _shared(compared: Comparison, a: str, b: str) -> str:
    union = compared.shingles_a + compared.shingles_b - compared.shared
    return (
        f"They share {compared.shared:,} of {union:,} distinct shingles: {100 * compared.containment_a:.1f} % of {a} "
        f"(A), {100 * compared.containment_b:.1f} % of {b} (B)."
    )


def _cause(answer: Explanation) -> str:
    value = answer.similarity or 0.0
    contains = f"it contains {100 * value:.1f} % of the shingles of"
    if asks_containment(answer.measure):
        return contains
    return f"it has a similarity of {value:.4f} to"


def _named(doc_id: str, file: str | None, row: int | None) -> str:
    if file is None or doc_id == f"{file}:{row}":
        return doc_id
    return f"{doc_id} ({file}:{row})"


def _members(name: str, answer: Explanation) -> Iterator[str]:
    members = answer.members
    if not members:
        yield f"{name} was kept. {answer.reason}, and nothing was removed in its favour."
        return
    if len(members) == 1:
        removed = "1 document was"
    else:
        removed = f"{len(members):,} documents were"
    yield f"{name} was kept. {removed} removed in its favour:"
    yield from (f"  {similarity:.4f}  {doc_id}" for doc_id, similarity in members[:MAX_MEMBERS])
    if len(members) > MAX_MEMBERS:
        yield f"  and {len(members) - MAX_MEMBERS:,} more; --json lists all"


def clusters(report: Report, *, has_compiled: bool) -> None:
    """Print the kept and removed documents with their similarities, then what the run promises."""
    console = _console()
    symbols = _symbols(console)
    removals: dict[str, list[dict[str, Any]]] = {}
    for removal in report.removed.to_pylist():
        removals.setdefault(removal["kept_id"], []).append(removal)
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("kept document, removed duplicates", overflow="fold")
    table.add_column("similarity", no_wrap=True)
    for kept_id, group in removals.items():
        table.add_row(Text(visible(kept_id), "bold green"), "")
        for removal in group:
            branch = symbols.last if removal is group[-1] else symbols.branch
            bar = _bar(
                removal["similarity"],
                report.config.threshold,
                symbols,
                width=20 if console.width >= 60 else 0,
            )
            table.add_row(f"{branch}{visible(removal['doc_id'])}", bar)
        table.add_section()
    console.print(table)
    promises = _promises(report, num_leaders=len(removals), has_compiled=has_compiled)
    _print_lines(f"  {line}" for line in promises)


def _bar(similarity: float, threshold: float, symbols: Symbols, *, width: int) -> Text:
    """A number and a bar, red below the threshold."""
    style = "red" if similarity < threshold else "cyan"
    filled = round(similarity * width)
    full = symbols.full * filled
    rest = symbols.rest * (width - filled)
    return Text.assemble((f"{similarity:.3f} ", style), (full, style), (rest, "dim"))


def _promises(report: Report, *, num_leaders: int, has_compiled: bool) -> Iterator[str]:
    from neardup.report import count_below

    numbers = report.as_dict()
    yield (
        f"{numbers['documents']} documents: {numbers['kept']} kept ({numbers['kept'] - num_leaders} without "
        f"duplicates), {numbers['removed']} removed ({numbers['exact_duplicates']} exact copies), "
        f"{numbers['rejected']} rejected."
    )
    if below := count_below(report.removed, report.config.threshold):
        are = "document is" if below == 1 else "documents are"
        yield f"{below} removed {are} below the threshold: cluster=components follows chains of pairs."
    else:
        yield f"Nothing false: every removed document has a verified similarity >= {report.config.threshold:g}."
    yield f"Known recall: {report.plan.judgement()}."
    if has_compiled:
        compiling = ", mostly to compile the kernels, which only the first run does"
    else:
        compiling = ""
    yield f"{report.bytes_read / 1e3:.0f} kB in {report.seconds:.2f} s{compiling}."
