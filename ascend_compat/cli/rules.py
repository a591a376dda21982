"""``ascend-compat rules``: list, show and test the rules."""

from __future__ import annotations

import json
import sys

import click

from ascend_compat.cli.options import language, language_option, write
from ascend_compat.errors import UsageError


@click.group()
def rules() -> None:
    """The constraints no table holds."""


@rules.command("list")
@click.option("--framework", help="Only this framework's.")
@click.option("--topic", help="Only of this topic.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@language_option
def list_rules(framework: str | None, topic: str | None, form: str, lang: str | None) -> None:
    """List rules: id, topic, severity, what it rests on, its sentence."""
    from ascend_compat.matrix.store import connect

    rows = (
        connect()
        .execute(
            f"SELECT DISTINCT id, framework, topic, severity, rests_on, message_{language(lang)} FROM rule "
            "WHERE (? IS NULL OR framework = ?) AND (? IS NULL OR topic = ?) ORDER BY framework, id",
            [framework, framework, topic, topic],
        )
        .fetchall()
    )
    if form == "json":
        names = ("id", "framework", "topic", "severity", "rests_on", "message")
        write(json.dumps([dict(zip(names, row)) for row in rows], ensure_ascii=False, indent=2))
        return
    write("\n".join(f"{row[0]:<34} {row[2]:<22} {row[3]:<10} {row[4]:<8} {row[5]}" for row in rows))
    write(f"{len(rows)} rules")


@rules.command()
@click.argument("rule")
@language_option
def show(rule: str, lang: str | None) -> None:
    """Show RULE: when it applies, what must hold, its source, examples and proof."""
    from ascend_compat.check.pages import page
    from ascend_compat.matrix.store import connect

    text = page(connect(), rule, language(lang))
    if text is None:
        raise UsageError(f"no rule is called {rule!r}; see: ascend-compat rules list")
    write(text)


@rules.command()
@click.argument("rule", nargs=-1)
def test(rule: tuple[str, ...]) -> None:
    """Run every rule's passing and failing examples (or those of the named rules)."""
    from ascend_compat.check.engine import Engine
    from ascend_compat.check.examples import examples, run
    from ascend_compat.matrix.store import connect

    engine = Engine(connect())
    results = run(engine, examples(engine, rule))
    if not results:
        raise UsageError(f"no rule is called {' or '.join(rule)}" if rule else "the matrix holds no rules")
    for result in results:
        if result.problem:
            write(
                f"{result.example.rule}: {result.problem}: {json.dumps(dict(result.example.body), ensure_ascii=False)}"
            )
    count, proved = engine.con.execute(
        "SELECT count(DISTINCT id), count(DISTINCT id) FILTER (rests_on = 'proof') FROM rule WHERE len(?) = 0 OR list_contains(?, id)",
        [list(rule), list(rule)],
    ).fetchall()[0]
    wrong = sum(result.problem is not None for result in results)
    write(f"{count} rules ({proved} proved against the framework's code), {len(results)} examples, {wrong} wrong")
    sys.exit(1 if wrong else 0)
