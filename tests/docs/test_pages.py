"""The pages as data and as plain files: complete twins, true to the database, the same every time."""

from __future__ import annotations

import json
import os
import posixpath
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import duckdb
import pytest
from docs_reading import PLANNED, Made, inside, read, spread

from ascend_compat.docs import html
from ascend_compat.docs.page import Code, Grid, Heading, Link, Outside, Page, Picture, Status, Table

ROOT = Path(__file__).resolve().parents[2]
SEED = ROOT / "tests" / "data" / "seed" / "590603-zh.txt"
KINDS = {"home", "explorer", "index", "matrix", "model", "feature", "framework", "keys", "rules", "code"} | {
    *("release", "stack", "recipe", "health")
}


def body(page: Page) -> str:
    return "".join(html.render(block, page) for block in page.blocks if not isinstance(block, Heading))


def skeleton(value: Any) -> Any:
    """What a page is made of, without its words: kinds of blocks and pieces, counts, statuses, places and machine's words."""
    if isinstance(value, Heading):
        return ("Heading", value.level, value.anchor)
    if isinstance(value, Link):
        return ("Link", value.page, value.anchor)
    if isinstance(value, Outside):
        return ("Outside", value.href)
    if isinstance(value, Status):
        return ("Status", value.status, value.note)
    if isinstance(value, Code):
        return ("Code", value.text)
    if isinstance(value, Picture):
        return ("Picture", re.findall(r"<(\w+)", value.svg))
    if is_dataclass(value):
        return (type(value).__name__, *(skeleton(getattr(value, each.name)) for each in fields(value)))
    if isinstance(value, (list, tuple)):
        return [made for made in map(skeleton, value) if made is not None]
    return None if isinstance(value, str) else value


def shape(value: Any) -> Any:
    """The keys and lengths of a JSON twin, all the way down."""
    if isinstance(value, dict):
        return {key: shape(each) for key, each in value.items()}
    if isinstance(value, list):
        return [shape(each) for each in value]
    return type(value).__name__


def test_every_kind_of_page_is_there(made: Made, con: duckdb.DuckDBPyConnection) -> None:
    kinds = [page.kind for page in made["en"]]
    assert set(kinds) == KINDS
    for kind, table in (("model", "model"), ("feature", "feature"), ("framework", "framework"), ("code", "code")):
        assert kinds.count(kind) == con.execute(f"SELECT count(*) FROM {table}").fetchone()[0], kind  # type: ignore[index]
    assert kinds.count("release") == con.execute("SELECT count(*) FROM release").fetchone()[0]  # type: ignore[index]
    ids = [page.id for page in made["en"]]
    assert len(ids) == len(set(ids))


def test_both_languages_are_twins(made: Made) -> None:
    english, chinese = made["en"], made["zh"]
    assert [(page.id, page.kind, page.parent) for page in english] == [
        (page.id, page.kind, page.parent) for page in chinese
    ]
    differ = [one.id for one, other in zip(english, chinese) if skeleton(one.blocks) != skeleton(other.blocks)]
    assert differ == []
    differ = [
        one.id
        for one, other in zip(english, chinese)
        if shape(one.data) != shape(other.data) and one.kind != "explorer"
    ]
    assert differ == []


def test_each_language_speaks_its_own(made: Made) -> None:
    chinese = re.compile(r"[\u4e00-\u9fff]")
    silent = [page.id for page in made["zh"] if not chinese.search(page.title + body(page))]
    assert silent == []
    mixed = {page.id for page in made["en"] if chinese.search(page.title + body(page))}
    # names that exist in Chinese alone: aliases of models, labels of a vendor's table
    assert mixed <= {page.id for page in made["en"] if page.kind in ("model", "matrix", "keys", "code", "rules")}, mixed


def test_the_seed_table_reads_back_in_612_cells(made: Made) -> None:
    (page,) = [page for page in made["zh"] if page.id == "matrix/ascendfactory-6.5.906"]
    (grid,) = [block for block in page.blocks if isinstance(block, Grid)]
    table = spread(read(html.render(grid, page)), 0)
    lines = [line.split("\t") for line in SEED.read_text(encoding="utf-8").splitlines()]
    start = next(number for number, cells in enumerate(lines) if cells[0] == "模型系列")
    expected: list[list[str]] = []
    for cells in lines[start + 3 :]:
        if len(cells) == 20:
            expected.append([cells[0] or expected[-1][0], *cells[1:]])
    shown = [row for row in table if len(row) == 20][len(grid.head) :]
    assert len(expected) == 34
    assert sum(len(row) - 2 for row in expected) == 612
    labels = [(row[1], wanted[1]) for row, wanted in zip(shown, expected, strict=True)]
    # a row that stands for several models names them after its label
    assert all(label == wanted or label.startswith(f"{wanted} (") for label, wanted in labels)
    assert [[row[0], *row[2:]] for row in shown] == [[row[0], *row[2:]] for row in expected]
    columns = [cell for cell in lines[start + 2] if cell]
    assert table[len(grid.head) - 1][2:] == columns
    assert [cell for cell in lines[start + 1] if cell] == list(dict.fromkeys(table[len(grid.head) - 2][2:]))


def test_health_counts_what_the_views_count(made: Made, con: duckdb.DuckDBPyConnection) -> None:
    rungs = ("claimed", "smoke", "verified", "contradicted", "stale")
    counts = ", ".join(f"count(*) FILTER (state = '{rung}')" for rung in rungs)
    wanted = con.execute(
        f"SELECT s.product, s.release, s.framework, {counts} FROM cell_state s JOIN release r USING (product, release) "
        "GROUP BY s.product, s.release, s.framework, r.ordinal ORDER BY s.product, r.ordinal, s.framework"
    ).fetchall()
    total = con.execute(f"SELECT {counts} FROM cell_state").fetchone()
    for language in ("en", "zh"):
        (page,) = [page for page in made[language] if page.kind == "health"]
        shown = [
            (product, [int(cell) for cell in row[2 : 2 + len(rungs)]])
            for product, table in zip(dict.fromkeys(row[0] for row in wanted), read(body(page)).tables, strict=True)
            for row in table[1:]
        ]
        assert shown == [(row[0], list(row[3:])) for row in wanted]
        assert tuple(page.data["total"].values()) == total
    assert len(wanted) > 30


def test_no_link_is_dead(made: Made) -> None:
    """In one language; the other has the same links to the same places, as the test of twins holds."""
    readers = {page.id: read(body(page)) for page in made["en"]}
    headings = {page.id: {block.anchor for block in page.blocks if isinstance(block, Heading)} for page in made["en"]}
    dead, seen = [], 0
    for identifier, reader in readers.items():
        for address in reader.links:
            place = inside(address)
            if place is None:
                continue
            seen += 1
            folder = posixpath.dirname(identifier)
            target = (
                posixpath.normpath(posixpath.join(folder, place[0])).removesuffix(".html") if place[0] else identifier
            )
            if target not in readers or (place[1] and place[1] not in readers[target].ids | headings[target]):
                dead.append((identifier, address))
    assert dead == []
    assert seen > 20_000


def test_every_page_has_a_file_and_a_twin(site: Path, made: Made) -> None:
    for language in ("en", "zh"):
        files = {str(path.relative_to(site / language)) for path in (site / language).rglob("*") if path.is_file()}
        assert files == {f"{page.id}.{ending}" for page in made[language] for ending in ("md", "json")}
        for page in made[language]:
            twin = json.loads((site / language / f"{page.id}.json").read_text(encoding="utf-8"))
            assert twin["schema_version"] == 1
            assert (twin["id"], twin["kind"], twin["language"]) == (page.id, page.kind, language)


def test_markdown_needs_no_html(site: Path) -> None:
    texts = [path.read_text(encoding="utf-8") for path in sorted(site.rglob("*.md"))]
    assert len(texts) > 1000
    for text in texts:
        assert text.startswith("# ")
        prose = re.sub(r"^(```+).*?^\1\s*$|`[^`\n]+`|``.+?``", "", text, flags=re.DOTALL | re.MULTILINE)
        assert not re.search(r"(?<!\\)<(?!https?://)[a-z/!]", prose), text[:80]


def test_links_of_markdown_lead_to_files(site: Path) -> None:
    seen = 0
    for path in sorted(site.rglob("*.md")):
        for target in re.findall(r"\]\(([^<)\s]+)\)", path.read_text(encoding="utf-8")):
            assert (path.parent / unquote(target)).is_file(), f"{path}: {target}"
            seen += 1
    assert seen > 20_000


def test_the_lists_name_every_page(site: Path, made: Made) -> None:
    index = json.loads((site / "index.json").read_text(encoding="utf-8"))
    assert index["schema_version"] == 1
    assert len(index["pages"]) == sum(map(len, made.values()))
    assert all((site / each["page"]).is_file() and (site / each["data"]).is_file() for each in index["pages"])
    text = (site / "llms.txt").read_text(encoding="utf-8")
    assert text.startswith("# ") and "\n> " in text
    linked = re.findall(r"^- \[.+?\]\((.+?)\): (\S+)$", text, re.MULTILINE)
    assert len(linked) == len(index["pages"])
    assert all((site / page).is_file() and (site / twin).is_file() for page, twin in linked)


def test_badges_say_what_the_claims_say(site: Path, con: duckdb.DuckDBPyConnection) -> None:
    models = sorted(path.stem for path in (site / "badges" / "models").glob("*.svg"))
    assert models == [row[0] for row in con.execute("SELECT id FROM model ORDER BY id").fetchall()]
    for path in (site / "badges").rglob("*.svg"):
        ElementTree.fromstring(path.read_text(encoding="utf-8"))
    said = (site / "badges" / "llamafactory" / "qwen2-1.5b" / "lora.svg").read_text(encoding="utf-8")
    assert "LLaMA-Factory: not supported" in said
    assert "verified" not in said


def database(con: duckdb.DuckDBPyConnection) -> str:
    """The file behind a connection."""
    (path,) = con.execute("SELECT path FROM duckdb_databases() WHERE path IS NOT NULL").fetchone() or ("",)
    return str(path)


def test_another_process_writes_the_same_bytes(con: duckdb.DuckDBPyConnection, site: Path, tmp_path: Path) -> None:
    code = (
        "import sys, duckdb; from pathlib import Path; from ascend_compat.docs.build import build; "
        "build(duckdb.connect(sys.argv[1], read_only=True), Path(sys.argv[2]), ['zh'], 'markdown', sys.argv[3:])"
    )
    out = tmp_path / "again"
    surroundings = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": str(ROOT)}
    subprocess.run(
        [sys.executable, "-c", code, database(con), str(out), *PLANNED], check=True, env=surroundings, timeout=300
    )
    first = {path.relative_to(site): path.read_bytes() for path in (site / "zh").rglob("*") if path.is_file()}
    again = {path.relative_to(out): path.read_bytes() for path in (out / "zh").rglob("*") if path.is_file()}
    assert first == again
    assert len(first) > 1000


def test_a_change_of_data_is_a_readable_diff(con: duckdb.DuckDBPyConnection, made: Made, tmp_path: Path) -> None:
    """Three cells changed in a copy of the database change one row of one matrix page."""
    from ascend_compat.docs import markdown
    from ascend_compat.docs.pages import matrix
    from ascend_compat.docs.rungs import Rungs
    from ascend_compat.docs.source import Source

    path = tmp_path / "copy.duckdb"
    path.write_bytes(Path(database(con)).read_bytes())
    with duckdb.connect(str(path)) as copy:
        changed = copy.execute(
            "UPDATE cell SET status = 'supported', text = CASE WHEN text IS NOT NULL THEN '✅' END WHERE product = 'ascendfactory' "
            "AND release = '6.5.906' AND framework = 'llamafactory' AND model = 'qwen2-1.5b'"
        ).fetchone()
        assert changed == (3,)
        source = Source(copy, "en")
        after = {page.id: markdown.render(page) for page in matrix.pages(source, Rungs(source))}
    before = {page.id: markdown.render(page) for page in made["en"] if page.id in after}
    (differs,) = [name for name in after if after[name] != before[name]]
    assert differs == "matrix/ascendfactory-6.5.906"
    lines = zip(before[differs].splitlines(), after[differs].splitlines())
    ((old, new),) = [(old, new) for old, new in lines if old != new and "Qwen2-1.5B" in old]
    assert old.count("❌") == new.count("❌") + 3
    assert old.count("✅") == new.count("✅") - 3


def test_an_outdated_part_is_told(command: Any, tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("<!-- generated: counts -->\nold\n<!-- /generated -->\n", encoding="utf-8")
    done = command("docs", "check", str(path))
    assert done.returncode == 1
    assert "-old" in done.stdout and "1 out of date" in done.stdout
    assert command("docs", "update", str(path)).returncode == 0
    assert command("docs", "check", str(path)).returncode == 0


@pytest.mark.parametrize("said", ["nonsense", "matrix ascendfactory 6.5.906 nowhere"])
def test_a_part_nobody_makes_is_one_sentence(command: Any, tmp_path: Path, said: str) -> None:
    path = tmp_path / "page.md"
    path.write_text(f"<!-- generated: {said} -->\n<!-- /generated -->\n", encoding="utf-8")
    done = command("docs", "check", str(path))
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1


def walk(value: Any) -> Iterator[Any]:
    """Every block and piece."""
    yield value
    if is_dataclass(value):
        for each in fields(value):
            yield from walk(getattr(value, each.name))
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from walk(one)


def test_unknown_is_never_green(made: Made) -> None:
    statuses = [each for page in made["en"] for each in walk(page.blocks) if isinstance(each, Status)]
    assert sum(each.status == "unknown" for each in statuses) > 100
    assert not [each for each in statuses if each.status == "unknown" and "✅" in each.text]
    assert all(block.rows for page in made["en"] for block in page.blocks if isinstance(block, Table))
