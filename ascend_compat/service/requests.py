"""What a request asks, taken apart with care: every slip is one sentence for the client."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ascend_compat.check import api
from ascend_compat.check.engine import Options
from ascend_compat.check.finding import Report
from ascend_compat.errors import UsageError
from ascend_compat.jobs.access import no_files

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascend_compat.check.engine import Engine

MAX_BODY = 1_000_000
MAX_QUESTIONS = 500
MAX_NAME = 300
_JOB = frozenset(("job", "file", "framework", "product", "release", "framework_version"))
_NAMES = frozenset(("model", "framework", "features", "product", "release"))


class BadRequest(Exception):
    """A request that asks nothing; its text goes to the client with status 400."""


@dataclass(frozen=True, slots=True)
class JobQuestion:
    """One job file by its text."""

    text: str
    file: str = "job"
    framework: str | None = None
    product: str | None = None
    release: str | None = None
    framework_version: str | None = None


def parse(body: bytes) -> dict[str, Any]:
    """The JSON object of a body. Raises :class:`BadRequest`."""
    try:
        value = json.loads(body)
        # text that is no Unicode (lone surrogates) has no place in a database or an answer
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError):
        raise BadRequest("the body is not JSON in UTF-8") from None
    if not isinstance(value, dict):
        raise BadRequest("the body is not a JSON object")
    return value


def question(body: Mapping[str, Any]) -> JobQuestion | list[api.Names]:
    """A job, or questions by names. Raises :class:`BadRequest`."""
    if "job" in body:
        _only(body, _JOB)
        text = body["job"]
        if not isinstance(text, str):
            raise BadRequest("job is not text")
        return JobQuestion(text, **{name: _name(body, name) for name in _JOB - {"job"} if body.get(name) is not None})
    if "names" in body:
        _only(body, frozenset(("names",)))
        listed = body["names"]
        if not isinstance(listed, list) or not listed or len(listed) > MAX_QUESTIONS:
            raise BadRequest(f"names is not a list of 1 to {MAX_QUESTIONS} questions")
        return [_names(item) for item in listed]
    raise BadRequest("give a job (the text of a job file), or names (a list of questions)")


def _only(body: Mapping[str, Any], known: frozenset[str]) -> None:
    unknown = sorted(set(body) - known)
    if unknown:
        raise BadRequest(f"unknown member {unknown[0][:MAX_NAME]!r}; known are {', '.join(sorted(known))}")


def _name(body: Mapping[str, Any], key: str) -> str:
    value = body[key]
    if not isinstance(value, str) or not value or len(value) > MAX_NAME or "\0" in value:
        raise BadRequest(f"{key} is not a text of 1 to {MAX_NAME} characters")
    return value


def _names(item: Any) -> api.Names:
    if not isinstance(item, dict):
        raise BadRequest("a question is not an object")
    _only(item, _NAMES)
    features = item.get("features") or []
    if not isinstance(features, list) or len(features) > MAX_QUESTIONS:
        raise BadRequest("features is not a list of names")
    for key in ("model", "framework"):
        if key not in item:
            raise BadRequest(f"a question needs a {key}")
    optional = {key: _name(item, key) for key in ("product", "release") if item.get(key) is not None}
    named = tuple(_name({"feature": feature}, "feature") for feature in features)
    return api.Names(_name(item, "model"), _name(item, "framework"), named, **optional)


def answer(engine: Engine, asked: JobQuestion | list[api.Names]) -> list[Report]:
    """Reports of a question. Raises :class:`BadRequest` for names nobody knows; reads no file."""
    try:
        if isinstance(asked, list):
            return api.check_names(engine.con, asked, engine)
        return job_reports(engine, asked)
    except UsageError as error:
        raise BadRequest(str(error)) from None


def job_reports(engine: Engine, asked: JobQuestion) -> list[Report]:
    """Reports of the launches in a job's text; an unreadable one is a report. Raises ``UsageError`` for unknown names."""
    from ascend_compat.jobs.read import read_data

    framework = asked.framework
    if framework is not None:
        framework = engine.names.framework(framework)
        if framework is None:
            raise UsageError(f"no framework is called {asked.framework!r}")
    options = Options(*api.known(engine.con, asked.product, asked.release), asked.framework_version)
    with no_files():
        read = read_data(asked.file, asked.text.encode("utf-8"), framework=framework)
        if asked.framework_version is not None:
            for launch in read.launches:
                _known_version(engine, launch.framework, asked.framework_version)
        reports = engine.check(read.launches, options)
    if read.error is not None:
        reports.append(Report(asked.file, None, None, None, None, None, "unreadable", [engine.problem(read.error)]))
    return reports


def _known_version(engine: Engine, framework: str, version: str) -> None:
    """Rules are kept by version, so a version that no one published must not come in from outside."""
    spec = engine.spec(framework)
    if spec is None or engine.names.ordinal(spec.product, version) is None:
        raise UsageError(f"no version of {framework} is called {version!r}")
