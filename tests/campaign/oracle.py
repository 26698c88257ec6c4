"""What a store must show: the versions, tags and exports that were acknowledged. A command that was interrupted may have had
its effect or not; anything else is lost or wrong. Nothing here runs a program."""
import copy
import dataclasses


class Expected:
    """live: (model, number) -> {path: File}; tags: (model, tag) -> number; exports: directory -> {path: File}."""

    def __init__(self):
        self.live, self.tags, self.exports = {}, {}, {}
        self.numbers = {}  # model -> the largest number that was ever given
        self.applied = frozenset()  # of an interrupted command: which of its effects took place

    def copy(self):
        other = Expected()
        for name, value in vars(self).items():
            setattr(other, name, copy.copy(value))
        return other

    def after(self, *effects):
        other = self.copy()
        for effect in effects:
            effect.apply(other)
        return other

    def newest(self, model):
        """The number of the newest live version, or None."""
        return max((number for name, number in self.live if name == model), default=None)


@dataclasses.dataclass(frozen=True)
class Publish:
    model: str
    number: int
    files: dict
    tags: tuple = ()

    def apply(self, expected):
        expected.live[self.model, self.number] = self.files
        expected.numbers[self.model] = max(self.number, expected.numbers.get(self.model, 0))
        for tag in self.tags:
            expected.tags[self.model, tag] = self.number


@dataclasses.dataclass(frozen=True)
class SetTag:
    model: str
    tag: str
    number: int

    def apply(self, expected):
        expected.tags[self.model, self.tag] = self.number


@dataclasses.dataclass(frozen=True)
class DropTag:
    model: str
    tag: str

    def apply(self, expected):
        expected.tags.pop((self.model, self.tag), None)


@dataclasses.dataclass(frozen=True)
class Remove:
    model: str
    number: int

    def apply(self, expected):
        expected.live.pop((self.model, self.number), None)
        for (model, tag), number in list(expected.tags.items()):
            if (model, number) == (self.model, self.number):
                del expected.tags[model, tag]


@dataclasses.dataclass(frozen=True)
class Export:
    directory: str
    files: dict

    def apply(self, expected):
        expected.exports[self.directory] = self.files


def outcomes(expected, effects):
    """The states that a command with these effects may leave when it is interrupted: each effect took place or not."""
    states = [expected]
    for number, effect in enumerate(effects):
        for state in list(states):
            states.append(state.after(effect))
            states[-1].applied = state.applied | {number}
    return states


def reachable(states, shown):
    """The states in which the effects of `shown` have taken place, and perhaps more."""
    return [state for state in states if state.applied >= shown.applied]


@dataclasses.dataclass(frozen=True)
class Problem:
    """kind: lost (acknowledged, and not there), wrong (there, and never acknowledged; or other bytes), untrue (fsck says
    something else than what is so), stuck (a command ends by a signal, does not end, or refuses what it must do)."""
    kind: str
    text: str


def difference(seen_live, seen_tags, state):
    """Problems of a listing against one state; empty if they are equal."""
    gone, new = sorted(state.live.keys() - seen_live), sorted(seen_live - state.live.keys())
    problems = [Problem("lost", f"{model}@{number} is not listed") for model, number in gone]
    problems += [Problem("wrong", f"{model}@{number} is listed") for model, number in new]
    for key in sorted(state.tags.keys() | seen_tags.keys()):
        wanted, got = state.tags.get(key), seen_tags.get(key)
        if wanted != got:
            kind = "lost" if got is None else "wrong"
            problems.append(Problem(kind, f"tag {key[1]} of {key[0]} is {got}, expected {wanted}"))
    return problems


def closest(seen_live, seen_tags, states):
    """The state that a listing fits best, and the problems that remain."""
    return min(((state, difference(seen_live, seen_tags, state)) for state in states), key=lambda found: len(found[1]))
