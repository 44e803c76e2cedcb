"""The commands that people may run on a server, over either backend. Imported at the first one."""

from __future__ import annotations

from kshim.control.commands import Commands
from kshim.control.coordinators import Coordinators
from kshim.control.faults import FaultSteering
from kshim.control.groups import GroupSteering
from kshim.control.members import MemberSteering
from kshim.control.overview import Overview
from kshim.control.recorder import Questions
from kshim.control.time import TimeSteering
from kshim.server.backend import Backend
from kshim.server.parts import Parts
from kshim.server.ports import B, Ports


def new_commands(parts: Parts, ports: Ports[B], backend: Backend[B]) -> Commands:
    """Return all commands by name: the common ones, and those of the backend."""
    broker, recorder, clock, reactor = ports.broker, parts.recorder, parts.clock, parts.reactor
    aside, rounds = parts.aside, parts.rounds
    groups = GroupSteering(broker.groups)
    time = TimeSteering(clock, reactor, backend.groups, backend, ports.clients)
    parts.stops.callback(time.stop)
    overview = Overview(broker.cluster, broker.groups, backend.ends, recorder, aside, rounds, clock)
    common = {
        **groups.commands(),
        **overview.commands(),
        **Questions(recorder, groups, aside, rounds, reactor, clock).commands(),
        **MemberSteering(Coordinators(broker, backend.leader)).commands(),
        **FaultSteering(
            ports.brokers, ports.listeners, ports.measured, recorder.add, backend.usual
        ).commands(),
        **time.commands(),
    }
    return {**common, **backend.commands(common, ports)}
