"""The site: pages handed to Sphinx with the furo theme, one run a language, each in a process of its own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ascend_compat.docs import html
from ascend_compat.docs.markdown import href
from ascend_compat.docs.page import Heading
from ascend_compat.docs.pages.home import SECTIONS
from ascend_compat.errors import CompatError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ascend_compat.docs.page import Page

_CONF = """
extensions = ["ascend_compat.docs.sphinx_pages"]
"""
NAMES = {"en": "Ascend training support", "zh": "昇腾训练支持"}
# as furo's templates have them, with what stands around so that no word of a page is touched
_THEME_WORDS = {
    "<title>Contents</title>": "<title>目录</title>",
    "<title>Menu</title>": "<title>菜单</title>",
    ">Skip to content<": ">跳到正文<",
    ">Back to top<": ">返回顶部<",
    "\n            On this page\n": "\n            本页目录\n",
    'aria-label="Toggle Light / Dark / Auto color theme"': 'aria-label="切换浅色、深色或自动主题"',
    'aria-label="Toggle site navigation sidebar"': 'aria-label="打开或关闭站点导航"',
    'aria-label="Toggle table of contents sidebar"': 'aria-label="打开或关闭本页目录"',
    'class="visually-hidden">Toggle site navigation sidebar<': 'class="visually-hidden">打开或关闭站点导航<',
    'class="visually-hidden">Toggle table of contents sidebar<': 'class="visually-hidden">打开或关闭本页目录<',
}
_OTHER = {"en": ("zh", "中文"), "zh": ("en", "English")}


def render(made: Mapping[str, Sequence[Page]], out: Path) -> None:
    """Write the site of every language below ``out``; raises :class:`UsageError` without Sphinx, :class:`CompatError` for a warning."""
    try:
        import furo  # noqa: F401
        import sphinx  # noqa: F401
    except ImportError as error:
        raise UsageError(
            f"the site needs Sphinx and furo: install ascend-compat[docs] ({error.name} is missing)"
        ) from error
    with tempfile.TemporaryDirectory(prefix="ascend-compat-docs-") as work:
        runs = []
        for language, pages in made.items():
            folder = Path(work) / language
            _sources(pages, language, folder)
            runs.append(_start(folder, language, out, Path(work)))
        said = [(language, run.communicate()[0], run.returncode) for language, run in runs]
        for language, output, code in said:
            if code:
                raise CompatError(f"Sphinx ({language}): {output.decode('utf-8', 'replace').strip()}")
    for language in made:
        _tidy(out / language, language)


def _sources(pages: Sequence[Page], language: str, folder: Path) -> None:
    """One JSON file a page: its title, its place, and its blocks as headings and HTML."""
    titles = {page.id: page.title for page in pages}
    for page in pages:
        path = folder / f"{page.id}.page"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(_source(page, language, titles), ensure_ascii=False), encoding="utf-8")
    (folder / "conf.py").write_text(_CONF, encoding="utf-8")


def _source(page: Page, language: str, titles: Mapping[str, str]) -> dict[str, Any]:
    blocks: list[list[Any]] = [["html", _top(page, language, titles)]]
    for block in page.blocks:
        if isinstance(block, Heading):
            blocks.append(["heading", block.level, block.anchor, block.text])
        else:
            blocks.append(["html", html.render(block, page)])
    source: dict[str, Any] = {"title": page.title, "blocks": blocks, "wide": page.wide}
    if page.id == "index":
        source["sections"] = [f"{name}/index" for name in SECTIONS]
    return source


def _top(page: Page, language: str, titles: Mapping[str, str]) -> str:
    """The line above every page: where it belongs, the other language, the twin for machines."""
    other, name = _OTHER[language]
    up = ""
    if page.parent:
        to = href(page, page.parent, "", ".html")
        up = f'<a href="{to}">← {escape(titles[page.parent], quote=False)}</a>'
    depth = "../" * page.id.count("/")
    switch = (
        f'<a class="switch" hreflang="{other}" lang="{other}" href="{depth}../{other}/{html.href_of(page)}">{name}</a>'
    )
    twin = f'<a href="{html.name_of(page)}.json">JSON</a>'
    label = "Page" if language == "en" else "页面"
    return f'<nav class="top" aria-label="{label}">{up}<span class="right">{switch} · {twin}</span></nav>'


def _start(folder: Path, language: str, out: Path, work: Path) -> tuple[str, subprocess.Popen[bytes]]:
    command = [
        *(sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-E", "-b", "html"),
        *(
            "-d",
            str(work / f"doctrees-{language}"),
            "-D",
            f"language={_sphinx(language)}",
            "-D",
            f"project={NAMES[language]}",
        ),
        *(str(folder), str(out / language)),
    ]
    return language, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def _sphinx(language: str) -> str:
    return {"zh": "zh_CN"}.get(language, language)


def _tidy(folder: Path, language: str) -> None:
    """Remove what serves Sphinx alone; put the theme's words that have no translation into Chinese."""
    for name in (".buildinfo", "objects.inv"):
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / "_sources", ignore_errors=True)
    if language != "zh":
        return
    for path in folder.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        for english, chinese in _THEME_WORDS.items():
            text = text.replace(english, chinese)
        path.write_text(text, encoding="utf-8", newline="\n")
