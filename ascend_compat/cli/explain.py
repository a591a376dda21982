"""``ascend-compat explain``: the page of a finding's code, without a network."""

from __future__ import annotations

import click

from ascend_compat.cli.options import language, language_option, write
from ascend_compat.errors import UsageError


@click.command()
@click.argument("code")
@language_option
def explain(code: str, lang: str | None) -> None:
    """Print what CODE means, why it is reported and what to do: a code such as AC1001, or a rule's id."""
    from ascend_compat.check.pages import page
    from ascend_compat.matrix.store import connect

    con = connect()
    text = page(con, code, language(lang))
    if text is None:
        from difflib import get_close_matches

        codes = [row[0] for row in con.execute("SELECT code FROM code UNION ALL SELECT id FROM rule").fetchall()]
        nearest = get_close_matches(code.upper(), codes, 3, 0.5)
        raise UsageError(f"no finding has the code {code!r}" + (f"; nearest: {', '.join(nearest)}" if nearest else ""))
    write(text)
