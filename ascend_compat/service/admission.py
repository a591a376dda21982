"""Kubernetes' question whether an object may come in, answered by the check (ValidatingAdmissionWebhook, v1)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ascend_compat.service.requests import BadRequest, JobQuestion, job_reports

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ascend_compat.check.engine import Engine
    from ascend_compat.check.finding import Report

API = "admission.k8s.io/v1"
# Kubernetes shortens warnings beyond 256 characters and drops many of them
_MAX_WARNING = 256
_MAX_WARNINGS = 8
_MAX_MESSAGE = 4000


def review(engine: Engine, body: Mapping[str, Any], language: str) -> dict[str, Any]:
    """The AdmissionReview that answers one. Only a job the check rejects is refused; what holds no job comes in.

    Raises :class:`BadRequest` for what is no review.
    """
    request = body.get("request")
    if body.get("apiVersion") != API or body.get("kind") != "AdmissionReview" or not isinstance(request, dict):
        raise BadRequest(f"not an AdmissionReview of {API} with a request")
    uid = request.get("uid")
    if not isinstance(uid, str) or not uid or len(uid) > 300:
        raise BadRequest("the request has no uid")
    made = request.get("object")
    reports: list[Report] = []
    if isinstance(made, dict):
        text = json.dumps(made, ensure_ascii=False, indent=1)
        reports = job_reports(engine, JobQuestion(text, file="object"))
    response: dict[str, Any] = {"uid": uid, "allowed": True}
    rejected = [report for report in reports if report.verdict in ("unsupported", "impossible")]
    if rejected:
        response["allowed"] = False
        lines = _lines(rejected, language, ("error",))
        response["status"] = {"code": 403, "reason": "Forbidden", "message": "\n".join(lines)[:_MAX_MESSAGE]}
    warnings = _lines([report for report in reports if report.verdict != "unreadable"], language, ("warning",))
    if warnings:
        response["warnings"] = [line[:_MAX_WARNING] for line in warnings[:_MAX_WARNINGS]]
    return {"apiVersion": API, "kind": "AdmissionReview", "response": response}


def _lines(reports: Sequence[Report], language: str, severities: Sequence[str]) -> list[str]:
    from ascend_compat.report.text import safe

    lines = []
    for report in reports:
        for finding in report.findings:
            if finding.severity in severities:
                ways = "; ".join(way.text.in_language(language) for way in finding.ways_out)
                line = f"{finding.code}: {finding.message.in_language(language)}" + (f" ({ways})" if ways else "")
                lines.append(safe(line))
    return list(dict.fromkeys(lines))
