"""What a release and its visitors rely on: one version, workflows that call the Makefile, hooks that run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from neardup.cli.main import COMMANDS
from neardup.cli.passages import passages
from neardup.version import VERSION

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
HOOK = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))[0]["entry"]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))["runs"]["steps"][-1]["run"]


def steps_of(workflow: Path) -> list[str]:
    jobs = yaml.safe_load(workflow.read_text("utf-8"))["jobs"].values()
    return [step["run"] for job in jobs for step in job["steps"] if "run" in step]


def test_the_version_stands_in_one_place_and_the_citation_has_it():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))

    assert str(citation["version"]) == VERSION
    assert not re.search(r"^version = ", (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_every_step_of_a_workflow_is_something_that_runs_here_too(workflow):
    for step in steps_of(workflow):
        target = re.fullmatch(r"make ([a-z-]+)", step)
        script = re.fullmatch(r"(?:bash|\.venv/bin/python) (\S+).*", step)
        if target is not None:
            assert f"\n{target[1]}: " in MAKEFILE, step
        else:
            assert script is not None, step
            assert (ROOT / script[1]).is_file(), step


@pytest.mark.parametrize("command", [HOOK, ACTION], ids=["hook", "action"])
def test_what_other_repositories_run_is_a_command_with_its_options(command):
    name, subcommand, *rest = command.replace('"', "").split()
    options = {option for parameter in passages.params for option in parameter.opts}

    assert (name, subcommand) == ("neardup", "passages")
    assert subcommand in COMMANDS
    assert {word for word in rest if word.startswith("--")} <= options
    assert "--fail-if-found" in rest
