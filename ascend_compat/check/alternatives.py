"""What a denied job could ask instead: a framework, feature, release, product or model that has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascend_compat.check.finding import Text, WayOut
from ascend_compat.check.sources import address_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascend_compat.check.claims import Question
    from ascend_compat.check.labels import Labels
    from ascend_compat.check.remembered import Remembered


class Alternatives:
    """Ways out that the claim tables hold."""

    def __init__(self, con: Remembered, labels: Labels) -> None:
        self._con = con
        self._labels = labels

    def of(self, product: str, release: str, question: Question, feature: str) -> tuple[WayOut, ...]:
        """All of them for one denied feature, the nearest change first."""
        return (
            *self.frameworks(product, release, question, (feature,)),
            *self._features(product, release, question),
            *self._releases(product, release, question, feature),
            *self._upstream(product, question, feature),
            *self._models(product, release, question, feature),
        )

    def frameworks(self, product: str, release: str, question: Question, features: Sequence[str]) -> tuple[WayOut, ...]:
        """Frameworks of the same release that have one of ``features`` for the model."""
        if not features:
            return ()
        marks = ", ".join("?" for _ in features)
        rows = self._con.execute(
            "SELECT DISTINCT cl.framework FROM claim cl "
            f"WHERE cl.product = ? AND cl.release = ? AND cl.model = ? AND cl.feature IN ({marks}) "
            "AND cl.status IN ('supported', 'partial') AND cl.framework <> ? ORDER BY 1",
            [product, release, question.model, *features, question.framework],
        ).fetchall()
        ways = []
        for (framework,) in rows:
            english, chinese = self._labels.words(
                product=product, framework=framework, model=question.model, feature=features[0]
            )
            text = Text(
                "use {framework}: {product} {release} supports {feature} for {model} there".format(
                    **english, release=release
                ),
                "改用 {framework}：{product} {release} 在其中支持 {model} 使用{feature}".format(
                    **chinese, release=release
                ),
            )
            ways.append(WayOut(text, {"framework": framework}))
        return tuple(ways)

    def _features(self, product: str, release: str, question: Question) -> tuple[WayOut, ...]:
        rows = self._con.execute(
            "SELECT cl.feature FROM claim cl JOIN feature f ON f.id = cl.feature WHERE cl.product = ? AND cl.release = ? "
            "AND cl.framework = ? AND cl.model = ? AND cl.status = 'supported' AND f.\"group\" IN "
            '(SELECT "group" FROM feature WHERE list_contains(?, id)) AND NOT list_contains(?, cl.feature) ORDER BY 1',
            [product, release, question.framework, question.model, list(question.features), list(question.features)],
        ).fetchall()
        if not rows:
            return ()
        names = [self._labels.name("feature", row[0]) for row in rows[:3]]
        return (
            WayOut(
                Text(
                    f"{product} {release} does support for {question.model} in {question.framework}: "
                    + ", ".join(name.en for name in names),
                    f"{product} {release} 的 {question.framework} 对 {question.model} 支持："
                    + "、".join(name.zh for name in names),
                ),
                {"feature": rows[0][0]},
            ),
        )

    def _releases(self, product: str, release: str, question: Question, feature: str) -> tuple[WayOut, ...]:
        row = self._con.execute(
            "SELECT cl.release FROM claim cl JOIN release r USING (product, release) WHERE cl.product = ? AND cl.framework = ? "
            "AND cl.model = ? AND cl.feature = ? AND cl.status IN ('supported', 'partial') AND cl.release <> ? "
            "ORDER BY r.ordinal DESC LIMIT 1",
            [product, question.framework, question.model, feature, release],
        ).fetchone()
        if row is None:
            return ()
        text = Text(f"use release {row[0]}, which has it", f"改用支持该特性的版本 {row[0]}")
        return (WayOut(text, {"release": row[0]}),)

    def _upstream(self, product: str, question: Question, feature: str) -> tuple[WayOut, ...]:
        row = self._con.execute(
            "SELECT cl.product, cl.release, cl.source FROM claim cl JOIN release r USING (product, release) "
            "WHERE cl.product = ? AND cl.product <> ? AND cl.model = ? AND cl.feature = ? "
            "AND cl.status IN ('supported', 'partial') ORDER BY r.ordinal LIMIT 1",
            [question.framework, product, question.model, feature],
        ).fetchone()
        if row is None:
            return ()
        english, chinese = self._labels.words(product=row[0], model=question.model, feature=feature)
        place = {"since": row[1], "source": address_of(row[2])}
        text = Text(
            "outside the bundle, upstream {product} has {feature} for {model} since {since} ({source})".format(
                **english, **place
            ),
            "在方案之外，上游 {product} 自 {since} 起对 {model} 提供{feature}（{source}）".format(**chinese, **place),
        )
        return (WayOut(text, {"product": row[0], "release": row[1]}),)

    def _models(self, product: str, release: str, question: Question, feature: str) -> tuple[WayOut, ...]:
        row = self._con.execute(
            "SELECT m.id FROM claim cl JOIN model m ON m.id = cl.model, (SELECT family, total_params FROM model WHERE id = ?) me "
            "WHERE cl.product = ? AND cl.release = ? AND cl.framework = ? AND cl.feature = ? AND cl.status = 'supported' "
            "AND m.family = me.family ORDER BY abs(ln(m.total_params / me.total_params)), m.id LIMIT 1",
            [question.model, product, release, question.framework, feature],
        ).fetchone()
        if row is None:
            return ()
        name = self._labels.name("model", row[0])
        text = Text(f"the nearest model that has it there is {name.en}", f"该框架中支持该特性的最接近模型是 {name.zh}")
        return (WayOut(text, {"model": row[0]}),)
