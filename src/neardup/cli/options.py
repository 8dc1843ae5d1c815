"""The options of all commands, built from the fields of Config: every default and help text is written once."""

from __future__ import annotations

import dataclasses
import functools
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from neardup.config import (
    CHOICES,
    KEEP_BY_PATH,
    KEEP_COLUMN_ORDERS,
    KEEP_ORDERS,
    RANDOM_SEED,
    Config,
)
from neardup.config.checks import ALL
from neardup.errors import ConfigError

SIMILAR: Final = "Similarity"
COLUMNS: Final = "Columns"
STAYS: Final = "What to keep"
OUTPUT: Final = "Output"
WORK: Final = "Execution"
HEADINGS: Final = (SIMILAR, COLUMNS, STAYS, OUTPUT, WORK)

STDIN: Final = "-"

Function = TypeVar("Function", bound=Callable[..., Any])


class _Setting(NamedTuple):
    """How a field of Config appears on the command line; `kind` if its default does not determine it."""

    heading: str
    help: str
    metavar: str | None = None
    kind: Any = str
    short: str | None = None


SETTINGS: Final = {
    "threshold": _Setting(
        SIMILAR, "Minimum similarity of a pair; above 0, at most 1.", "NUMBER", short="-t"
    ),
    "distance": _Setting(
        SIMILAR,
        "Threshold as a distance instead: number of bits, 1 - cosine, or Euclidean distance.",
        "NUMBER",
        float,
    ),
    "recall": _Setting(
        SIMILAR,
        "Probability of finding a pair exactly at the threshold; 1 selects the exact method.",
        "NUMBER",
    ),
    "measure": _Setting(
        SIMILAR,
        "Similarity measure: jaccard and containment take texts or items; the others weighted items, bits or vectors.",
    ),
    "dimension": _Setting(
        SIMILAR, "Dimension of the vectors; taken from the first one by default.", "N", int
    ),
    "packed": _Setting(
        SIMILAR, "Bits are packed into bytes, eight to a byte, most significant first."
    ),
    "unit": _Setting(
        SIMILAR,
        "Unit of a shingle; char suits short texts and names; code compares tokens of source code.",
    ),
    "size": _Setting(SIMILAR, "Number of consecutive units in a shingle.", "N"),
    "language": _Setting(
        SIMILAR,
        "With --unit code: language of all texts, such as python; default: by the ending of each file.",
        "NAME",
    ),
    "code_names": _Setting(
        SIMILAR, "With --unit code: fold makes all names one token, keep compares them."
    ),
    "multiset": _Setting(SIMILAR, "Count repeated shingles instead of ignoring repetitions."),
    "weights": _Setting(
        SIMILAR,
        "Weigh shingles or items by how rare they are in the input and --against: weighted Jaccard similarity.",
        "idf",
    ),
    "fold_numbers": _Setting(SIMILAR, "Treat every number as the same word."),
    "normalise": _Setting(
        SIMILAR, "Unicode normalisation form; nfkc also folds ligatures and full-width letters."
    ),
    "fold_accents": _Setting(SIMILAR, "Treat letters with and without accents as equal."),
    "ignore": _Setting(
        SIMILAR,
        "File whose shingles are ignored: a template, a licence, starter code; repeatable.",
        "PATH",
    ),
    "ignore_common": _Setting(
        SIMILAR,
        "Ignore shingles in more than this share of the documents, such as 5%, of a group of 50 or more.",
        "SHARE",
        str,
    ),
    "common_by": _Setting(
        SIMILAR,
        "With --ignore-common: the groups: host (of the column url, or of an id that is a URL), file, or a column; "
        "default: all documents.",
        "HOST|FILE|COLUMN",
    ),
    "html": _Setting(SIMILAR, "Parse the texts as HTML and compare their main content."),
    "html_content": _Setting(
        SIMILAR,
        "With --html: main skips navigation and other template text; all compares all visible text.",
    ),
    "collapse_empty": _Setting(
        SIMILAR, "Treat documents without shingles as copies of each other."
    ),
    "method": _Setting(
        SIMILAR,
        "How to find pairs: lsh uses bands, exact finds every pair, auto chooses and says why.",
    ),
    "sketch": _Setting(
        SIMILAR, "How to compute signatures; minhash is the textbook method, and slower."
    ),
    "num_perm": _Setting(
        SIMILAR,
        "Slots per signature: a power of two (any number with minhash); default 128, or 1024 for hamming and cosine.",
        "N",
        int,
    ),
    "bands": _Setting(
        SIMILAR, "Bands per signature; derived from threshold and recall by default.", "N", int
    ),
    "rows": _Setting(
        SIMILAR, "Rows per band; derived from threshold and recall by default.", "N", int
    ),
    "seed": _Setting(SIMILAR, "Seed of all hashes; random draws a secret one.", "N|random"),
    "signature_filter": _Setting(
        SIMILAR, "Skip the exact comparison if the signatures already rule a pair out."
    ),
    "text_column": _Setting(
        COLUMNS,
        "Column with the text; repeat to join several. Default: text, content or body.",
        "NAME",
    ),
    "id_column": _Setting(
        COLUMNS, "Column with the id. Default: id or url, otherwise file:row.", "NAME"
    ),
    "items_column": _Setting(
        COLUMNS, "Column with a list of items to compare instead of a text.", "NAME"
    ),
    "long": _Setting(
        COLUMNS, "Rows of --items-column have one item each; those with the same id are one set."
    ),
    "vector_column": _Setting(
        COLUMNS, "Column with the vectors. Default: vector or embedding.", "NAME"
    ),
    "group_column": _Setting(
        COLUMNS, "Compare only documents with the same value in this column.", "NAME"
    ),
    "format": _Setting(
        COLUMNS, "Format of all files, regardless of extension; with text, each file is a document."
    ),
    "encoding": _Setting(
        COLUMNS,
        "Encoding of text, JSON and CSV files, such as latin-1; auto detects that of each; default UTF-8.",
        "NAME",
    ),
    "include": _Setting(
        COLUMNS,
        "Of folders and globs, read only files whose path matches, such as '*.md' or 'pages/**'; repeatable.",
        "GLOB",
    ),
    "exclude": _Setting(
        COLUMNS, "Leave out files whose path matches; wins over --include; repeatable.", "GLOB"
    ),
    "lines": _Setting(
        COLUMNS, "Treat every line of a plain text file as a document, not the whole file."
    ),
    "delimiter": _Setting(
        COLUMNS, r"Column separator of CSV files, such as ';' or '\t'.", "CHARACTER"
    ),
    "max_document": _Setting(
        COLUMNS,
        "Maximum size of a line, CSV record, value or text file; longer ones are rejected.",
        "SIZE",
    ),
    "keep": _Setting(
        STAYS,
        "Which document of a cluster to keep; path:GLOB,GLOB prefers files by path; "
        "with --level, first, or none: of repeated parts none stays.",
        "first|last|longest|max:COLUMN|min:COLUMN|path:GLOB",
    ),
    "cluster": _Setting(
        STAYS,
        "leader: every removed document is similar to its kept one; components: transitive closure of pairs.",
    ),
    "per_cluster": _Setting(
        STAYS,
        "Number of documents to keep per cluster: the kept one, then the next in keep order; "
        "with --level, of places of a part.",
        "N",
    ),
    "level": _Setting(
        STAYS,
        "Remove repeated paragraphs or lines from the texts, not documents; --threshold is then 1: equal words.",
    ),
    "decisions": _Setting(
        STAYS,
        "File with decisions about single documents, exported from the page of a run.",
        "PATH",
    ),
    "against": _Setting(
        STAYS,
        "Files, finished runs or an index whose documents are always kept; repeatable.",
        "PATH",
    ),
    "only_against": _Setting(STAYS, "Compare the input with --against only, not with itself."),
    "one_to_one": _Setting(
        OUTPUT,
        "With --against: list only pairs of two documents that are each other's best partner.",
    ),
    "against_text_column": _Setting(
        COLUMNS,
        "Column with the text of --against; repeat to join several. Default: that of the input.",
        "NAME",
    ),
    "against_items_column": _Setting(
        COLUMNS, "Column with the items of --against. Default: that of the input.", "NAME"
    ),
    "against_id_column": _Setting(
        COLUMNS, "Column with the id of --against. Default: that of the input.", "NAME"
    ),
    "min_count": _Setting(
        STAYS,
        "Cut or mark only words in a window of --min-words, or with --level parts, with this many places.",
        "N",
    ),
    "min_left": _Setting(
        STAYS, "With --cut or --level, remove a document of which fewer words are left.", "N"
    ),
    "cut": _Setting(
        OUTPUT, "Write the rows of the input without the passages or items that were found."
    ),
    "item_column": _Setting(
        COLUMNS, "Column of --against with the items; repeatable: joined in order.", "NAME"
    ),
    "rule": _Setting(
        SIMILAR,
        "When an item is found: coverage (enough of its words in order, with gaps) or ngram13 (13 words in a row).",
    ),
    "weights_from": _Setting(
        SIMILAR, "Weigh words as this finished run did, so that parts of a corpus agree.", "RUN"
    ),
    "around": _Setting(OUTPUT, "With --cut, cut so many words beside an item, too.", "WORDS"),
    "remove": _Setting(OUTPUT, "Write the rows of the input without contaminated documents."),
    "mark": _Setting(
        OUTPUT,
        "Write all rows, with columns that say which are kept, instead of the kept rows only.",
    ),
    "pairs": _Setting(OUTPUT, "Also store every found pair, as pairs.parquet."),
    "passages": _Setting(OUTPUT, "List the passages that both texts share, with their positions."),
    "edits": _Setting(
        OUTPUT,
        "With --passages: find passages copied with edits, such as changed, missing or moved words.",
    ),
    "min_words": _Setting(
        OUTPUT,
        "Minimum words of a passage, default 8, with --edits 18; or of a part of --level, of code of --unit code.",
        "N",
        int,
    ),
    "dry_run": _Setting(OUTPUT, "Write the removed documents and the report, but no kept rows."),
    "text_out": _Setting(
        OUTPUT,
        "Also write the text of every document as it is compared, such as that of HTML; .parquet or .jsonl.",
        "FILE",
    ),
    "audit": _Setting(
        OUTPUT, "Measure the recall on a sample after the run, and add it to the report."
    ),
    "overwrite": _Setting(OUTPUT, "Replace an existing output."),
    "strict": _Setting(
        WORK, "Fail at the first row that cannot be used, instead of listing it as rejected."
    ),
    "engine": _Setting(WORK, "Where to run: this machine or a Spark cluster."),
    "master": _Setting(
        WORK,
        "Address of the Spark cluster, such as yarn; default: the one spark-submit sets.",
        "URL",
    ),
    "spark_conf": _Setting(WORK, "Spark setting; repeatable.", "NAME=VALUE"),
    "memory": _Setting(
        WORK, "Memory target, such as 4GB; default half of the free memory.", "SIZE"
    ),
    "threads": _Setting(
        WORK, "Number of threads; default one per core. Never changes a result.", "N", int
    ),
}
_REPEATABLE: Final = frozenset(
    {"ignore", "text_column", "item_column", "against", "against_text_column", "spark_conf"}
    | {"include", "exclude"}
)

# The settings about passages of two texts.
PASSAGE_SETTINGS: Final = ("passages", "edits", "min_words")
# The settings for comparing two texts; commands on files add the rest.
TEXT_SETTINGS: Final = (
    *("threshold", "distance", "recall", "measure", "unit", "size", "language"),
    *("code_names", "multiset", "fold_numbers"),
    *("normalise", "fold_accents", "ignore", "html", "html_content"),
    *("method", "sketch", "num_perm", "bands", "rows", "seed", "signature_filter"),
)
# Of whole runs.
RUN_SETTINGS: Final = ("weights", "ignore_common", "common_by", "text_out")
COLUMN_SETTINGS: Final = (
    "text_column",
    "id_column",
    "items_column",
    "vector_column",
    "group_column",
)
INPUT_SETTINGS: Final = (
    *TEXT_SETTINGS,
    *("dimension", "packed", "collapse_empty"),
    *(*COLUMN_SETTINGS, "format", "encoding", "lines", "delimiter", "max_document"),
    *("include", "exclude"),
    *("against", "only_against", "against_text_column", "against_items_column"),
    *("against_id_column", "strict", "engine", "master", "spark_conf", "memory", "threads"),
)


class _Seed(click.ParamType):  # type: ignore[type-arg]
    """A whole number, or `random`."""

    name = "seed"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == RANDOM_SEED:
            return value
        return click.INT.convert(value, param, ctx)


class Option(click.Option):
    """An option that knows the heading it is listed under."""

    def __init__(self, *args: Any, heading: str = OUTPUT, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.heading = heading


class Command(click.Command):
    """A command whose help lists its options under headings; where an error has no hint, it refers to its help."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except ConfigError as error:
            error.hint = error.hint or f"{ctx.command_path} --help lists the options"
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one list of options for each heading that has any."""
        by_heading: dict[str, list[tuple[str, str]]] = {heading: [] for heading in HEADINGS}
        for parameter in self.get_params(ctx):
            if isinstance(parameter, click.Option):
                record = parameter.get_help_record(ctx)
            else:
                record = None
            if record is not None:
                by_heading[getattr(parameter, "heading", WORK)].append(record)
        for heading, records in by_heading.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records, col_max=34)


class NumberOrAll(click.ParamType):  # type: ignore[type-arg]
    """A whole number, or `all`."""

    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | str:
        """Return the number, or `all`."""
        return ALL if value == ALL else int(click.INT.convert(value, param, ctx))


def settings(*names: str) -> Callable[[Function], Function]:
    """Give a command the options of these fields of Config, and pass them to it as one `config`."""
    ordered = [name for name in SETTINGS if name in names]

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def call(**values: Any) -> Any:
            chosen = {name: _value(name, values.pop(name)) for name in ordered}
            given = {name: value for name, value in chosen.items() if not _is_default(name)}
            return function(config=Config.of(**given), **values)

        decorated: Any = call
        for name in reversed(ordered):
            decorated = _option(name)(decorated)
        return decorated  # type: ignore[no-any-return]

    return decorate


def option(
    *names: str, heading: str = OUTPUT, what: str, **attributes: Any
) -> Callable[[Function], Function]:
    """Give a command an option that is not a setting; the help shows its default."""
    return click.option(
        *names,
        cls=Option,
        heading=heading,
        help=what,
        show_default="default" in attributes,
        **attributes,
    )


def output(metavar: str, what: str, *, required: bool = True) -> Callable[[Function], Function]:
    """Give a command `-o`."""
    return option(
        "-o", "--output", "out", what=what, required=required, type=click.Path(), metavar=metavar
    )


def inputs(*, required: bool = True) -> Callable[[Function], Function]:
    """Give a command its inputs and `--files-from`; the library resolves them, because a glob is not a path."""

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def call(inputs: tuple[str, ...], files_from: str | None, **values: Any) -> Any:
            if files_from is not None:
                inputs = (*inputs, *_listed(files_from, inputs))
            elif required and not inputs:
                raise click.UsageError("Missing argument 'INPUT...'.")
            return function(inputs=inputs, **values)

        decorated: Any = option(
            "--files-from",
            heading=COLUMNS,
            what="Also read the inputs listed in this file, one per line; - is standard input.",
            type=click.Path(allow_dash=True),
            metavar="FILE",
        )(call)
        metavar = "INPUT..." if required else "[INPUT...]"
        named: Function = click.argument(
            "inputs", nargs=-1, type=click.Path(allow_dash=True), metavar=metavar
        )(decorated)
        return named

    return decorate


def _listed(path: str, inputs: Iterable[str]) -> list[str]:
    """Return the inputs that a file lists: one per line, or each before a NUL, as `find -print0` writes them."""
    if path == STDIN and STDIN in inputs:
        raise click.UsageError(
            'standard input can be read only once: --files-from and INPUT are both "-"'
        )
    try:
        content = sys.stdin.buffer.read() if path == STDIN else Path(path).read_bytes()
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(
            f"--files-from {path} cannot be read: {error.strerror or error}"
        ) from error
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"--files-from {path}, line {line}: a path that is not UTF-8", hint="rename the file"
        ) from error
    if "\0" in text:
        listed = text.split("\0")
    else:
        listed = [line.removesuffix("\r") for line in text.split("\n")]
    paths = [line for line in listed if line]
    if not paths:
        raise ConfigError(f"--files-from {path} lists no files", hint="write one path per line")
    if path == STDIN and STDIN in paths:
        raise ConfigError(
            f"--files-from {path} lists -, which is the list itself", hint="leave it out"
        )
    return paths


class InputPath(os.PathLike[str]):
    """An input as it was typed: a path, a glob, an address or `-`, which pathlib.Path would rewrite."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __fspath__(self) -> str:
        return self._path


def as_paths(inputs: Iterable[str]) -> list[InputPath]:
    """Return the inputs of a command as a source of the library, for which a list of str is a list of texts."""
    return [InputPath(path) for path in inputs]


def as_json(what: str) -> Callable[[Function], Function]:
    """Give a command `--json`."""
    return option("--json", "as_json", what=f"Print {what} as one JSON object.", is_flag=True)


def quiet(what: str) -> Callable[[Function], Function]:
    """Give a command `-q`."""
    return option("-q", "--quiet", what=what, is_flag=True)


def option_of(name: str) -> str:
    """Return the option of a field of Config.

    >>> option_of("num_perm")
    '--num-perm'
    """
    return f"--{name.replace('_', '-')}"


def words_of(name: str, value: Any) -> list[str]:
    """Return the words of a command line that give a setting a value.

    >>> words_of("text_column", ("name", "town")), words_of("html", True), words_of("max_document", 2_000_000)
    (['--text-column', 'name', '--text-column', 'town'], ['--html'], ['--max-document', '2000000'])
    """
    option = option_of(name)
    if isinstance(value, bool):
        return [option] if value else [f"--no-{option[2:]}"]
    if isinstance(value, (tuple, list)):
        return [word for one in value for word in (option, str(one))]
    return (
        [] if value is None else [option, f"{value:g}" if isinstance(value, float) else str(value)]
    )


def _option(name: str) -> Callable[[Function], Function]:
    setting = SETTINGS[name]
    default = _default(name)
    flag = option_of(name)
    attributes: dict[str, Any] = {"cls": Option, "heading": setting.heading, "help": setting.help}
    if isinstance(default, bool):
        # Only a setting that is on by default needs a word to turn it off.
        flag = f"{flag}/--no-{flag[2:]}" if default else flag
        return click.option(
            flag, name, is_flag=True, default=default, show_default=default, **attributes
        )
    if name == "max_document":
        default = f"{default // 10**6}MB"
    attributes |= {
        "metavar": setting.metavar,
        "type": _kind(name, default),
        "show_default": bool(default),
    }
    if name == "keep":
        attributes["shell_complete"] = _complete_keep
    if name in _REPEATABLE:
        return click.option(flag, name, multiple=True, **attributes)
    return click.option(*filter(None, [setting.short, flag]), name, default=default, **attributes)


def _is_default(name: str) -> bool:
    return click.get_current_context().get_parameter_source(name) is ParameterSource.DEFAULT


def _default(name: str) -> Any:
    return next(field.default for field in dataclasses.fields(Config) if field.name == name)


def _kind(name: str, default: Any) -> Any:
    if name in CHOICES:
        return click.Choice(CHOICES[name])
    if name in ("against", "ignore"):
        return click.Path()
    if name == "seed":
        return _Seed()
    if name in _REPEATABLE:  # the type of one of the values
        return str
    return SETTINGS[name].kind if default is None else type(default)


def _value(name: str, given: Any) -> Any:
    if name == "text_column":
        return given or None
    if name == "delimiter" and given == r"\t":  # an escaped tab, as the shell passes it on
        return "\t"
    return given


def _complete_keep(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> Iterable[CompletionItem]:
    del ctx, parameter
    orders = (*KEEP_ORDERS, *(f"{order}:" for order in (*KEEP_COLUMN_ORDERS, KEEP_BY_PATH)))
    return [CompletionItem(order) for order in orders if order.startswith(incomplete)]
