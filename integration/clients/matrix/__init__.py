"""One set of scenarios for every client.

A scenario speaks to a driver: a small program around one unmodified client, with one JSON object a line in
each direction. `{"do": "produce", "topic": …}` is answered by `{"is": VALUE}`, by `{"error": NAME,
"message": TEXT}` if the client failed, or by `{"cannot": TEXT}` if the client has no such call. One answer
comes for each request, in order. What a driver writes to stderr is shown with a failed scenario.

    hello()                                   [client, version]
    produce(topic, records, acks=-1, compression="none", idempotent=false)
                                              [[partition, offset], …]; offset -1 with acks=0
    open(name, topics|pattern|partitions, group, protocol="classic", reset, assignors, instance, auto_commit,
         commit_on_revoke, session_timeout_ms, max_poll_interval_ms, isolation, request_timeout_ms)
                                              begins to consume, on and on, as an application does; with
                                              commit_on_revoke its listener commits before it returns;
                                              request_timeout_ms only where faults are tried; protocol:
                                              "classic" or "consumer", for which the server has the assignors
                                              and sets the session timeout
    take(name, count, timeout_ms)             the records that came, at most `count`
    events(name)                              [["assigned" | "revoked" | "lost", partitions, ms since 1970],
                                              …] since the last call; some drivers leave out the time
    assignment(name)                          partitions
    commit(name, offsets=null, wait=true)     of what was taken from the client, or [[topic, partition,
                                              offset, metadata], …]
    committed(name, partitions)               [[offset, metadata] | null, …]
    position(name, topic, partition)          offset
    seek(name, topic, partition, offset)      offset: a number, "beginning" or "end"
    seek_to_time(name, topic, partition, timestamp_ms)
    pause(name, partitions), resume(name, partitions)
    stall(name, ms)                           the application does not poll for that long
    close(name)
    transact(id, records, end, group, offsets)
                                              one transaction; end: "commit" or "abort"
    create_topic(topic, partitions, configs), delete_topic(topic), grow_topic(topic, partitions)
    topics()                                  names
    ends(topic)                               [[first, end], …] by partition
    configs(topic), alter_configs(topic, configs)
    groups(), group(name), delete_group(name)
    delete_records(topic, partition, offset)

A record is {"key", "value", "partition", "headers": [[name, value], …], "timestamp"}; all texts may be null,
and all but the value may be left out. A partition is [topic, number].
"""
