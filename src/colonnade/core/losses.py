"""Losses: each sees scores θ and labels, never X. Stable far beyond |θ| = 1e3 on both sides."""

from __future__ import annotations

from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from colonnade.errors import DataError

Array = NDArray[np.float64]
Labels = NDArray[Any]

_STEEP = 700.0
"""exp of more overflows; a slope of exp(-700) is as good as none."""

_NEAR = 1e-8
"""A Newton step so short leaves an error of its square: no bit of the intercept is wrong after it."""

_LEAST_DAMPING = 1e-12
_MOST_STEPS = 100


class Loss(Protocol):
    """A convex loss of the score (or of the c scores) of a row."""

    smoothness: float
    """An upper bound of the curvature: the c of the step bounds."""

    def value(self, scores: Array, labels: Labels) -> float:
        """Mean over the rows."""
        ...

    def slopes(self, scores: Array, labels: Labels) -> Array:
        """∂L/∂θ of each row."""
        ...

    def curvature(self, scores: Array, labels: Labels, along: Array) -> Array:
        """L''(θ)·along of each row."""
        ...

    def encode(self, y: Any) -> tuple[Labels, NDArray[Any] | None]:
        """Labels as the loss wants them, and the sorted classes (None for numbers)."""
        ...


class Logistic:
    """log(1 + exp(-yθ)), y = ±1."""

    smoothness = 0.25

    def value(self, scores: Array, labels: Labels) -> float:
        margins = labels * scores
        return float(np.mean(np.log1p(np.exp(-np.abs(margins))) - np.minimum(margins, 0.0)))

    def slopes(self, scores: Array, labels: Labels) -> Array:
        bottom = labels * scores
        np.minimum(bottom, _STEEP, out=bottom)
        np.exp(bottom, out=bottom)
        np.subtract(-1.0, bottom, out=bottom)
        return np.divide(labels, bottom, out=bottom)

    def curvature(self, scores: Array, labels: Labels, along: Array) -> Array:
        far = np.exp(-np.abs(scores))
        return far / (1.0 + far) ** 2 * along

    def encode(self, y: Any) -> tuple[Labels, NDArray[Any] | None]:
        classes, codes = _classes(y)
        if len(classes) > 2:
            raise DataError(
                f"the labels have {len(classes)} classes and the logistic loss takes two: "
                'use loss = "multinomial", or "squared" if they are quantities'
            )
        return np.where(codes == 1, 1.0, -1.0), classes


class Multinomial:
    """-log softmax(θ)_y, y the number of a class."""

    smoothness = 0.5

    def value(self, scores: Array, labels: Labels) -> float:
        shifted = scores - scores.max(axis=1, keepdims=True)
        chosen = shifted[np.arange(len(labels)), labels]
        return float(np.mean(np.log(np.exp(shifted).sum(axis=1)) - chosen))

    def slopes(self, scores: Array, labels: Labels) -> Array:
        out = _softmax(scores)
        out[np.arange(len(labels)), labels] -= 1.0
        return out

    def curvature(self, scores: Array, labels: Labels, along: Array) -> Array:
        p = _softmax(scores)
        return cast(Array, p * (along - np.sum(p * along, axis=1, keepdims=True)))

    def encode(self, y: Any) -> tuple[Labels, NDArray[Any] | None]:
        classes, codes = _classes(y)
        if classes.dtype.kind == "f" and len(classes) > 2 and (classes % 1).any():
            raise DataError(
                f"the labels are {len(classes)} fractions such as {classes[classes % 1 != 0][0]}, which are no "
                'classes: use loss = "squared"'
            )
        return codes.astype(np.int64), classes


class Squared:
    """(θ - y)², the papers' ridge."""

    smoothness = 2.0

    def value(self, scores: Array, labels: Labels) -> float:
        return float(np.mean((scores - labels) ** 2))

    def slopes(self, scores: Array, labels: Labels) -> Array:
        return 2.0 * (scores - labels)

    def curvature(self, scores: Array, labels: Labels, along: Array) -> Array:
        return 2.0 * along

    def encode(self, y: Any) -> tuple[Labels, NDArray[Any] | None]:
        values = _one_a_row(y)
        try:
            labels = values.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(
                f"the labels of a regression are numbers, and these are not (the first label is {_first(values)!r}): "
                'use loss = "logistic" or "multinomial" for classes'
            ) from error
        _refuse_missing(~np.isfinite(labels))
        return labels, None


LOSSES: dict[str, Loss] = {"logistic": Logistic(), "multinomial": Multinomial(), "squared": Squared()}


def _softmax(scores: Array) -> Array:
    out = np.exp(scores - scores.max(axis=1, keepdims=True))
    out /= out.sum(axis=1, keepdims=True)
    return cast(Array, out)


def _classes(y: Any) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The sorted classes and the number of each row's."""
    values = _one_a_row(y)
    if values.dtype.kind in "fc":
        _refuse_missing(~np.isfinite(values))
    elif values.dtype.kind == "O":
        _refuse_missing(np.array([v is None or v != v for v in values], bool))
    try:
        classes, codes = np.unique(values, return_inverse=True)
    except TypeError as error:
        raise DataError(f"the labels mix kinds that have no order ({error}): make them one kind") from error
    if len(classes) < 2:
        raise DataError(
            f"the labels have one class only ({_first(classes)!r}): two are needed to learn anything"
        )
    return classes, codes


def _first(values: Any) -> Any:
    """As Python shows it."""
    return np.asarray(values).tolist()[0]


def _one_a_row(y: Any) -> NDArray[Any]:
    values = np.asarray(y)
    if values.ndim != 1 or not len(values):
        raise DataError(f"the labels have the shape {values.shape}: give one for each row")
    return values


def _refuse_missing(missing: NDArray[np.bool_]) -> None:
    if missing.any():
        raise DataError(
            f"{np.count_nonzero(missing)} labels are missing, NaN or infinite (the first in row "
            f"{int(np.argmax(missing))}): drop these rows"
        )


def eliminate_intercept(
    loss: Loss, scores: Array, labels: Labels, start: float | Array, penalty: float = 0.0
) -> float | Array:
    """The b that minimises mean L(θ + b) + penalty/2 |b|², to machine precision; `scores` are without b.

    Multinomial intercepts sum to zero. Where the optimum is infinite (one class only), b stops where nothing
    changes.
    """
    if scores.ndim == 1:
        return _bracketed_newton(loss, scores, labels, float(start), penalty)
    return _damped_newton(loss, scores, labels, np.asarray(start, np.float64), penalty)


def _bracketed_newton(loss: Loss, scores: Array, labels: Labels, b: float, penalty: float) -> float:
    """Newton's method on the objective's slope, which rises with b; bisection where it leaves the bracket."""
    reach = float(np.abs(scores).max() + np.abs(labels).max() + np.log(len(scores)))
    low, high = -reach, reach
    b, ones = min(max(b, low), high), np.ones_like(scores)
    for _ in range(_MOST_STEPS):
        theta = scores + b
        slope = float(loss.slopes(theta, labels).mean()) + penalty * b
        bend = float(loss.curvature(theta, labels, ones).mean()) + penalty
        low, high = (low, b) if slope > 0 else (b, high)
        before, b = b, b - slope / bend if bend > 0 else np.inf
        if not low <= b <= high:
            b = (low + high) / 2
        if abs(b - before) <= max(_NEAR, 4e-16 * abs(b)):
            break
    return b


def _damped_newton(loss: Loss, scores: Array, labels: Labels, b: Array, penalty: float) -> Array:
    """Newton's method, its step shortened (Levenberg) until the objective does not rise."""

    def objective(b: Array) -> float:
        return loss.value(scores + b, labels) + penalty / 2 * float(b @ b)

    b, damping, unit = b - b.mean(), _LEAST_DAMPING, np.eye(len(b))
    best = objective(b)
    for _ in range(_MOST_STEPS):
        slope = loss.slopes(scores + b, labels).mean(axis=0) + penalty * b
        bend = _bend(loss, scores + b, labels) + (penalty + damping) * unit
        step = np.linalg.solve(bend, slope)
        step -= step.mean()
        small = np.abs(step).max() <= _NEAR
        reached = objective(b - step)
        if reached > best and not small:
            damping *= 10.0
            continue
        b, best = b - step, reached
        if small and damping == _LEAST_DAMPING:
            break
        damping = max(damping / 10.0, _LEAST_DAMPING)
    return cast(Array, b - b.mean())


def _bend(loss: Loss, theta: Array, labels: Labels) -> Array:
    """The mean second derivative, (c, c)."""
    units = (np.broadcast_to(unit, theta.shape) for unit in np.eye(theta.shape[1]))
    return np.stack([loss.curvature(theta, labels, unit).mean(axis=0) for unit in units])
