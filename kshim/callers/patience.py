"""Which clients can wait for the answer to a heartbeat: they consume meanwhile, and do all else that they do.

Not every client can: kafkajs consumes nothing until it has the answer, and sarama does not close. So these
are clients that the tests run, known by the name of their software (KIP-511), or else by the client id that
they have by default.
"""

from __future__ import annotations

from kshim.callers import RequestContext

JAVA = "apache-kafka-java "
SOFTWARE = (JAVA, "kafka-python ", "kgo ", "platformatic-kafka ")
"""How the name and version of a patient client's software begins."""
RDKAFKA = "rdkafka"
"""In the name or the version of all that is built on librdkafka."""
CLIENT_IDS = ("aiokafka-",)
"""How the default client id of a patient client begins that does not name its software."""


def is_patient(context: RequestContext) -> bool:
    """True if the client of a Heartbeat can wait for its answer."""
    client = context.client
    if client is None or not client.software:
        return context.client_id.startswith(CLIENT_IDS)
    return client.software.startswith(SOFTWARE) or RDKAFKA in client.software


def waits_when_it_joins(context: RequestContext) -> bool:
    """True if the client can wait for the answer to its first ConsumerGroupHeartbeat, when it does not know
    the interval. For kafka-clients the interval is over then.
    """
    client = context.client
    return client is None or not client.software.startswith(JAVA)


def waits_longer_than_the_interval(context: RequestContext) -> bool:
    """True if the client waits for a heartbeat's answer beyond the interval at which it sends them.

    librdkafka gives up a ConsumerGroupHeartbeat after the interval, and kafka-clients needs a whole core from
    then on, as it asks without a pause whether to send the next one.
    """
    client = context.client
    return client is not None and client.software.startswith("kgo ")
