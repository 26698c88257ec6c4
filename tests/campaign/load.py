"""A load: commands drawn from a seed, each with the files that it reads and the effects that it has when it succeeds."""
import dataclasses
import random

from models import Model, safetensors
from oracle import DropTag, Expected, Export, Publish, Remove, SetTag

LIVE_MIN, LIVE_MAX = 3, 6  # versions that stay; a store has a few MiB
NAMES = ["a", "org/b", "c"]
TAGS = ["stable", "next"]


@dataclasses.dataclass
class Step:
    """One command. `words` follow `weft --store STORE`; {sources} and {exports} in them are directories of the run."""
    words: list
    effects: tuple = ()
    sources: dict = dataclasses.field(default_factory=dict)  # directory below {sources} -> {path: File}
    beside: bool = False  # the next step starts while this one runs
    may_refuse: bool = False

    @property
    def verb(self):
        return " ".join(word for word in self.words[:2] if word.startswith("--") or word == self.words[0])


class Load:
    """`steps` is drawn at once. The first ones publish, so that the others have something to work on."""

    def __init__(self, seed, length, beside=False):
        self.rng = random.Random(f"load {seed}")
        self.expected = Expected()
        self.models = {}  # (model, number) -> Model
        self.steps = []
        for first in (self.publish_new, self.publish_derived, self.publish_new, self.pin):
            self.add(first())
        while len(self.steps) < length:
            step = self.draw()
            if step:
                step.beside = beside and not step.effects and self.rng.random() < 0.6
                self.add(step)

    def add(self, step):
        self.steps.append(step)
        self.expected = self.expected.after(*step.effects)

    def draw(self):
        if len(self.expected.live) > LIVE_MAX:
            return self.remove()
        makers = [(self.publish_new, 3), (self.publish_derived, 5), (self.publish_inherited, 3), (self.publish_again, 1),
                  (self.publish_elsewhere, 2), (self.tag, 2), (self.drop_tag, 1), (self.remove, 4), (self.gc, 5),
                  (self.export, 1), (self.fsck, 2), (self.rebuild, 2), (self.pin, 2), (self.unpin, 1), (self.evict, 1)]
        return self.rng.choices([maker for maker, _ in makers], [weight for _, weight in makers])[0]()

    def some_version(self):
        return self.rng.choice(sorted(self.expected.live)) if self.expected.live else None

    def next_number(self, model):
        return self.expected.numbers.get(model, 0) + 1

    def publish(self, name, model, source, extra=()):
        """An import that makes a version with the files of `model`, from what lies in `source`."""
        number, folder = self.next_number(name), f"m{len(self.steps)}"
        tags = tuple(tag for tag in TAGS if self.rng.random() < 0.25)
        self.models[name, number] = model
        tag_words = [word for tag in tags for word in ("--tag", tag)]
        words = ["import", "{sources}/" + folder, "--name", name, "--json", *tag_words, *extra]
        return Step(words, (Publish(name, number, model.files, tags),), {folder: source})

    def publish_new(self):
        model = Model.draw(self.rng)
        return self.publish(self.rng.choice(NAMES), model, model.files)

    def publish_derived(self):
        base = self.some_version()
        if base:
            model, _ = self.models[base].derive(self.rng)
            return self.publish(self.rng.choice([base[0], self.rng.choice(NAMES)]), model, model.files)
        return None

    def publish_inherited(self):
        base = self.some_version()
        if base:
            model, changed = self.models[base].derive(self.rng)
            head = {"model.safetensors": safetensors(changed)}
            return self.publish(base[0], model, head, ("--inherit", f"{base[0]}@{base[1]}"))
        return None

    def publish_elsewhere(self):
        """The content of one version as another model: all of it is shared."""
        base = self.some_version()
        others = [name for name in NAMES if base and name != base[0] and not self.is_newest(name, self.models[base])]
        if others:
            return self.publish(self.rng.choice(others), self.models[base], self.models[base].files)
        return None

    def is_newest(self, name, model):
        number = self.expected.newest(name)
        return number is not None and self.expected.live[name, number] == model.files

    def publish_again(self):
        """The content of the newest version, which makes no new one."""
        name = self.rng.choice(NAMES)
        number = self.expected.newest(name)
        if number != self.expected.numbers.get(name) or number is None:
            return None
        folder = f"m{len(self.steps)}"
        return Step(["import", "{sources}/" + folder, "--name", name, "--json"], (), {folder: self.expected.live[name, number]})

    def tag(self):
        version = self.some_version()
        if version:
            tag = self.rng.choice(TAGS)
            return Step(["tag", f"{version[0]}@{version[1]}", tag], (SetTag(version[0], tag, version[1]),))
        return None

    def drop_tag(self):
        if self.expected.tags:
            model, tag = self.rng.choice(sorted(self.expected.tags))
            return Step(["tag", "--delete", model, tag], (DropTag(model, tag),))
        return None

    def remove(self):
        version = self.some_version()
        if len(self.expected.live) < LIVE_MIN:
            return None
        chosen = [version]
        if self.rng.random() < 0.3:
            chosen = [key for key in sorted(self.expected.live) if key[0] == version[0]][:2]
        return Step(["rm", "--force", *(f"{model}@{number}" for model, number in chosen)], tuple(Remove(*key) for key in chosen))

    def export(self):
        version = self.some_version()
        if version:
            folder = f"e{len(self.steps)}"
            return Step(["export", f"{version[0]}@{version[1]}", "{exports}/" + folder],
                        (Export(folder, self.expected.live[version]),))
        return None

    def pin(self):
        version = self.some_version()
        return version and Step(["pin", f"{version[0]}@{version[1]}"], may_refuse=True)

    def unpin(self):
        version = self.some_version()
        return version and Step(["unpin", f"{version[0]}@{version[1]}"], may_refuse=True)

    @staticmethod
    def gc():
        return Step(["gc"])

    @staticmethod
    def fsck():
        return Step(["fsck"])

    @staticmethod
    def rebuild():
        return Step(["fsck", "--rebuild"])

    @staticmethod
    def evict():
        return Step(["evict", "--all"], may_refuse=True)  # it may need a daemon
