"""Models in scikit-learn's manners: several parties' columns of one table, trained as a federation would."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, get_type_hints

import msgspec
import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from colonnade import federation
from colonnade.errors import ConfigurationError, RefusedError, nearest
from colonnade.job import Job
from colonnade.record import Report
from colonnade.runtime.world import World

Array = npt.NDArray[Any]
Class = TypeVar("Class", bound=type)

OWN = {
    "parties": (
        2,
        "how many parties share the columns evenly, or {party: [columns by name or number]}",
    ),
    "world": (
        "simulated",
        "simulated (deterministic, no processes), loopback, processes, or a World",
    ),
}
"""What a model takes beside the job: default and meaning."""

TABLE: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "ensure_min_samples": 2}
"""The tables that can be trained on, in scikit-learn's words."""


def _settings() -> dict[str, tuple[Any, str]]:
    """Every setting with its default and meaning: `OWN`, then the fields of Job that a model leaves open."""
    hints = get_type_hints(Job, include_extras=True)
    fields = {
        field.name: (field.default, hints[field.name].__metadata__[0].description)
        for field in msgspec.structs.fields(Job)
        if field.name not in ("loss", "parties")
    }
    return OWN | fields


def _takes_settings(model: Class) -> Class:
    """Give a model its constructor and the docstring that lists what it takes."""
    settings = _settings()
    keywords = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
        for name, (default, _) in settings.items()
    ]
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    signature = inspect.Signature([itself, *keywords])

    def __init__(self: Any, **values: Any) -> None:
        bound = signature.bind(self, **values)
        bound.apply_defaults()
        for name in settings:
            setattr(self, name, bound.arguments[name])

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    lines = [f"{name} : default {default!r}\n    {meaning}" for name, (default, meaning) in settings.items()]
    model.__init__ = __init__  # type: ignore[misc]
    model.__doc__ = f"{inspect.cleandoc(model.__doc__ or '')}\n\nParameters\n----------\n" + "\n".join(lines)
    return model


class _VerticalModel(BaseEstimator):  # type: ignore[misc]
    """What both models share: columns dealt to parties, one run, weights put back in the table's order."""

    report_: Report

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _train(self, loss: str, X: Any, y: Array) -> Array:
        """Run the federation; the weights, (columns,) or (columns, classes), in the order of X's columns."""
        held = deal(self.parties, X.shape[1], getattr(self, "feature_names_in_", None))
        names = getattr(self, "feature_names_in_", [str(i) for i in range(X.shape[1])])
        self.report_ = federation.run(
            self._job(loss, tuple(held), X.shape[0]),
            World() if self.world == "simulated" else self.world,
            {party: _columns(X, mine) for party, mine in held.items()},
            y,
            columns={party: [str(names[i]) for i in mine] for party, mine in held.items()},
        )
        _heed(self.report_)
        self.n_iter_ = int(self.report_.trace["rounds"][-1])
        weights = np.concatenate([self.report_.weights[party] for party in held])
        return weights[np.argsort(np.concatenate(list(held.values())))]

    def _job(self, loss: str, parties: tuple[str, ...], rows: int) -> Job:
        values = {name: getattr(self, name) for name in _settings() if name not in OWN}
        values["batch_size"] = min(values["batch_size"], rows)
        if hasattr(values["random_state"], "randint"):  # a generator, as scikit-learn's estimators take
            values["random_state"] = int(values["random_state"].randint(2**31))
        return Job(loss=loss, parties=parties, **values)  # type: ignore[arg-type]

    def _scores(self, X: Any) -> Array:
        """θ = X w + b for rows that the parties have not seen, in one place."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        scores: Array = X @ self.coef_.T + self.intercept_
        return scores


@_takes_settings
class VerticalLogisticRegression(ClassifierMixin, _VerticalModel):  # type: ignore[misc]
    """Logistic regression over columns that several parties hold; multinomial for more than two classes.

    Equal to scikit-learn's LogisticRegression(C=1/(n * alpha)).
    """

    def fit(self, X: Any, y: Any) -> VerticalLogisticRegression:
        X, y = validate_data(self, X, y, **TABLE)
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        loss = "multinomial" if len(self.classes_) > 2 else "logistic"
        self.coef_ = np.atleast_2d(self._train(loss, X, y).T)
        self.intercept_ = np.atleast_1d(np.asarray(self.report_.intercept, dtype=np.float64))
        return self

    def decision_function(self, X: Any) -> Array:
        """Scores: (rows,) for two classes, (rows, classes) for more."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict_proba(self, X: Any) -> Array:
        scores = self._scores(X)
        if scores.shape[1] == 1:
            return np.hstack([expit(-scores), expit(scores)])
        probabilities: Array = softmax(scores, axis=1)
        return probabilities

    def predict(self, X: Any) -> Array:
        scores = self.decision_function(X)
        chosen = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        classes: Array = self.classes_[chosen]
        return classes


@_takes_settings
class VerticalRidge(RegressorMixin, _VerticalModel):  # type: ignore[misc]
    """Ridge regression over columns that several parties hold.

    The mean of (y - Xw - b)² plus alpha/2 |w|²: equal to scikit-learn's Ridge(alpha=n * alpha / 2).
    """

    def fit(self, X: Any, y: Any) -> VerticalRidge:
        X, y = validate_data(self, X, y, y_numeric=True, **TABLE)
        self.coef_ = self._train("squared", X, y)
        self.intercept_ = float(np.squeeze(self.report_.intercept))
        return self

    def predict(self, X: Any) -> Array:
        return self._scores(X)


def deal(
    parties: int | Mapping[str, Sequence[str | int]], columns: int, names: Array | None
) -> dict[str, list[int]]:
    """Who holds which columns: a number deals contiguous, nearly equal groups, a mapping names them all."""
    if not isinstance(parties, Mapping):
        if not isinstance(parties, (int, np.integer)) or isinstance(parties, bool) or parties < 1:
            raise ConfigurationError(
                f"parties = {parties!r}: give a number of at least 1, or {{party: columns}}"
            )
        groups = np.array_split(np.arange(columns), min(int(parties), columns))
        return {f"p{i}": group.tolist() for i, group in enumerate(groups)}
    held = {party: [_position(column, columns, names) for column in mine] for party, mine in parties.items()}
    _check_shared_out(held, columns, names)
    return held


def _position(column: str | int, columns: int, names: Array | None) -> int:
    if isinstance(column, str):
        known = [] if names is None else list(names)
        if column not in known:
            hint = nearest(column, known) if known else "X has no column names, so number the columns from 0"
            raise ConfigurationError(f"parties names the column {column!r}: {hint}")
        return known.index(column)
    if not -1 < column < columns:
        raise ConfigurationError(f"parties names the column {column!r}: X has the columns 0 to {columns - 1}")
    return int(column)


def _check_shared_out(held: dict[str, list[int]], columns: int, names: Array | None) -> None:
    holder: dict[int, str] = {}
    for party, mine in held.items():
        if not mine:
            raise ConfigurationError(f"party {party!r} has no columns: give it some, or leave it out")
        for column in mine:
            if column in holder:
                raise ConfigurationError(
                    f"column {_named(column, names)} is given to {holder[column]!r} and to {party!r}: "
                    "one party holds it"
                )
            holder[column] = party
    left = [column for column in range(columns) if column not in holder]
    if left:
        raise ConfigurationError(
            f"{len(left)} columns of X belong to no party, the first is {_named(left[0], names)}: "
            "give them to a party or drop them"
        )


def _named(column: int, names: Array | None) -> str:
    return repr(str(names[column])) if names is not None else str(column)


def _columns(X: Any, mine: list[int]) -> Any:
    if sparse.issparse(X):
        return X.tocsc()[:, mine].tocsr()
    contiguous = mine == list(range(mine[0], mine[0] + len(mine)))
    return X[:, mine[0] : mine[0] + len(mine)] if contiguous else X[:, mine]


def _heed(report: Report) -> None:
    """A run without a model is an error, one without its optimum a warning."""
    if report.outcome in ("refused", "peer lost"):
        raise RefusedError(f"{report.outcome}: {report.detail}")
    if report.outcome != "converged" and (report.job.tol > 0 or report.outcome != "budget"):
        warnings.warn(f"{report.outcome}: {report.detail}", ConvergenceWarning, stacklevel=4)
