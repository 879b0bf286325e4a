"""Tuning of scikit-learn's learners, on data sets that scikit-learn and statsmodels ship.

Losses are cross-validated; those that depend on the seed of a learner are noisy.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from benchmarks.real.spaces import Params, choice, real, whole
from benchmarks.real.tasks.task import Half, Task

_NUM_FOLDS, _NUM_REPEATED = 3, 10
# Seeds of what counts as the loss without noise.
_SEEDS = range(10_000, 10_000 + _NUM_REPEATED)


@dataclass(frozen=True)
class _Learner:
    """The cross-validated loss of a learner.

    Args:
        data: Inputs and outcomes.
        make: The learner of a setting and a seed.
        scoring: Whose negative is the loss, as scikit-learn calls it.
        is_random: Whether it depends on the seed.
    """

    data: tuple[Any, Any]
    make: Callable[[Params, int], Any]
    scoring: str
    is_random: bool

    def seen(self, params: Params, seed: int) -> float:
        """The loss of one fit on each fold."""
        from sklearn.model_selection import KFold, cross_val_score

        folds = KFold(_NUM_FOLDS, shuffle=True, random_state=0)
        learner = self.make(params, seed)
        return -float(cross_val_score(learner, *self.data, scoring=self.scoring, cv=folds).mean())

    def true(self, params: Params) -> float:
        """The mean over several seeds."""
        seeds = _SEEDS if self.is_random else _SEEDS[:1]
        return sum(self.seen(params, seed) for seed in seeds) / len(seeds)


@cache
def standardised(name: str) -> tuple[Any, Any]:
    """Standardised inputs, and outcomes: classes, or numbers of variance 1."""
    import numpy as np
    from sklearn import datasets
    from sklearn.preprocessing import scale

    if name in ("star98", "fair", "randhie", "anes96"):
        from statsmodels import datasets as shipped

        found = getattr(shipped, name).load()
        X, y = np.asarray(found.exog, float), np.asarray(found.endog, float)
        if name == "star98":
            y = y[:, 0] / y.sum(axis=1)
        elif name != "anes96":
            y = np.log1p(y)
    else:
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    some = np.random.default_rng(0).permutation(len(X))[:600]
    X, y = scale(X[some]), y[some]
    is_class = name in ("digits", "wine", "breast_cancer")
    return X, y if is_class else scale(np.asarray(y, float))


def _svc(p: Params, seed: int) -> Any:
    from sklearn.svm import SVC

    return SVC(C=p["C"], gamma=p["gamma"])


def _svr(p: Params, seed: int) -> Any:
    from sklearn.svm import SVR

    return SVR(C=p["C"], gamma=p["gamma"], epsilon=p["epsilon"])


def _forest(p: Params, seed: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(
        n_estimators=p["trees"],
        max_depth=p["depth"],
        max_features=p["features"],
        min_samples_leaf=p["leaf"],
        criterion=p["criterion"],
        random_state=seed,
    )


def _extra_trees(p: Params, seed: int) -> Any:
    from sklearn.ensemble import ExtraTreesRegressor

    return ExtraTreesRegressor(
        n_estimators=p["trees"],
        max_depth=p["depth"],
        max_features=p["features"],
        min_samples_split=p["split"],
        bootstrap=p["bootstrap"] == "yes",
        random_state=seed,
    )


def _boosting(p: Params, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(
        learning_rate=p["rate"],
        max_iter=p["trees"],
        max_leaf_nodes=p["leaves"],
        min_samples_leaf=p["leaf"],
        l2_regularization=p["l2"],
        early_stopping=False,
        random_state=0,
    )


def _trees_by_gradient(p: Params, seed: int) -> Any:
    from sklearn.ensemble import GradientBoostingClassifier

    return GradientBoostingClassifier(
        learning_rate=p["rate"],
        n_estimators=p["trees"],
        max_depth=p["depth"],
        subsample=p["subsample"],
        max_features=p["features"],
        random_state=0,
    )


def _network(p: Params, seed: int, *, classes: bool) -> Any:
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    return (MLPClassifier if classes else MLPRegressor)(
        hidden_layer_sizes=(p["units"],) * p["layers"],
        activation=p["activation"],
        alpha=p["alpha"],
        learning_rate_init=p["rate"],
        batch_size=p["batch"],
        max_iter=20,
        random_state=seed,
    )


def _elastic_net(p: Params, seed: int) -> Any:
    from sklearn.linear_model import ElasticNet
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures

    net = ElasticNet(alpha=p["alpha"], l1_ratio=p["l1"], max_iter=300)
    return make_pipeline(PolynomialFeatures(2), net)


def _neighbours(p: Params, seed: int) -> Any:
    from sklearn.decomposition import PCA
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline

    near = KNeighborsClassifier(p["k"], weights=p["weights"], p=p["power"])
    return make_pipeline(PCA(p["components"], random_state=0), near)


def _one_of_four(p: Params, seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.svm import SVC
    from sklearn.tree import DecisionTreeClassifier

    if p["learner"] == "svm":
        return SVC(C=p["C"], gamma=p["gamma"], probability=True, random_state=0)
    if p["learner"] == "neighbours":
        return KNeighborsClassifier(p["k"], weights=p["weights"])
    if p["learner"] == "tree":
        return DecisionTreeClassifier(
            max_depth=p["depth"], min_samples_leaf=p["leaf"], random_state=0
        )
    return LogisticRegression(C=p["inverse_penalty"], max_iter=500)


def _one_of_three(p: Params, seed: int) -> Any:
    make = {"svm": _svr, "boosting": _boosting, "elastic net": _elastic_net}[p["learner"]]
    return make(p, seed)


def _ada_boost(p: Params, seed: int) -> Any:
    from sklearn.ensemble import AdaBoostClassifier
    from sklearn.tree import DecisionTreeClassifier

    tree = DecisionTreeClassifier(max_depth=p["depth"], min_samples_leaf=p["leaf"])
    return AdaBoostClassifier(
        tree, n_estimators=p["trees"], learning_rate=p["rate"], random_state=0
    )


def _kernel_ridge(p: Params, seed: int) -> Any:
    from sklearn.kernel_ridge import KernelRidge

    own = {key: p[key] for key in ("gamma", "degree", "coef0") if key in p}
    return KernelRidge(alpha=p["alpha"], kernel=p["kernel"], **own)


def _descent(p: Params, seed: int) -> Any:
    from sklearn.linear_model import SGDClassifier

    return SGDClassifier(
        loss=p["loss"],
        penalty=p["penalty"],
        alpha=p["alpha"],
        l1_ratio=p.get("l1", 0.15),
        learning_rate=p["schedule"],
        eta0=p.get("eta0", 0.01),
        power_t=p.get("power_t", 0.5),
        max_iter=20,
        tol=None,
        random_state=seed,
    )


def _task(
    name: str,
    half: Half,
    evaluations: int,
    learner: tuple[Callable[..., Any], str, str],
    *parameters: Any,
    is_random: bool = False,
) -> Task:
    make, data, scoring = learner
    conditional = any(p.only_if is not None for p in parameters)
    return Task(
        name,
        "conditional" if conditional else "tuning",
        half,
        parameters,
        evaluations,
        lambda: _Learner(standardised(data), make, scoring, is_random),
    )


_SQUARES, _ACCURACY, _LOG_LOSS = "neg_root_mean_squared_error", "accuracy", "neg_log_loss"
_NETWORK = (
    whole("units", 4, 64, log=True),
    whole("layers", 1, 3),
    choice("activation", "relu", "tanh", "logistic"),
    real("alpha", 1e-5, 1.0, log=True),
    real("rate", 1e-4, 0.02, log=True),
    whole("batch", 8, 128, log=True),
)

TASKS = (
    _task(
        "SVC on digits",
        "develop",
        30,
        (_svc, "digits", _ACCURACY),
        real("C", 1e-2, 1e3, log=True),
        real("gamma", 1e-5, 1.0, log=True),
    ),
    _task(
        "forest on wine",
        "develop",
        40,
        (_forest, "wine", _LOG_LOSS),
        whole("trees", 5, 60, log=True),
        whole("depth", 1, 12),
        real("features", 0.05, 1.0),
        whole("leaf", 1, 20, log=True),
        choice("criterion", "gini", "entropy"),
        is_random=True,
    ),
    _task(
        "boosting on fair",
        "develop",
        40,
        (_boosting, "fair", _SQUARES),
        real("rate", 5e-3, 1.0, log=True),
        whole("trees", 5, 100, log=True),
        whole("leaves", 2, 64, log=True),
        whole("leaf", 1, 100, log=True),
        real("l2", 1e-6, 100.0, log=True),
    ),
    _task(
        "network on diabetes",
        "develop",
        40,
        (partial(_network, classes=False), "diabetes", _SQUARES),
        *_NETWORK,
        is_random=True,
    ),
    _task(
        "elastic net on diabetes",
        "develop",
        30,
        (_elastic_net, "diabetes", _SQUARES),
        real("alpha", 1e-3, 10.0, log=True),
        real("l1", 0.0, 1.0),
    ),
    _task(
        "one of four learners on breast cancer",
        "develop",
        50,
        (_one_of_four, "breast_cancer", _LOG_LOSS),
        choice("learner", "svm", "neighbours", "tree", "logistic"),
        real("C", 1e-2, 1e3, log=True, only_if=("learner", ("svm",))),
        real("gamma", 1e-5, 1.0, log=True, only_if=("learner", ("svm",))),
        whole("k", 1, 50, log=True, only_if=("learner", ("neighbours",))),
        choice("weights", "uniform", "distance", only_if=("learner", ("neighbours",))),
        whole("depth", 1, 15, only_if=("learner", ("tree",))),
        whole("leaf", 1, 50, log=True, only_if=("learner", ("tree",))),
        real("inverse_penalty", 1e-4, 1e2, log=True, only_if=("learner", ("logistic",))),
    ),
    _task(
        "SVR on diabetes",
        "report",
        40,
        (_svr, "diabetes", _SQUARES),
        real("C", 1e-2, 1e3, log=True),
        real("gamma", 1e-5, 1.0, log=True),
        real("epsilon", 1e-3, 1.0, log=True),
    ),
    _task(
        "extra trees on star98",
        "report",
        40,
        (_extra_trees, "star98", _SQUARES),
        whole("trees", 5, 60, log=True),
        whole("depth", 1, 15),
        real("features", 0.05, 1.0),
        whole("split", 2, 30, log=True),
        choice("bootstrap", "yes", "no"),
        is_random=True,
    ),
    _task(
        "boosting on breast cancer",
        "report",
        40,
        (_trees_by_gradient, "breast_cancer", _LOG_LOSS),
        real("rate", 1e-2, 1.0, log=True),
        whole("trees", 5, 60, log=True),
        whole("depth", 1, 6),
        real("subsample", 0.3, 1.0),
        real("features", 0.05, 1.0),
    ),
    _task(
        "network on digits",
        "report",
        40,
        (partial(_network, classes=True), "digits", _LOG_LOSS),
        *_NETWORK,
        is_random=True,
    ),
    _task(
        "neighbours on wine",
        "report",
        40,
        (_neighbours, "wine", _LOG_LOSS),
        whole("k", 1, 50, log=True),
        choice("weights", "uniform", "distance"),
        real("power", 1.0, 5.0),
        whole("components", 1, 13),
    ),
    _task(
        "kernel ridge on star98",
        "report",
        40,
        (_kernel_ridge, "star98", _SQUARES),
        real("alpha", 1e-4, 10.0, log=True),
        choice("kernel", "rbf", "laplacian", "polynomial", "linear"),
        real("gamma", 1e-4, 1.0, log=True, only_if=("kernel", ("rbf", "laplacian", "polynomial"))),
        whole("degree", 1, 4, only_if=("kernel", ("polynomial",))),
        real("coef0", 0.0, 2.0, only_if=("kernel", ("polynomial",))),
    ),
    _task(
        "descent on digits",
        "report",
        50,
        (_descent, "digits", _ACCURACY),
        choice("loss", "hinge", "log_loss", "modified_huber"),
        choice("penalty", "l2", "l1", "elasticnet"),
        real("alpha", 1e-6, 1e-1, log=True),
        real("l1", 0.0, 1.0, only_if=("penalty", ("elasticnet",))),
        choice("schedule", "optimal", "constant", "invscaling"),
        real("eta0", 1e-4, 1.0, log=True, only_if=("schedule", ("constant", "invscaling"))),
        real("power_t", 0.1, 0.9, only_if=("schedule", ("invscaling",))),
        is_random=True,
    ),
    _task(
        "SVR on anes96",
        "confirm",
        40,
        (_svr, "anes96", _SQUARES),
        real("C", 1e-2, 1e3, log=True),
        real("gamma", 1e-5, 1.0, log=True),
        real("epsilon", 1e-3, 1.0, log=True),
    ),
    _task(
        "extra trees on diabetes",
        "confirm",
        40,
        (_extra_trees, "diabetes", _SQUARES),
        whole("trees", 5, 60, log=True),
        whole("depth", 1, 15),
        real("features", 0.05, 1.0),
        whole("split", 2, 30, log=True),
        choice("bootstrap", "yes", "no"),
        is_random=True,
    ),
    _task(
        "AdaBoost on breast cancer",
        "confirm",
        40,
        (_ada_boost, "breast_cancer", _LOG_LOSS),
        whole("trees", 5, 60, log=True),
        real("rate", 1e-2, 2.0, log=True),
        whole("depth", 1, 6),
        whole("leaf", 1, 50, log=True),
    ),
    _task(
        "network on breast cancer",
        "confirm",
        40,
        (partial(_network, classes=True), "breast_cancer", _LOG_LOSS),
        *_NETWORK,
        is_random=True,
    ),
    _task(
        "one of three learners on randhie",
        "confirm",
        50,
        (_one_of_three, "randhie", _SQUARES),
        choice("learner", "svm", "boosting", "elastic net"),
        real("C", 1e-2, 1e3, log=True, only_if=("learner", ("svm",))),
        real("gamma", 1e-5, 1.0, log=True, only_if=("learner", ("svm",))),
        real("epsilon", 1e-3, 1.0, log=True, only_if=("learner", ("svm",))),
        real("rate", 5e-3, 1.0, log=True, only_if=("learner", ("boosting",))),
        whole("trees", 5, 100, log=True, only_if=("learner", ("boosting",))),
        whole("leaves", 2, 64, log=True, only_if=("learner", ("boosting",))),
        whole("leaf", 1, 100, log=True, only_if=("learner", ("boosting",))),
        real("l2", 1e-6, 100.0, log=True, only_if=("learner", ("boosting",))),
        real("alpha", 1e-3, 10.0, log=True, only_if=("learner", ("elastic net",))),
        real("l1", 0.0, 1.0, only_if=("learner", ("elastic net",))),
    ),
)
