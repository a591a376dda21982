"""Many jobs: warm, in bulk, in files; and the build that comes before."""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from measure import cpu_of
from peers import PEERS, peer, sayable_rules

from ascend_compat.check.bulk import audit
from ascend_compat.check.engine import Engine, Options, row_of
from ascend_compat.check.rules import Row, Vocabulary, evaluate
from ascend_compat.jobs.read import read_file
from ascend_compat.matrix import store

if TYPE_CHECKING:
    from ascend_compat.jobs.model import Launch

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
JOBS = {"mindspeed-llm": "mindspeed-llm-qwen2.5-7b-tp8.sh", "llamafactory": "llamafactory-lora-qwen2-1.5b.yaml"}
MILLION = 1_000_000
FILES = 10_000
BULK_PEERS: list[tuple[str, int, float]] = []


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(store.connect())


@pytest.mark.parametrize("framework", JOBS)
def test_warm(table, engine: Engine, benchmark, framework: str) -> None:  # type: ignore[no-untyped-def]
    (launch,) = read_file(str(EXAMPLES / JOBS[framework])).launches
    engine.check([launch], Options())

    def forget() -> tuple[tuple[list[Launch], Options], dict[str, Any]]:
        """Ways out that an equal job would share are found anew."""
        engine._ways.clear()
        return ([launch], Options()), {}

    start = time.process_time()
    benchmark.pedantic(engine.check, setup=forget, rounds=20)
    figure = 1000 * (time.process_time() - start) / 20
    count = len(engine.rules(framework, engine.spec(framework).newest))  # type: ignore[union-attr]
    table.add(
        f"warm check of one {framework} job, {count} rules, claims, ways out",
        f"{figure:.1f} ms",
        "–",
        "< 25 ms",
        figure < 25,
    )


@pytest.mark.parametrize("name", PEERS)
def test_peers(table, engine: Engine, name: str) -> None:  # type: ignore[no-untyped-def]
    """The rules that all three languages can say, on one job of which all their facts are known."""
    (launch,) = read_file(str(EXAMPLES / JOBS["mindspeed-llm"])).launches
    job = engine.understand(launch, Options())
    assert job is not None
    (whole,) = evaluate(engine.con, [row_of(job, None)], [], engine.vocabulary("mindspeed-llm"))
    known = {**whole.derived, **row_of(job, None).facts}
    facts = {fact: value for fact, value in known.items() if isinstance(value, (int, str))}
    rules = sayable_rules(engine, job.version, facts)
    check = peer(name, rules)
    if check is None:
        pytest.skip(f"{name} is not installed")
    vocabulary = Vocabulary(engine.types, (), ())
    (outcome,) = evaluate(engine.con, [Row(facts)], rules, vocabulary)
    assert check(facts) == {rule.id for rule in outcome.broken}
    assert len(rules) >= 20
    own = milliseconds(lambda: evaluate(engine.con, [Row(facts)], rules, vocabulary))
    theirs = milliseconds(lambda: check(facts))
    faster = "this" if own < theirs else name.split()[0]
    seen = f"{own:.2f} ms"
    table.add(
        f"{len(rules)} rules that both can say, one job",
        seen,
        f"{name}: {theirs:.2f} ms",
        f"say who is faster: {faster}",
        None,
    )
    rate = 1000 / theirs
    BULK_PEERS.append((name, len(rules), rate))


def milliseconds(work: Callable[[], object], times: int = 50) -> float:
    start = time.process_time()
    for _ in range(times):
        work()
    return 1000 * (time.process_time() - start) / times


@pytest.mark.parametrize("framework", JOBS)
def test_bulk(table, engine: Engine, tmp_path: Path, framework: str) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "jobs.parquet"
    with duckdb.connect() as con:
        con.execute(f"COPY ({GRID}) TO '{path}' (FORMAT parquet)")
    wall, start = time.monotonic(), time.process_time()
    found = audit(engine, str(path), framework)
    used, wall = time.process_time() - start, time.monotonic() - wall
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    count = len(engine.rules(framework, found.version))
    two = 2 * MILLION / used
    seen = (
        f"{MILLION / used:,.0f} jobs/s a processor, {two:,.0f} on two ({MILLION / wall:,.0f} by the clock), {memory} MB"
    )
    table.add(
        f"1,000,000 {framework} jobs in Parquet, {count} rules and all claims",
        seen,
        "–",
        "> 500,000 jobs/s on two, < 2 GB",
        two > 500_000 and memory < 2000,
    )
    for name, rules, rate in BULK_PEERS if framework == "mindspeed-llm" else ():
        seen = f"{two / rate:,.0f} times, with {count} rules against {rules}"
        table.add(
            "the same against a peer looped", seen, f"{name}: {rate:,.0f} jobs/s", "≥ 500 times", two / rate >= 500
        )


def test_files(table, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    kinds = [(path.suffix, path.read_text()) for path in sorted(EXAMPLES.iterdir()) if path.suffix in (".yaml", ".sh")]
    kinds.append((".sh", VERL))
    for number in range(FILES):
        suffix, text = kinds[number % len(kinds)]
        text = text.replace("TP=8", f"TP={(1, 2, 3, 4, 7, 8)[number // 5 % 6]}")
        text = text.replace("GRID", str((32, 48, 64, 96, 128)[number // 5 % 5]))
        text = text.replace("lora_rank: 8", f"lora_rank: {(4, 8, 16, 32)[number // 5 % 4]}")
        (tmp_path / f"{number:05d}{suffix}").write_text(f"{text}\n# {number}\n")
    start = time.monotonic()
    used = cpu_of([sys.executable, "-m", "ascend_compat", "check", "--recursive", "--format", "json", str(tmp_path)])
    wall = time.monotonic() - start
    two = 2000 * FILES / used
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    seen = f"{two:,.0f} files/s on two ({FILES / wall:,.0f} by the clock), largest process {memory} MB"
    table.add(
        "10,000 job files of four forms in a directory, LLaMA-Factory, AscendFactory, MindSpeed-LLM and verl, values varied",
        seen,
        "–",
        "> 1,000 files/s on two",
        two > 1000,
    )


def test_build_and_lint(table, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    for command, goal in (("build", 2000), ("lint", 5000)):
        os.environ["ASCEND_COMPAT_CACHE"] = str(tmp_path)
        extra = ["--force"] if command == "build" else []
        try:
            used = min(cpu_of([sys.executable, "-m", "ascend_compat", "matrix", command, *extra]) for _ in range(3))
        finally:
            del os.environ["ASCEND_COMPAT_CACHE"]
        table.add(f"matrix {command}", f"{used:.0f} ms", "–", f"< {goal} ms", used < goal)


def test_docs(table, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    used = cpu_of([sys.executable, "-m", "ascend_compat", "docs", "build", "--out", str(tmp_path / "site")]) / 1000
    table.add("docs build, both languages", f"{used:.0f} s", "–", "< 90 s", used < 90)


def test_growth(table, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """Claims of the shape of today's, a hundredth and all of 5,000,000, written and asked as the checker asks; release after release, as a build writes them."""
    seen = []
    for models in (10, 1000):
        path = tmp_path / f"grown-{models}.duckdb"
        start = time.process_time()
        with duckdb.connect() as con:
            con.execute(f"ATTACH '{path}' AS grown (BLOCK_SIZE 16384)")
            con.execute(f"CREATE TABLE grown.claim AS {GROWN.format(models=models)}")
            con.execute("CHECKPOINT grown")
            con.execute("DETACH grown")
        built = time.process_time() - start
        with duckdb.connect(str(path), read_only=True) as con:
            asked = ["ascendfactory", "r99", "llamafactory", f"model-{models - 1}", *(f"f{at}" for at in range(8))]
            assert len(con.execute(POINT, asked).fetchall()) == 8
            point = milliseconds(partial(con.execute, POINT, asked))
        seen.append((built, point, path.stat().st_size / 2**20))
    (small, before, _), (whole, after, size) = seen
    shown = f"point check {after:.2f} ms, build {whole:.1f} s ({whole / small / 100:.2f} of linear), file {size:.0f} MB"
    table.add(
        "5,000,000 claims (1,000 models, 50 features, 100 releases)",
        shown,
        f"50,000 claims: {before:.2f} ms",
        "point check ≤ 2 times, build linear",
        after <= 2 * before and whole <= 150 * small,
    )


VERL = """#!/bin/bash
python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=GRID \\
  data.max_prompt_length=512 data.max_response_length=1024 actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct \\
  actor_rollout_ref.actor.ppo_mini_batch_size=64 actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.n=5 \\
  actor_rollout_ref.rollout.tensor_model_parallel_size=2 trainer.n_gpus_per_node=8 trainer.nnodes=1
"""
GROWN = """
SELECT 'ascendfactory' AS product, 'r' || r AS release, 'model-' || m AS model, 'llamafactory' AS framework,
  'f' || f AS feature, ['supported', 'unsupported', 'unknown'][1 + (r + m + f) % 3] AS status, NULL::VARCHAR AS condition,
  'https://example.org/releases/' || r || '/table' AS source
FROM range(100) a(r), range({models}) b(m), range(50) c(f)
ORDER BY r, m, f
"""
POINT = (
    "SELECT feature, status, condition, source FROM claim WHERE product = ? AND release = ? AND framework = ? AND model = ? "
    f"AND feature IN ({', '.join('?' * 8)})"
)
GRID = f"""
SELECT ['qwen2.5-7b', 'qwen3-32b', 'deepseek-v3', 'qwen2-1.5b'][1 + i % 4] AS model,
  [1, 2, 4, 8][1 + (i * 7) % 4]::BIGINT AS nnodes, 8::BIGINT AS devices_per_node,
  [1, 2, 3, 4, 8][1 + (i // 3) % 5]::BIGINT AS tensor_parallel, [1, 2, 4][1 + (i // 5) % 3]::BIGINT AS pipeline_parallel,
  [1, 2][1 + (i // 7) % 2]::BIGINT AS context_parallel, 1::BIGINT AS expert_parallel,
  [28, 64][1 + (i // 11) % 2]::BIGINT AS num_attention_heads, [4, 8][1 + (i // 13) % 2]::BIGINT AS num_query_groups,
  true AS group_query_attention, 28::BIGINT AS num_layers, 3584::BIGINT AS hidden_size,
  [2048, 4096, 131072][1 + (i // 17) % 3]::BIGINT AS seq_length, 32768::BIGINT AS max_position_embeddings,
  [1, 2][1 + (i // 19) % 2]::BIGINT AS micro_batch_size, [16, 32, 33][1 + (i // 23) % 3]::BIGINT AS global_batch_size,
  (i // 29) % 2 = 0 AS bf16, (i // 31) % 3 = 0 AS sequence_parallel, 'posttrain_gpt.py' AS entry,
  ['lora', 'full'][1 + (i // 37) % 2] AS finetuning_type, 'sft' AS stage
FROM range({MILLION}) t(i)
"""
