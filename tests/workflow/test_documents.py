"""Every block of code of README and docs/ as it stands: run, checked as part of a config, or left with a reason."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import xarray as xr

from sweeplib.config import from_mapping
from sweeplib.config.options import cluster_settings
from sweeplib.engine.files.strict_yaml import document

ROOT = Path(__file__).parents[2]
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    *(path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs").rglob("*.md"))),
]
BLOCKS = [
    (page, *match.groups())
    for page in PAGES
    for match in re.finditer(r"^```([^`\n]*)\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    if not match[1].startswith("{")  # a directive
]
TESTED_ELSEWHERE = {"docs/how-to/plugins.md": "tests/unit/test_plugins_page.py runs all of its files"}
IN_ORDER = [
    "docs/tutorial.md",
    "docs/tutorial-functions.md",
    "docs/how-to/growing.md",
    "docs/how-to/reading.md",
    "docs/how-to/figures.md",
    "docs/how-to/watching.md",
    "docs/how-to/merging.md",
    "docs/how-to/handing-on.md",
    "docs/how-to/functions.md",
]
"""Pages whose examples go on from those of the pages before, in one folder."""
ALONE = ["README.md", "docs/how-to/python.md"]
"""Pages whose Python runs in an empty folder."""
NOTEBOOKS = [page for page in PAGES if "{code-cell}" in (ROOT / page).read_text()]
"""Pages whose cells `make docs` runs."""
NOT_RUN = {
    "make sweep ": "installs packages from the network; without that, test_working_directory.py runs it",
    "make test ": "would run these tests in themselves",
    "python3 -m venv": "installs packages from the network",
    "pip install": "installs packages from the network; test_wheel.py runs the commands after it",
    "Snakefile, workflow/": "the list of folders",
    "        you: a YAML file": "the drawing of the rooms",
    "git clone": "needs the network",
    ".venv/bin/sweeplib plan": "installed by `make`, and SLURM follows",
    "sbatch": "needs SLURM: tests/slurm/on_slurm.py",
    "dask scheduler": "starts processes that do not end; tests/contracts/test_clusters.py uses such a scheduler",
    "# start.py": "needs Kubernetes: tests/unit/test_kubernetes.py",
    "ssh": "needs another machine",
    "answers:": "a part of a config: tests/unit/test_answers*.py have whole ones",
    "sweep = sweeplib.Sweep(...,": "a call with its other arguments left out",
    "openssl": "needs the command openssl; tests/contracts/test_clusters.py has schedulers with TLS",
    "from sweeplib.commands.snakemake": "a Snakefile, which tests/workflow/test_modules.py runs",
    "FLOOR = Layer(": "an excerpt of sweeplib/pictures/figures/scaling.py",
    "snakemake --profile": "as in test_workflow.py",
    "scan: dashboard": "what a longer sweep says: one of seconds runs without a cluster",
    "docker": "needs Docker and the network",
    "@software": "a record for BibTeX",
}
"""Blocks that do not run here, by how they begin, each with the reason."""


def of(language: str) -> list[tuple[str, str]]:
    return [(page, text) for page, kind, text in BLOCKS if kind == language and page not in TESTED_ELSEWHERE]


def not_run(text: str) -> bool:
    return any(text.startswith(start) for start in NOT_RUN)


def test_the_first_page_leads_to_every_how_to() -> None:
    text = (ROOT / "docs/index.md").read_text()
    pages = {path.name for path in (ROOT / "docs/how-to").glob("*.md")} - {"index.md"}
    assert not {page for page in pages if f"(how-to/{page})" not in text}


def test_every_block_is_run_or_has_a_reason_not_to() -> None:
    run = {*of("yaml"), *STARTED, *((page, text) for page, text in of("python") if page in ALONE)}
    for page, _, text in BLOCKS:
        assert page in TESTED_ELSEWHERE or page in IN_ORDER or (page, text) in run or not_run(text), (
            f"{page}: {text[:60]!r}"
        )
    for start in NOT_RUN:
        assert any(text.startswith(start) for _, _, text in BLOCKS), f"no block begins with {start!r}"


STARTED = [
    (page, text) for page, text in of("sh") if text.startswith("sweeplib new") and page not in IN_ORDER
]  # fmt: skip


@pytest.mark.parametrize(
    ("page", "text"), [block for block in of("yaml") if "\nfrom: " not in block[1] and not not_run(block[1])]
)
def test_yaml_is_valid(page: str, text: str, tmp_path: Path) -> None:
    content = document(re.sub("\\.\\.\\.", "", text)).data
    (tmp_path / "points.csv").write_text("gamma,d,n\n0.05,300,8\n")
    (tmp_path / "mine.csv").write_text("time,risk\n0,1\n")
    for where, kind, code in BLOCKS:
        if where == page and kind == "py":  # a file of functions
            (tmp_path / code.partition("\n")[0].removeprefix("# ")).write_text(code)
    if set(content) == {"cluster"}:
        assert cluster_settings(content["cluster"])
    elif "dynamics" not in content and "simulator" not in content:  # keys that are added to a config
        from_mapping(document((ROOT / "config/quickstart.yaml").read_text()).data | content, tmp_path)
    else:
        from_mapping({"name": "any", **content}, tmp_path)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a reader who goes from page to page."""
    return tmp_path_factory.mktemp("desk")


@pytest.mark.slow
@pytest.mark.parametrize("page", IN_ORDER)
def test_the_examples_of_a_page_run_after_those_of_the_pages_before(page: str, desk: Path) -> None:
    for earlier in IN_ORDER[: IN_ORDER.index(page) + 1]:
        done = desk / f".{Path(earlier).name}"
        if not done.exists():
            follow(earlier, desk)
            done.touch()


@pytest.mark.slow
@pytest.mark.parametrize("page", ALONE)
def test_python_of_a_page_runs_in_an_empty_folder(page: str, tmp_path: Path) -> None:
    run_python([text for where, text in of("python") if where == page], tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("page", NOTEBOOKS)
def test_the_cells_of_a_notebook_run(page: str, tmp_path: Path) -> None:
    """As `make docs` runs them, from the folder of the page."""
    text, folder = (ROOT / page).read_text(), tmp_path / "docs" / "notebooks"
    cells = re.findall(r"^```\{code-cell\} python\n(?:---\n.*?^---\n)?(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(cells) == text.count("{code-cell}")
    folder.mkdir(parents=True)
    (tmp_path / "config").symlink_to(ROOT / "config")
    run_python(cells, folder)


def follow(page: str, folder: Path) -> None:
    """Write the files of a page, run its commands, compare what they print with what it shows, run its Python."""
    printed = ""
    for where, kind, text in BLOCKS:
        name, _, content = text.partition("\n")
        if where != page or kind == "python" or not_run(text):
            continue
        if name.startswith("# "):
            (folder / name.removeprefix("# ")).write_text(content)
        elif kind == "sh":
            printed = shell(text, folder)
        elif kind == "text":
            shown = ".*".join(re.escape(part.strip()) for part in " ".join(text.split()).split("..."))
            assert re.search(shown, " ".join(printed.split())), printed
    run_python([text for where, text in of("python") if where == page], folder)


def shell(text: str, folder: Path) -> str:
    """Return what commands print; `sweeplib` is this one."""
    here = f'sweeplib() {{ "{sys.executable}" -m sweeplib "$@"; }}\nset -e\n'
    done = subprocess.run(
        ["bash", "-c", here + text], cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


def run_python(blocks: list[str], folder: Path) -> None:
    """Run blocks that follow each other as in a notebook."""
    lines = "".join(f"    {line}\n" if line else "\n" for line in "\n".join(blocks).splitlines())
    (folder / "script.py").write_text(f"if __name__ == '__main__':\n    pass\n{lines}")
    subprocess.run([sys.executable, "script.py"], cwd=folder, env=ENVIRONMENT, check=True)


ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}


@pytest.mark.parametrize("page", NOTEBOOKS)
def test_the_cells_of_a_notebook_print_whole_lines(page: str) -> None:
    """What a cell has printed so far is sent by the clock, and a line ends where two such pieces are joined."""
    assert "end=" not in (ROOT / page).read_text()


def test_a_cell_that_only_warns_has_no_place_of_an_output_on_its_page() -> None:
    """Five notebooks warned of a dashboard's port or did not, by what else ran: two builds had other pages."""
    pytest.importorskip("sphinx", reason="the site is built in an environment of its own")
    from docutils import nodes
    from docutils.utils import new_document

    from docs.extensions.notebook_runs import leave_out_empty_outputs

    warned, printed = (nodes.container("", *inside, classes=["cell_output"]) for inside in ((), (nodes.paragraph(),)))
    (page := new_document("page")).extend([warned, printed])
    leave_out_empty_outputs(None, page)
    assert page.children == [printed]


def test_headers_without_a_name_are_plain_cells() -> None:
    """Pandas writes them above and beside an index; whoever hears a page hears of a header and no name."""
    pytest.importorskip("sphinx", reason="the site is built in an environment of its own")
    from docutils import nodes
    from docutils.utils import new_document

    from docs.extensions.notebook_runs import leave_out_empty_headers

    table = pd.DataFrame({"risk": [0.5]}, index=pd.Index([0.1], name="gamma")).to_html()
    (page := new_document("page")).append(nodes.raw("", table, format="html"))
    leave_out_empty_headers(None, page)
    assert "<th></th>" in table
    assert page.children[0].astext() == table.replace("<th></th>", "<td></td>")
    assert page.children[0]["format"] == "html"


@pytest.mark.long
@pytest.mark.parametrize(("page", "text"), STARTED)
def test_the_commands_to_start_with_run(page: str, text: str, tmp_path: Path) -> None:
    shell(text, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["scan", "quickstart"])
def test_the_first_scans_of_a_user_contain_the_optima(name: str, tmp_path: Path) -> None:
    """Of every dynamics, that of SGD included, which lies above that of its ODE: no figure has arrows for optima."""
    (tmp_path / "quickstart.yaml").write_text((ROOT / "config" / "quickstart.yaml").read_text())
    shell(f"sweeplib new scan.yaml\nsweeplib sweep {name}.yaml", tmp_path)
    folder = tmp_path / "results" / name
    scanned = xr.open_zarr(folder / "dataset.zarr").gamma
    found = xr.open_zarr(folder / "analysis" / "optimal_learning_rate.zarr").load()
    run = found.gammas_used > 0
    assert run.any(["d", "threshold", *({"Delta"} & set(run.dims))]).all() and not found.at_edge.any()
    assert (found.gamma_opt.notnull() == run).all()
    assert (found.gamma_opt_low.where(run, 1.0) > scanned.min()).all()
    assert (found.gamma_opt_high.where(run, 0.0) < scanned.max()).all()
    assert "optimal learning rate" in (folder / "report" / "index.html").read_text()


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files_and_headings(page: str) -> None:
    """Links between pages, as a reader of the repository follows them; `make docs` checks those of the site."""
    text = re.sub(r"^```.*?^```", "", (ROOT / page).read_text(), flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        name, _, anchor = link.partition("#")
        target = (ROOT / page).parent / name if name else ROOT / page
        if not link.startswith("http"):
            assert target.exists(), f"{page}: {link}"
            assert not anchor or anchor in headings(target), f"{page}: {link}"


@pytest.mark.parametrize("page", [*PAGES, "config/README.md"])
def test_columns_of_tables_have_names(page: str) -> None:
    """Who hears a table hears them."""
    heads = re.findall(r"^(\|.*\|)\n\|[-:| ]+\|$", (ROOT / page).read_text(), re.MULTILINE)
    assert [head for head in heads if re.search(r"(?<!\\)\|\s*\|", head)] == []


def headings(page: Path) -> set[str]:
    """Return the anchors of the headings of a page, as GitHub and MyST make them."""
    titles = re.findall(r"^#+ (.*)", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.strip().lower()).replace(" ", "-") for title in titles}
