"""StrategyNode: a strategy of the library as a node of Ax's generation strategies."""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ax.adapter.base import Adapter
from ax.adapter.registry import Generators
from ax.core.arm import Arm
from ax.core.data import Data
from ax.core.experiment import Experiment
from ax.core.experiment_status import ExperimentStatus
from ax.core.generator_run import GeneratorRun
from ax.core.observation import ObservationFeatures
from ax.core.types import TParameterization
from ax.exceptions.core import DataRequiredError, UserInputError
from ax.exceptions.generation_strategy import GenerationStrategyCompleted
from ax.generation_strategy.external_generation_node import ExternalGenerationNode
from ax.generation_strategy.transition_criterion import PausingCriterion, TransitionCriterion
from ax.storage.json_store.decoder import object_from_json
from ax.storage.json_store.registry import CORE_DECODER_REGISTRY, CORE_ENCODER_REGISTRY
from ax.utils.common.serialization import SerializationMixin

from botorch_ext import algorithms
from botorch_ext.checks import short
from botorch_ext.codec import decode, encode, is_allowed_algorithm, require_bounded
from botorch_ext.domains import Box
from botorch_ext.exceptions import (
    HorizonReached,
    HostWarning,
    NoObservationsError,
    WaitingForObservations,
)
from botorch_ext.integrations.ax_space import AxSpace
from botorch_ext.integrations.ax_trials import RECORD, AxObjective, AxTrials
from botorch_ext.integrations.hosted import HostedStrategy
from botorch_ext.integrations.recipes import Recipe
from botorch_ext.plain_events import from_json, to_json
from botorch_ext.strategies import Strategy

_TRIED_ON = Box([[0.0, 0.0], [1.0, 1.0]])
# The largest number of trials at once for which a method is checked.
_MANY = 64
# The type of a node in Ax's JSON. Ax's error quotes it in a process that has not imported this
# module.
_SAVED_AS = "StrategyNode (import botorch_ext.integrations.ax)"
# The entries of a node in Ax's JSON, with their types, or those of the parts of a list; Ax saves
# those of the second dict.
_SAVED: dict[str, Any] = {
    "arguments": str,
    "contexts": [str],
    "num_points": int | None,
    "name": str,
    "should_deduplicate": bool,
}
_SAVED_BY_AX: dict[str, Any] = {
    "transition_criteria": [TransitionCriterion],
    "pausing_criteria": [PausingCriterion],
    "suggested_experiment_status": ExperimentStatus | None,
}


class StrategyNode(ExternalGenerationNode):
    """A node of Ax's generation strategies in which a strategy of this library chooses the trials.

    The trials of the experiment are its only memory. It keeps a short record of each trial in the
    metadata of the candidate, which Ax saves to JSON and to databases. So another process, or this
    process after a crash, asks the same trials that this process would have asked.

    The values are those of the single metric of the objective in its own units, or of a weighted
    sum. Since Ax saves values with ten decimals, the strategy learns them with ten decimals from
    the start. Trials of other nodes and attached trials are data if the method can use them. A
    trial that was stopped early counts as failed; a complete trial without a value counts as
    running.

    Args:
        algorithm: The name of an algorithm in `botorch_ext.algorithms`; or a function of a domain
            and arguments that `allow_argument` has registered with ``is_algorithm=True``.
        contexts: The names of context parameters, which are observed and not chosen; Ax passes
            their values as fixed features whenever it asks for a trial.
        num_points: The number of points of the space among which the method chooses, for methods
            that search only finite sets or boxes with nothing but bounds; None searches the space
            itself.
        name: The name of the node; None for that of the algorithm.
        should_deduplicate: As in Ax. Methods of this library ask for a point again on purpose.
        transition_criteria: As in Ax.
        pausing_criteria: As in Ax.
        suggested_experiment_status: As in Ax.
        **arguments: The arguments of the algorithm. If the algorithm takes a `Fitted` kernel and
            none is given, it gets one. Two nodes with the same method on one space need different
            seeds.

    Raises:
        ValueError: If an argument is missing, unknown, impossible or cannot be saved; the message
            names it.
    """

    def __init__(
        self,
        algorithm: str | Callable[..., Strategy],
        *,
        contexts: Sequence[str] = (),
        num_points: int | None = None,
        name: str | None = None,
        should_deduplicate: bool = False,
        transition_criteria: Sequence[TransitionCriterion] | None = None,
        pausing_criteria: Sequence[PausingCriterion] | None = None,
        suggested_experiment_status: ExperimentStatus | None = None,
        _is_loaded: bool = False,
        **arguments: Any,
    ) -> None:
        started = time.monotonic()
        if isinstance(contexts, str) or not all(isinstance(name, str) for name in contexts):
            raise ValueError(f"contexts must be a list of names of parameters, got {contexts!r}")
        self._contexts = tuple(contexts)
        self._recipe = _checked_recipe(algorithm, arguments, num_points, self._contexts)
        # Checked now, so that the experiment can be saved when it is under way.
        self._saved = _as_text({"algorithm": algorithm, **self._recipe.arguments})
        if not _is_loaded:  # a saved algorithm was checked when its node was made
            _require_possible(self._recipe, self._contexts)
        super().__init__(
            name=self._recipe.name if name is None else name,
            should_deduplicate=should_deduplicate,
            transition_criteria=transition_criteria,
            suggested_experiment_status=suggested_experiment_status,
        )
        self._pausing_criteria = pausing_criteria or []
        self._hosted: HostedStrategy | None = None
        self._space: AxSpace | None = None
        self._made_for: str | None = None
        self._warned: set[str] = set()
        self._surrogate: tuple[Any, Adapter | None] = (None, None)
        self.fit_time_since_gen = time.monotonic() - started

    @property
    def strategy(self) -> Strategy | None:
        """A copy of the strategy, in the state of the last ask: for `report`, `best` and pictures.
        None before the first one."""
        return None if self._hosted is None else self._hosted.strategy

    def best(
        self, fixed_parameters: Mapping[str, Any] | None = None
    ) -> tuple[TParameterization, float]:
        """The evaluated trial with the best posterior mean.

        The mean uses all data of the experiment; if the node does not belong to a generation
        strategy, it uses the data of the last ask.

        Args:
            fixed_parameters: The context for which the best trial is wanted, by name; None for the
                context of each trial.

        Returns:
            The parameters, without contexts unless they are given, and the posterior mean, in the
            units of the objective.

        Raises:
            NoObservationsError: If nothing was evaluated.
            UserInputError: If a context is missing, or does not lie in the search space.
        """
        strategy = self._generation_strategy
        if strategy is not None and strategy._experiment is not None:
            self._fit(strategy._experiment)
        if self._hosted is None or self._space is None:
            raise NoObservationsError("best needs a node that was asked, got a new one")
        context = None
        if fixed_parameters is not None:
            self._space.require_contexts_alone(fixed_parameters)
            context = self._space.context_of(fixed_parameters)
        x, mean = self._hosted.strategy.best(context=context)
        parameters = self._space.arm_of(self._space.chosen.params(x), context)
        return parameters, mean

    @property
    def _fitted_adapter(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
    ) -> Adapter | None:
        """Ax's default model, fitted to all trials with values, for `Client.predict` and the
        analyses of Ax. None if fewer than two arms have values, which are too few for them, if only
        some values of a metric have standard errors, which Ax's model refuses, or if the node does
        not belong to a generation strategy."""
        experiment = getattr(self._generation_strategy, "_experiment", None)
        if experiment is None:
            return None
        data = experiment.lookup_data()
        are_mixed = data.df["sem"].isna().groupby(data.df["metric_signature"]).nunique() > 1
        if data.df["arm_name"].nunique() < 2 or bool(are_mixed.any()):
            return None
        known = [AxSpace.described(experiment.search_space), data]
        if self._surrogate[0] != known:
            made = Generators.BOTORCH_MODULAR(experiment=experiment, data=data)
            self._surrogate = (known, made)
        return self._surrogate[1]

    # --- what Ax calls ----------------------------------------------------------------------------

    def update_generator_state(self, experiment: Experiment, data: Data) -> None:
        """Learn the present state of the trials; Ax calls this."""
        objective = AxObjective.of(experiment)
        made_for = f"{AxSpace.described(experiment.search_space)} {objective}"
        if self._hosted is None or self._space is None or made_for != self._made_for:
            space = AxSpace(experiment.search_space, self._contexts)
            domain = None if space.contexts is None else space.contexts.without_names()
            strategy = self._recipe.make(space.chosen, domain, objective.minimize)
            of = sorted([name, weight] for name, weight in objective.weights.items())
            self._hosted = HostedStrategy(strategy, space.chosen, objective.minimize, of)
            self._space, self._made_for = space, made_for
        found = AxTrials.of(experiment, data, self._space, objective)
        self._warn(found, objective)
        self._hosted.follow(found.trials)

    def get_next_candidate(self, pending_parameters: list[TParameterization]) -> TParameterization:
        """The parameters of the next trial, without storing its record; `gen` stores it."""
        return self._asked({})[0]

    def new_trial_limit(self, raise_generation_errors: bool = False) -> int:
        """The number of trials that can be asked for now.

        Returns:
            The number; -1 if there is no limit.
        """
        limit = super().new_trial_limit(raise_generation_errors)
        if self._contexts:
            return limit
        self._fit(experiment=self.experiment)
        askable = _MANY if self._hosted is None else self._hosted.num_askable(_MANY)
        if askable == _MANY:
            return limit
        return askable if limit == -1 else min(limit, askable)

    def _gen(
        self,
        experiment: Experiment,
        data: Data | None = None,
        n: int | None = None,
        pending_observations: dict[str, list[ObservationFeatures]] | None = None,
        **generator_gen_kwargs: Any,
    ) -> GeneratorRun:
        if self._generator_spec_to_gen_from is not None:  # Ax falls back to another generator
            return super()._gen(experiment, data, n, pending_observations, **generator_gen_kwargs)
        started = time.monotonic()
        features = generator_gen_kwargs.get("fixed_features")
        fixed = {} if features is None else features.parameters
        arms, metadata = [], {}
        for _ in range(1 if n is None else n):
            before = self._hosted.state() if arms and self._hosted is not None else None
            try:
                parameters, record = self._asked(fixed)
            except (DataRequiredError, GenerationStrategyCompleted):
                if arms:  # a batch may have fewer arms than requested
                    break
                raise
            arm = Arm(parameters)
            if arm.signature in metadata and self._hosted is not None and before is not None:
                self._hosted.return_to(before)  # Ax merges equal arms
                break
            arms.append(arm)
            metadata[arm.signature] = {RECORD: record}
        run = GeneratorRun(
            arms=arms,
            fit_time=self.fit_time_since_gen,
            gen_time=time.monotonic() - started,
            generator_key=self.name,
            candidate_metadata_by_arm_signature=metadata,
        )
        self.fit_time_since_gen = 0.0
        return run

    def _asked(self, fixed: Mapping[str, Any]) -> tuple[TParameterization, str]:
        if self._hosted is None or self._space is None:
            raise UserInputError("the node must be fitted to an experiment before it generates")
        self._space.require_contexts_alone(fixed)
        context = self._space.context_of(fixed)
        try:
            values, record = self._hosted.ask(context)
        except WaitingForObservations as error:
            raise DataRequiredError(
                f"{self.name} cannot ask for another trial until {len(error.ids)} of its trials "
                "are completed, failed or abandoned"
            ) from error
        except HorizonReached as error:
            raise GenerationStrategyCompleted(
                f"{self.name} has ended: the horizon of {error.horizon} trials is used up"
            ) from error
        return self._space.arm_of(values, context), record

    def _warn(self, found: AxTrials, objective: AxObjective) -> None:
        metrics = ", ".join(objective.weights)
        if found.without_value:
            self._warn_once(
                f"trials {found.without_value} are completed but have no value of {metrics}: they "
                "count as running until they have one"
            )
        if found.changed and "decimals" not in self._warned:
            self._warned.add("decimals")
            index, (before, kept) = next(iter(found.changed.items()))
            self._warn_once(
                f"Ax saves values with ten decimals, so {before:.10g} of trial {index} counts as "
                f"{kept:.10g}: scale {metrics} so that its values are around 1"
            )

    def _warn_once(self, message: str) -> None:
        if message not in self._warned:
            self._warned.add(message)
            warnings.warn(message, HostWarning, stacklevel=2)

    # --- saving -----------------------------------------------------------------------------------

    @classmethod
    def serialize_init_args(cls, obj: SerializationMixin) -> dict[str, Any]:
        """The arguments of a node for Ax's JSON."""
        if not isinstance(obj, cls):
            raise UserInputError(f"obj must be a {cls.__name__}, got a {type(obj).__name__}")
        return {
            "arguments": obj._saved,
            "contexts": list(obj._contexts),
            "num_points": obj._recipe.num_points,
            "name": obj.name,
            "should_deduplicate": obj.should_deduplicate,
            "transition_criteria": list(obj.transition_criteria),
            "pausing_criteria": list(obj.pausing_criteria),
            "suggested_experiment_status": obj.suggested_experiment_status,
        }

    @classmethod
    def deserialize_init_args(
        cls,
        args: dict[str, Any],
        decoder_registry: Any = None,
        class_decoder_registry: Any = None,
    ) -> dict[str, Any]:
        """Restore the arguments of a node from Ax's JSON.

        Args:
            args: The dict that `serialize_init_args` returned; Ax decodes only its own entries.
            decoder_registry: As in Ax.
            class_decoder_registry: As in Ax.

        Raises:
            ValueError: If it is anything else.
        """
        hints = _SAVED | _SAVED_BY_AX
        if args.keys() != hints.keys():
            raise ValueError(f"a saved node must have {sorted(hints)}, got {short(sorted(args))}")
        given = args | {
            key: object_from_json(args[key], decoder_registry, class_decoder_registry)
            for key in _SAVED_BY_AX
        }
        for key, part in given.items():
            if not _is_of(part, hints[key]):
                raise ValueError(f"{key} of a saved node must be {hints[key]}, got {short(part)}")
        arguments = _from_text(given.pop("arguments"))
        own = inspect.signature(cls.__init__).parameters.keys() - {"algorithm"}
        if "algorithm" not in arguments or not own.isdisjoint(arguments):
            raise ValueError(
                "arguments of a saved node must be an algorithm and its arguments, got "
                f"{short(sorted(arguments))}"
            )
        return given | arguments | {"_is_loaded": True}


def _to_json(node: StrategyNode) -> dict[str, Any]:
    return {"__type": _SAVED_AS} | StrategyNode.serialize_init_args(node)


CORE_ENCODER_REGISTRY[StrategyNode] = _to_json
CORE_DECODER_REGISTRY[_SAVED_AS] = StrategyNode


def _is_of(part: Any, hint: Any) -> bool:
    if isinstance(hint, list):
        return isinstance(part, list) and all(isinstance(each, hint[0]) for each in part)
    return isinstance(part, hint) and (type(part) is not bool or hint is bool)


def _as_text(arguments: Mapping[str, Any]) -> str:
    """The arguments of a node as JSON; a ValueError if one could not be made again."""
    plain = {}
    for name, value in arguments.items():
        is_algorithm = name == "algorithm" and callable(value)
        try:
            plain[name] = encode(value, name)
            if is_algorithm and not is_allowed_algorithm(value):
                known = getattr(value, "__name__", value)
                raise ValueError(f"call allow_argument({known}, is_algorithm=True)")
            decode(plain[name], name)
        except ValueError as error:
            raise ValueError(f"{name} cannot be saved: {error}") from error
    return to_json(plain)


def _from_text(text: str) -> dict[str, Any]:
    """The arguments whose text `_as_text` made; a ValueError for any other text."""
    try:
        plain = from_json(text)
        if not isinstance(plain, dict):
            raise ValueError("they have no names")
        arguments = {name: decode(part, name) for name, part in plain.items()}
        algorithm = arguments.get("algorithm")
        if not isinstance(algorithm, str) and not is_allowed_algorithm(algorithm):
            raise ValueError(f"algorithm must be a function or its name, got {short(algorithm)}")
    except ValueError as error:
        raise ValueError(f"saved arguments cannot be read: {error}") from error
    return arguments


def _checked_recipe(
    algorithm: str | Callable[..., Strategy],
    arguments: Mapping[str, Any],
    num_points: int | None,
    contexts: tuple[str, ...],
) -> Recipe:
    if "context_domain" in arguments:
        raise ValueError(
            "context_domain must not be given to StrategyNode: name the parameters that are "
            "contexts in contexts="
        )
    require_bounded("num_points", num_points)
    recipe = Recipe(algorithm, arguments, "StrategyNode", num_points, True, is_tried=False)
    if recipe.is_contextual and not contexts:
        raise ValueError(
            f"contexts must be given for {recipe.name}: the names of the parameters that are "
            "observed and not chosen"
        )
    function = algorithm if callable(algorithm) else getattr(algorithms, algorithm)
    if contexts and "context_domain" not in inspect.signature(function).parameters:
        raise ValueError(f"contexts must not be given for {recipe.name}, got {list(contexts)}")
    return recipe


def _require_possible(recipe: Recipe, contexts: tuple[str, ...]) -> None:
    """A ValueError for arguments that are impossible, or where one is missing that a method needs
    beside those that it was given: it is called once, on a space of its own, which other errors may
    come of."""
    recipe.require_possible()
    if not isinstance(recipe.algorithm, str):
        return
    function = getattr(algorithms, recipe.algorithm)
    more = {"context_domain": 1} if contexts else {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            function(_TRIED_ON, **recipe.arguments, **more)
    except Exception as error:
        if "must be given" in str(error) or "() missing " in str(error):
            raise ValueError(str(error)) from error
