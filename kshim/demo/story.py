"""The story as data: each step's action, and the effect that must be seen before the next step.

A function of (scene, since_ms) returns what its condition, the docstring, still lacks; "" once it holds.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kshim.demo.scene import SERVER, SPARK, WATCHER, Scene

PARTITIONS = 6
CONSUMERS = ("consumer-1", "consumer-2", "consumer-3")
VICTIM = CONSUMERS[1]
SURVIVORS = (CONSUMERS[0], CONSUMERS[2])
PRODUCERS = ("producer-1", "producer-2")
DARK_MS = 1_000
"""Least time that the server stays down."""


@dataclass(frozen=True, slots=True)
class Start:
    """Start these processes."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Kill:
    """Send SIGKILL to a process."""

    name: str


@dataclass(frozen=True, slots=True)
class Stop:
    """Ask these processes to finish in good order."""

    names: tuple[str, ...]


Action = Start | Kill | Stop


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """An action, and the effect that the run waits for."""

    title: str
    action: Action
    awaits: Callable[[Scene, int], str]
    """awaits(scene, since_ms) returns what has not been seen since the action; "" once everything has."""
    steady: bool = False
    """True if the run goes on undisturbed for a while after the step."""
    timeout_s: int = 30
    """The run fails if the effect is not seen within this time."""


@dataclass(slots=True, kw_only=True)
class Progress:
    """When a step began, and when it was done."""

    step: Step
    began_ms: int | None = None
    """None until the step begins."""
    done_ms: int | None = None
    """None until the step is done."""

    def missing(self, scene: Scene) -> str:
        """Return what the step still waits for; "" before it has begun and when it is done."""
        under_way = self.began_ms is not None and self.done_ms is None
        return self.step.awaits(scene, self.began_ms or 0) if under_way else ""

    def at(self, at_ms: int) -> "Progress":
        """The progress as it was at that time."""
        began_ms = self.began_ms if self.began_ms is not None and self.began_ms <= at_ms else None
        done_ms = self.done_ms if self.done_ms is not None and self.done_ms <= at_ms else None
        return Progress(step=self.step, began_ms=began_ms, done_ms=done_ms)


def listed(items: Iterable[object]) -> str:
    """The items in words: a, b and c."""
    words = [str(item) for item in items]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def server_ready(scene: Scene, since_ms: int) -> str:
    """The server accepts connections."""
    return "" if scene.server == "ready" else "the server's ready line"


def topic_made(scene: Scene, since_ms: int) -> str:
    """The admin client has made the topic."""
    return "" if scene.has_topic else "the topic"


def acknowledged(scene: Scene, since_ms: int) -> str:
    """Every producer has had a record acknowledged since."""
    waiting = [name for name, p in scene.producers.items() if (p.acknowledged_ms or since_ms) <= since_ms]
    return f"an acknowledgement for {listed(waiting)}" if waiting else ""


def shared(scene: Scene, since_ms: int) -> str:
    """The living members are in one generation, own all partitions and read; the server says the same."""
    living = scene.living
    if joining := [name for name, member in living.items() if member.state != "consuming"]:
        return f"an assignment for {listed(joining)}"
    if len({member.generation for member in living.values()}) != 1:
        return "all members in one generation"
    owned = {partition for member in living.values() for partition in member.partitions}
    if missing := set(range(scene.partitions)) - owned:
        return f"an owner for {listed(sorted(missing))}"
    if waiting := [name for name, member in living.items() if not member.received]:
        return f"a record for {listed(waiting)}"
    told = tuple(sorted((name, member.partitions) for name, member in living.items()))
    if not (scene.reachable and scene.seen and scene.seen.asked_ms >= since_ms):
        return "the server's description of the group"
    if scene.seen.state != "Stable" or scene.seen.members != told:
        return "the server to describe the group as Stable"
    return ""


def down(scene: Scene, since_ms: int) -> str:
    """The server has ended, and has been down for DARK_MS."""
    return "" if SERVER in scene.exited and scene.at_ms - since_ms >= DARK_MS else "a while without a server"


def goes_on(scene: Scene, since_ms: int) -> str:
    """The server is back, and every member has committed and every producer got an acknowledgement since."""
    if scene.ready_ms is None:
        return server_ready(scene, since_ms)
    ready_ms = scene.ready_ms
    if waiting := [name for name, member in scene.living.items() if (member.committed_ms or 0) <= ready_ms]:
        return f"a commit of {listed(waiting)}"
    return acknowledged(scene, ready_ms) or shared(scene, ready_ms)


def all_read(scene: Scene, since_ms: int) -> str:
    """The producers have ended, and the group has since committed the end of every partition."""
    if sending := [name for name in scene.producers if name not in scene.exited]:
        return f"{listed(sending)} to finish"
    ended_ms = max((p.acknowledged_ms or since_ms for p in scene.producers.values()), default=since_ms)
    if not (scene.seen and scene.reachable and scene.seen.asked_ms >= max(since_ms, ended_ms)):
        return "the server's description of the group"
    lag = sum(scene.lag.values())
    return f"{lag} records to be read and committed" if lag else ""


def all_left(scene: Scene, since_ms: int) -> str:
    """Every member has ended, and the server says that the group is empty."""
    if scene.living:
        return f"{listed(scene.living)} to leave"
    return "" if scene.seen and scene.seen.state == "Empty" else "the server to describe the group as Empty"


def counted(scene: Scene, since_ms: int) -> str:
    """Spark has counted."""
    return "" if scene.counted else "Spark"


STORY: tuple[Step, ...] = (
    Step(title="the server starts", action=Start((SERVER,)), awaits=server_ready),
    Step(title=f"a topic of {PARTITIONS} partitions is made", action=Start((WATCHER,)), awaits=topic_made),
    Step(title="two producers send", action=Start(PRODUCERS), awaits=acknowledged),
    Step(title=f"{listed(CONSUMERS[:2])} join", action=Start(CONSUMERS[:2]), awaits=shared, steady=True),
    Step(title=f"{CONSUMERS[2]} joins", action=Start(CONSUMERS[2:]), awaits=shared, steady=True),
    Step(title=f"{VICTIM} is killed, its partitions move", action=Kill(VICTIM), awaits=shared, steady=True),
    Step(title="the server is killed", action=Kill(SERVER), awaits=down),
    Step(title="the server starts again, all go on", action=Start((SERVER,)), awaits=goes_on, steady=True),
    Step(title="the producers stop, the rest is read", action=Stop(PRODUCERS), awaits=all_read),
    Step(title=f"{listed(SURVIVORS)} leave", action=Stop(SURVIVORS), awaits=all_left),
)

SPARK_STEP = Step(title="PySpark counts the records", action=Start((SPARK,)), awaits=counted, timeout_s=300)
