"""The service described in OpenAPI 3.1."""

from __future__ import annotations

import json
from typing import Any

from ascend_compat._version import __version__
from ascend_compat.resources import schema_dir
from ascend_compat.service.requests import MAX_NAME, MAX_QUESTIONS

_NAME = {"type": "string", "minLength": 1, "maxLength": MAX_NAME}
_PAGE = [
    {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}},
    {"name": "offset", "in": "query", "schema": {"type": "integer", "minimum": 0, "maximum": 1_000_000, "default": 0}},
]


def description() -> dict[str, Any]:
    """The whole document."""
    report = json.loads(
        (schema_dir() / "report.schema.json")
        .read_text(encoding="utf-8")
        .replace("#/$defs/", "#/components/schemas/Report/$defs/")
    )
    del report["$id"], report["$schema"]
    question = {
        "type": "object",
        "required": ["model", "framework"],
        "additionalProperties": False,
        "properties": {
            "model": _NAME, "framework": _NAME, "product": _NAME, "release": _NAME,
            "features": {"type": "array", "items": _NAME, "maxItems": MAX_QUESTIONS},
        },
    }  # fmt: skip
    job = {
        "type": "object",
        "required": ["job"],
        "additionalProperties": False,
        "properties": {
            "job": {"type": "string", "description": "the text of a job file"},
            "file": _NAME, "framework": _NAME, "product": _NAME, "release": _NAME, "framework_version": _NAME,
        },
    }  # fmt: skip
    names = {
        "type": "object",
        "required": ["names"],
        "additionalProperties": False,
        "properties": {"names": {"type": "array", "minItems": 1, "maxItems": MAX_QUESTIONS, "items": question}},
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "ascend-compat", "version": __version__, "description": "Will this job run on Ascend NPUs?"},
        "security": [{}, {"token": []}],
        "paths": {
            "/v1/check": {
                "post": _operation(
                    "check", "Check a job, or questions by names", body={"oneOf": [job, names]}, answer="Report"
                )
            },
            "/v1/admission": {
                "post": _operation(
                    "admission",
                    "Answer a Kubernetes AdmissionReview",
                    body={"$ref": "#/components/schemas/Review"},
                    answer="Review",
                )
            },
            "/v1/models": {"get": _operation("models", "Models", query=["family"])},
            "/v1/features": {"get": _operation("features", "Features", query=["group"])},
            "/v1/releases": {"get": _operation("releases", "Releases in order", query=["product"])},
            "/v1/cells": {
                "get": _operation(
                    "cells", "What releases state", query=["product", "release", "model", "framework", "status"]
                )
            },
            "/healthz": {
                "get": _operation("health", "Whether the service answers, and from which data", answer="Health")
            },
        },
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {
                "Report": report,
                "Review": {
                    "type": "object",
                    "required": ["apiVersion", "kind"],
                    "properties": {
                        "apiVersion": {"const": "admission.k8s.io/v1"},
                        "kind": {"const": "AdmissionReview"},
                        "request": {
                            "type": "object",
                            "required": ["uid"],
                            "properties": {"uid": _NAME, "object": {"type": ["object", "null"]}},
                        },
                        "response": {
                            "type": "object",
                            "required": ["uid", "allowed"],
                            "properties": {"uid": {"type": "string"}, "allowed": {"type": "boolean"}},
                        },
                    },
                },
                "Rows": {
                    "type": "object",
                    "required": ["total", "rows"],
                    "properties": {
                        "total": {"type": "integer"},
                        "rows": {"type": "array", "items": {"type": "object"}},
                    },
                },
                "Health": {
                    "type": "object",
                    "required": ["status", "content", "version"],
                    "properties": {
                        "status": {"const": "ok"},
                        "content": {"type": "string"},
                        "version": {"type": "string"},
                    },
                },
                "Error": {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}},
            },
        },
    }


_ERRORS = {
    "400": "The request asks nothing that can be answered", "401": "No token, or not this one", "408": "The body did not arrive in time",
    "413": "The body is larger than 1 MB", "429": "Too many requests at once", "503": "The answer took too long",
}  # fmt: skip


def _operation(
    identifier: str,
    summary: str,
    *,
    body: dict[str, Any] | None = None,
    query: list[str] | None = None,
    answer: str = "Rows",
) -> dict[str, Any]:
    responses = {"200": _response("The answer", answer)}
    errors = ("503",) if identifier == "health" else tuple(_ERRORS)
    responses |= {code: _response(_ERRORS[code], "Error") for code in errors}
    made: dict[str, Any] = {"operationId": identifier, "summary": summary, "responses": responses}
    parameters: list[dict[str, Any]] = [{"name": name, "in": "query", "schema": _NAME} for name in query or ()]
    if query is not None:
        parameters += _PAGE
    if body is not None:
        made["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
        parameters.append({"name": "lang", "in": "query", "schema": {"enum": ["en", "zh"]}})
    if parameters:
        made["parameters"] = parameters
    return made


def _response(text: str, schema: str) -> dict[str, Any]:
    return {
        "description": text,
        "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}},
    }
