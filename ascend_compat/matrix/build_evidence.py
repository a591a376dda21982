"""Evidence as tables and views: what was run, and what every cell's runs make of its claim.

The views read the table ``evidence_file``; whoever brings evidence of their own shadows it (see ``layers``).
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from ascend_compat.matrix.build import Table, json_text, of_kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ascend_compat.matrix.documents import Document

# Evidence is too old when the data's own clock, the newest release, has moved this much past it.
KEEP_DAYS = 365

_EVIDENCE = """
SELECT
    path, doc->>'id' AS id, doc->>'product' AS product, doc->>'release' AS release, doc->>'framework' AS framework,
    job->>'recipe' AS recipe, job->>'recipe_digest' AS recipe_digest, job->>'model' AS model, job->>'model_kind' AS model_kind,
    from_json(job->'features', '["VARCHAR"]') AS features, job->'claims' AS claims, job->'set' AS overrides,
    doc->>'$.device.kind' AS device, CAST(doc->>'$.device.count' AS BIGINT) AS devices,
    CAST(doc->>'simulated' AS BOOLEAN) AS simulated, CAST(doc->>'cpu' AS BOOLEAN) AS cpu, CAST(doc->>'probe' AS BOOLEAN) AS probe,
    doc->>'$.stack.framework' AS framework_version, doc->>'$.stack.torch' AS torch, doc->>'$.stack.torch_npu' AS torch_npu,
    doc->>'$.stack.cann' AS cann, job->>'verdict' AS verdict, job->>'result' AS result,
    job->>'$.error.kind' AS error_kind, job->>'$.error.reason' AS error_reason, job->'metrics' AS metrics,
    job->>'log_digest' AS log_digest, job->>'start' AS started, job->>'end' AS ended, doc->>'matrix' AS matrix
FROM (SELECT path, CAST(body AS JSON) AS doc FROM evidence_file),
     LATERAL (SELECT unnest(from_json(doc->'jobs', '["JSON"]')) AS job)
"""

_CELL_STATE = f"""
WITH clock AS (SELECT max(date) AS today FROM release WHERE date SIMILAR TO '[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}'),
stack AS (
    SELECT product, release, framework, CASE WHEN version = 'unknown' THEN assumed ELSE coalesce(version, assumed) END AS version
    FROM release_framework
),
told AS (
    SELECT c.product, c.release, c.framework, c.model, c.feature, c.status AS claim, e.id, e.ended,
        e.device = 'npu' AND NOT e.simulated AND NOT e.cpu AS on_npu,
        CASE
            WHEN r.digest IS DISTINCT FROM e.recipe_digest THEN 'recipe-changed'
            WHEN json_extract_string(e.claims, '$."' || c.feature || '"') IS DISTINCT FROM c.status THEN 'claim-changed'
            WHEN date_diff('day', CAST(left(e.ended, 10) AS DATE), CAST(clock.today AS DATE)) > {KEEP_DAYS} THEN 'too-old'
            WHEN e.result = 'skipped' THEN NULL
            WHEN NOT on_npu AND e.result = 'pass' THEN 'cpu-run'
            WHEN NOT on_npu THEN 'failed-elsewhere'
            WHEN e.result = 'pass' AND c.status = 'unsupported' THEN 'ran-though-unsupported'
            WHEN e.result = 'pass' AND e.model_kind <> 'real' THEN 'tiny-model'
            WHEN version_key(e.framework_version) IS DISTINCT FROM version_key(s.version)
                OR NOT EXISTS (
                    SELECT 1 FROM documented_stack t WHERE t.product = c.product AND starts_with(t.release, c.release)
                    AND t.torch IN ('unknown', split_part(e.torch, '+', 1)) AND lower(t.cann) IN ('unknown', lower(e.cann))
                    UNION ALL SELECT 1 WHERE NOT EXISTS (
                        SELECT 1 FROM documented_stack t WHERE t.product = c.product AND starts_with(t.release, c.release))
                ) THEN CASE WHEN e.result = 'pass' THEN 'other-stack' ELSE 'failed-elsewhere' END
            WHEN e.result = 'pass' THEN 'npu-run'
            WHEN c.status = 'unsupported' THEN 'failed-as-claimed'
            WHEN e.verdict = 'impossible' OR json_array_length(json_keys(e.overrides)) > 0 THEN 'failed-elsewhere'
            WHEN e.result = 'fail' OR e.error_kind IN ('framework', 'nan-loss', 'oom', 'unknown-option') THEN 'failed-on-npu'
            ELSE 'failed-elsewhere'
        END AS reason
    FROM claim c
    JOIN evidence e ON e.product = c.product AND e.release = c.release AND e.framework = c.framework
        AND e.model = c.model AND list_contains(e.features, c.feature)
    LEFT JOIN recipe r ON r.name = e.recipe
    LEFT JOIN stack s ON s.product = c.product AND s.release = c.release AND s.framework = c.framework
    CROSS JOIN clock
),
rung AS (SELECT * FROM (VALUES
    ('no-run', 'claimed', 0, 'no recipe of it has run', '尚无配方运行'),
    ('failed-elsewhere', 'claimed', 1, 'the last run failed, where a failure says nothing of the claim', '最近一次运行失败，但该失败不足以否定声明'),
    ('failed-as-claimed', 'claimed', 1, 'a probe failed on the NPU, as the claim of no support says', '探测在 NPU 上失败，与“不支持”的声明一致'),
    ('cpu-run', 'smoke', 2, 'its recipe ran on a CPU', '配方已在 CPU 上运行'),
    ('tiny-model', 'smoke', 2, 'it ran on the NPU with a tiny model', '仅以微型模型在 NPU 上运行'),
    ('other-stack', 'smoke', 2, 'it ran on the NPU with another stack than the release''s', '在 NPU 上运行，但软件栈与该版本不同'),
    ('npu-run', 'verified', 4, 'it ran on the NPU with the release''s stack', '已在 NPU 上以该版本的软件栈运行'),
    ('failed-on-npu', 'contradicted', 5, 'it failed on the NPU with the release''s stack, though support is claimed', '声明支持，但以该版本的软件栈在 NPU 上失败'),
    ('ran-though-unsupported', 'contradicted', 5, 'it ran on the NPU, though the claim says no', '声明不支持，但在 NPU 上运行成功'),
    ('recipe-changed', 'stale', 3, 'the recipe has changed since it ran', '运行之后配方已改动'),
    ('claim-changed', 'stale', 3, 'the claim has changed since it ran', '运行之后声明已改动'),
    ('too-old', 'stale', 3, 'the run is more than a year older than the newest release', '运行时间早于最新版本一年以上')
) AS t(reason, state, height, en, zh)),
newest AS (
    SELECT *, row_number() OVER (
        PARTITION BY told.product, told.release, told.framework, told.model, told.feature, on_npu ORDER BY told.ended DESC, told.id DESC
    ) AS place
    FROM told JOIN rung USING (reason)
),
-- the newest run on an NPU speaks first; where it says nothing of the claim, the newest other run does
heard AS (
    SELECT *, row_number() OVER (
        PARTITION BY product, release, framework, model, feature ORDER BY (height > 2 AND on_npu) DESC, height DESC
    ) AS rank
    FROM newest WHERE place = 1
)
SELECT c.product, c.release, c.framework, c.model, c.feature, c."column", c.status AS claim,
    CASE WHEN h.state IN ('smoke') AND c.status = 'unsupported' THEN 'claimed' ELSE coalesce(h.state, 'claimed') END AS state,
    coalesce(h.reason, 'no-run') AS reason, coalesce(h.en, none.en) AS reason_en, coalesce(h.zh, none.zh) AS reason_zh,
    h.id AS evidence, h.ended
FROM claim c
LEFT JOIN heard h ON h.rank = 1 AND h.product = c.product AND h.release = c.release AND h.framework = c.framework
    AND h.model = c.model AND h.feature = c.feature
CROSS JOIN (SELECT en, zh FROM rung WHERE reason = 'no-run') AS none
WHERE c.status IN ('supported', 'partial', 'unsupported', 'withdrawn')
"""

VIEWS = {"evidence": _EVIDENCE, "cell_state": _CELL_STATE}


def views(temporary: bool = False) -> list[str]:
    """The statements that make the views; ``temporary`` ones stand before those of the database."""
    word = "OR REPLACE TEMP VIEW" if temporary else "VIEW"
    return [f"CREATE {word} {name} AS {sql}" for name, sql in VIEWS.items()]


def tables(documents: Sequence[Document]) -> list[Table]:
    """``evidence_file``, every committed evidence document as JSON text, and ``documented_stack``, what a release names together."""
    found = Table("evidence_file", {"path": "VARCHAR", "body": "VARCHAR"})
    for document in of_kind(documents, "evidence"):
        with contextlib.suppress(TypeError):
            found.add(path=document.path, body=json_text(document.body))
    stacks = Table("documented_stack", dict.fromkeys(("product", "release", "torch", "cann"), "VARCHAR"))
    for document in of_kind(documents, "stack"):
        if document.body.get("id") == "sets":
            for row in document.body["rows"]:
                stacks.add(**{name: row.get(name, "unknown") for name in stacks.columns})
    return [found, stacks]


def layers(con: Any, own: Iterable[tuple[str, str]]) -> None:
    """Put evidence of one's own, as path and JSON text, on top of the committed one, for this connection alone."""
    con.execute("CREATE OR REPLACE TEMP TABLE own_evidence (path VARCHAR, body VARCHAR)")
    rows = list(own)
    if rows:
        con.executemany("INSERT INTO own_evidence VALUES (?, ?)", rows)
    main = con.execute("SELECT database_name FROM duckdb_tables() WHERE table_name = 'meta'").fetchall()[0][0]
    quoted = '"' + main.replace('"', '""') + '"'
    con.execute(
        f"CREATE OR REPLACE TEMP VIEW evidence_file AS SELECT * FROM {quoted}.main.evidence_file "
        "UNION ALL SELECT * FROM own_evidence"
    )
    for statement in views(temporary=True):
        con.execute(statement)
