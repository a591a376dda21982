"""A Sphinx extension: reads pages that are ready already, and lets search find Chinese words inside a sentence."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from docutils.parsers import Parser
from sphinx import addnodes
from sphinx.search import SearchLanguage, languages
from sphinx.search.en import SearchEnglish

if TYPE_CHECKING:
    from sphinx.application import Sphinx

STATIC = Path(__file__).parent / "static"
_CJK = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_PART = re.compile(rf"[{_CJK}]+|[\w.+-]+", re.ASCII)
_SPLIT = r"""
function splitQuery(query) {
  const cjk = "\\u3400-\\u4dbf\\u4e00-\\u9fff\\uf900-\\ufaff";
  const parts = [];
  for (const part of query.match(new RegExp("[" + cjk + "]+|[\\w.+-]+", "g")) || []) {
    if (part.length > 2 && new RegExp("[" + cjk + "]").test(part))
      for (let at = 0; at + 1 < part.length; at++) parts.push(part.slice(at, at + 2));
    else parts.push(part.replace(/^[.+-]+|[.+-]+$/g, ""));
  }
  return parts.filter((part) => part);
}
"""


def split(text: str) -> list[str]:
    """Words of a text: pairs of neighbours in a run of Chinese characters; else names and numbers, dots and dashes included.

    The browser splits a query in the same way, so a query of three characters finds the pages that hold both of its pairs.
    """
    words: list[str] = []
    for part in _PART.findall(text):
        if part[0] > "\u33ff":
            words += [part[at : at + 2] for at in range(len(part) - 1)] or [part]
        else:
            words += [part.strip(".+-")]
    return [word for word in words if word]


class _Words(SearchLanguage):
    """Search by names as they are written (``qwen2.5-7b``) and, in Chinese, by pairs of characters."""

    lang = "zh"
    language_name = "Chinese"
    js_splitter_code = _SPLIT
    stopwords = frozenset()
    js_stemmer_code = "class Stemmer { stemWord(word) { return word; } }"

    def split(self, input: str) -> list[str]:
        return split(input)

    def stem(self, word: str) -> str:
        return word.lower()

    def word_filter(self, word: str) -> bool:
        return len(word) > 1 or word[0] > "\u33ff"


class _English(_Words):
    lang = "en"
    language_name = "English"
    stopwords = SearchEnglish.stopwords

    def word_filter(self, word: str) -> bool:
        return len(word) > 1 and word.lower() not in self.stopwords


class PageParser(Parser):  # type: ignore[misc]
    """Turns a page (JSON: title, blocks) into sections and raw HTML."""

    supported = ("page",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        """Fill the document."""
        source = json.loads(inputstring)
        env = document.settings.env
        top = nodes.section(ids=["top"], names=["top"])
        top += nodes.title(source["title"], source["title"])
        document += top
        open_: list[tuple[int, nodes.Element]] = [(1, top)]
        for block in source["blocks"]:
            if block[0] == "html":
                open_[-1][1].append(nodes.raw("", block[1], format="html"))
                continue
            _, level, anchor, text = block
            while open_[-1][0] >= level:
                open_.pop()
            section = nodes.section(ids=[anchor], names=[anchor])
            section += nodes.title(text, text)
            open_[-1][1].append(section)
            open_.append((level, section))
        for docname in source.get("sections", ()):
            where = {"entries": [(None, docname)], "includefiles": [docname], "parent": env.docname, "maxdepth": 1}
            how = {
                "hidden": True,
                "glob": False,
                "caption": None,
                "titlesonly": True,
                "numbered": 0,
                "includehidden": False,
            }
            top += addnodes.toctree(**where, **how)
        metadata = env.metadata[env.docname]
        metadata["orphan"] = ""
        if source["wide"]:
            metadata["hide-toc"] = ""
            metadata["wide"] = ""


def _wide(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Tell the style sheet which pages want the whole width."""
    meta = context.get("meta") or {}
    if "wide" in meta:
        context["metatags"] = context.get("metatags", "") + '<meta name="page-width" content="wide">'


def setup(app: Sphinx) -> dict[str, Any]:
    """Register parser, words and looks."""
    languages["zh"] = _Words
    languages["en"] = _English
    app.add_source_suffix(".page", "page")
    app.add_source_parser(PageParser)
    app.connect("config-inited", _configure)
    app.connect("html-page-context", _wide)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


def _configure(app: Sphinx, config: Any) -> None:
    config.html_theme = "furo"
    config.html_title = config.project
    config.html_static_path = [str(STATIC)]
    config.html_css_files = ["site.css"]
    config.html_copy_source = False
    config.html_show_sourcelink = False
    config.html_show_search_summary = False
    config.html_show_copyright = False
    config.html_show_sphinx = False
    config.html_use_index = False
    config.html_domain_indices = False
    config.html_permalinks = True
    config.html_theme_options = {"sidebar_hide_name": False}
