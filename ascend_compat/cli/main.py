"""The command line: a group that imports a command's module only when that command runs."""

from __future__ import annotations

import importlib
import sys

import click

from ascend_compat._version import __version__
from ascend_compat.errors import CompatError, UsageError

# command -> (module, attribute, one line of help); the module is imported when the command is used
COMMANDS: dict[str, tuple[str, str, str]] = {
    "audit": ("ascend_compat.cli.audit", "audit", "How much is known of every release's cells."),
    "audit-jobs": ("ascend_compat.cli.bulk", "audit_jobs", "Verdicts of millions of jobs in a Parquet file."),
    "bench": ("ascend_compat.cli.bench", "bench", "How fast this host is, and whether it became slower."),
    "check": ("ascend_compat.cli.check", "check", "Check job files, or names, against the matrix."),
    "diff": ("ascend_compat.cli.query", "diff", "What changed between two releases."),
    "docs": ("ascend_compat.cli.docs", "docs", "Make the support documentation."),
    "doctor": ("ascend_compat.cli.stack", "doctor", "What is wrong with this host."),
    "conflicts": ("ascend_compat.cli.query", "conflicts", "Cells where two sources differ."),
    "evidence": ("ascend_compat.cli.evidence", "evidence", "Add, list, show and verify what runs have shown."),
    "explain": ("ascend_compat.cli.explain", "explain", "The page of a finding's code, offline."),
    "facts": ("ascend_compat.cli.facts", "facts", "What was understood of job files, line by line."),
    "history": ("ascend_compat.cli.query", "history", "Since when and until when a model is supported."),
    "list": ("ascend_compat.cli.query", "list_", "List models, frameworks, features, releases, products."),
    "lock": ("ascend_compat.cli.lock", "lock", "Write down today's verdicts of job files."),
    "matrix": ("ascend_compat.cli.matrix", "matrix", "Build, lint and import the matrix."),
    "plan": ("ascend_compat.cli.plan", "plan", "Legal layouts of a model on a number of devices."),
    "regress": ("ascend_compat.cli.regress", "regress", "What the matrix answers differently from a base."),
    "recipe": ("ascend_compat.cli.recipe", "recipe", "List, show and render the recipes."),
    "rules": ("ascend_compat.cli.rules", "rules", "List, show and test the rules."),
    "serve": ("ascend_compat.cli.serve", "serve", "Answer checks over HTTP, and admission requests of a cluster."),
    "run": ("ascend_compat.cli.run", "run", "Run a recipe and keep the evidence."),
    "show": ("ascend_compat.cli.query", "show", "Everything known of a model, framework, feature or release."),
    "sql": ("ascend_compat.cli.query", "sql", "Read-only SQL over the matrix."),
    "stack": ("ascend_compat.cli.stack", "stack", "Check a software stack, or suggest one."),
    "submit": ("ascend_compat.cli.submit", "submit", "Check the job in a command, then become that command."),
    "verify": ("ascend_compat.cli.verify", "verify", "The fewest runs that prove the most cells, planned or run."),
}


class LazyGroup(click.Group):
    """Lists every command, imports one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        entry = COMMANDS.get(name)
        if entry is None:
            return None
        command = getattr(importlib.import_module(entry[0]), entry[1])
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches

            nearest = get_close_matches(args[0], COMMANDS, 3, 0.5)
            hint = f"; nearest: {', '.join(nearest)}" if nearest else "; see: ascend-compat --help"
            raise UsageError(f"no command is called {args[0]!r}{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][2]) for name in sorted(COMMANDS)])


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="ascend-compat")
def main() -> None:
    """Will this training job run on Ascend NPUs? Ask before the queue does."""


def run() -> None:
    """Entry point of the console script: errors become one sentence and an exit code."""
    try:
        main(standalone_mode=False)
    except CompatError as error:
        _say(f"error: {error}")
        sys.exit(error.exit_code)
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)
    except click.ClickException as error:
        where = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "ascend-compat"
        _say(f"error: {error.format_message()}\nhelp: {where} --help")
        sys.exit(2)
    except click.Abort:
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(0)
    except Exception as error:
        if type(error).__module__ in ("duckdb", "_duckdb"):
            _say(f"error: the database refused what the matrix says: {' '.join(str(error).split())}")
        else:
            _say(f"internal error: {type(error).__name__}: {error} (please report this)")
        sys.exit(3)


def _say(text: str) -> None:
    """Tell an error in UTF-8 whatever the locale says, without anything of the user's that steers a terminal."""
    from ascend_compat.report.text import safe

    lines = "".join(f"{safe(line)}\n" for line in text.split("\n"))
    sys.stderr.buffer.write(lines.encode("utf-8", "replace"))
    sys.stderr.buffer.flush()
