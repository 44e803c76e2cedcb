"""The cases of Spark's own suites that need a Kafka broker, and the tests that try them with kshim.

python -m integration.spark.cases        lists every case with its tests; exit status 1 if one is not there
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

CASES = {
    "Micro-batches (KafkaMicroBatchSourceSuite)": {
        "AvailableNow: 15 records, at most 5 a batch, while metadata is asked for all the time": [
            "test_available_now_in_three_batches"
        ],
        "Initial offsets are written, and read again": ["test_where_it_began_is_kept"],
        "SPARK-26718: the largest limit there is": ["test_a_limit_beyond_all_offsets"],
        "maxOffsetsPerTrigger is split by size; restart; Trigger.Once ignores it": [
            "test_max_offsets_per_trigger_is_split_by_size",
            "test_once_knows_no_limit",
        ],
        "minOffsetsPerTrigger, both limits together, maxTriggerDelay": [
            "test_min_offsets_per_trigger",
            "test_not_too_little_and_not_too_much",
        ],
        "A pattern, with topics deleted and made anew between batches": [
            "test_topics_of_a_pattern_come_and_go"
        ],
        "A topic deleted while the query runs": ["test_a_topic_deleted_while_it_runs"],
        "Union of two bounded sources; a stream joined with itself": ["test_joins_and_unions_read_once"],
        "A watermark on the times of records": ["test_a_watermark_sees_the_times_of_records"],
        "Group id and its prefix, with deprecated offset fetching": ["test_offsets_fetched_through_a_group"],
        "read_committed and read_uncommitted: open, aborted, only aborted, a marker last": [
            "test_committed_records_only"
        ],
        "SPARK-25495: what was fetched is not mixed up": ["test_two_ways_through_one_partition"],
        "SPARK-27494: null keys and values": ["test_null_keys_and_values_and_headers"],
        "SPARK-30656: minPartitions": ["test_min_partitions"],
        "Metrics: how far behind": ["test_progress_shows_how_far_behind_a_query_is"],
        "includeHeaders with a checkpoint of Spark 2.4": ["test_a_checkpoint_of_spark_2_4"],
        "V1, V2 and deprecated offset fetching": [
            "test_from_anywhere",
            "test_retention_takes_what_was_not_read",
        ],
    },
    "Sources (KafkaSourceSuite), micro-batch and continuous": {
        "{assign, subscribe, subscribePattern} x {latest, earliest, offsets, timestamps} x failOnDataLoss": [
            "test_from_anywhere",
            "test_continuous",
        ],
        "Partitions added while it runs": [
            "test_partitions_added_while_it_runs",
            "test_a_new_partition",
        ],
        "A timestamp that no record has: error or latest": ["test_a_timestamp_that_no_record_has"],
        "Options that are wrong, or not known": ["test_bad_options"],
        "An idle stream stops": ["test_an_idle_stream_stops"],
        "Stress: topics made, partitions added, records sent": ["test_many_topics_come_and_grow"],
    },
    "Batches (KafkaRelationSuite), each in V1, V2 and with deprecated offset fetching": {
        "earliest and latest, found when the query runs": [
            "test_offsets_as_options",
            "test_a_data_frame_is_read_anew_each_time",
        ],
        "Offsets of each partition, with -2 and -1": ["test_offsets_as_options"],
        "Headers, with keys that come twice": ["test_every_column", "test_what_kafka_python_refuses_to_send"],
        "Timestamps on both sides, on one, for all": ["test_timestamps_as_options"],
        "A timestamp that no record has: fails at the start, reads all at the end": [
            "test_a_timestamp_after_the_last_record",
            "test_timestamps_as_options",
        ],
        "Which option wins": ["test_which_option_wins"],
        "The same DataFrame used twice": [
            "test_a_data_frame_is_read_anew_each_time",
            "test_two_ways_through_one_partition",
        ],
        "A start that retention has taken since": [
            "test_a_data_frame_is_read_anew_each_time",
            "test_offsets_that_are_gone",
        ],
        "Options that are wrong": ["test_bad_options"],
        "minPartitions, maxRecordsPerPartition": [
            "test_several_consumers_on_one_partition",
            "test_as_many_records_a_task_as_wanted",
        ],
        "read_committed": ["test_read_committed", "test_transactions"],
        "A pattern": ["test_offsets_as_options"],
    },
    "Sinks (KafkaSinkSuite): batch, micro-batch, continuous": {
        "A topic column, and the option that wins": ["test_the_topic_of_each_row"],
        "A null topic, a wrong schema, a topic that is not there": ["test_rows_that_cannot_be_written"],
        "Headers there and back, in V1 and V2": ["test_batch_sink"],
        "Partition column > partitioner > hash of the key": ["test_who_chooses_the_partition"],
        "1000 records of 15 KB through a buffer of 16 KB": ["test_more_than_the_producer_s_buffer"],
        "Micro-batches, foreachBatch, the sink's progress": [
            "test_stream_from_topic_to_topic",
            "test_foreach_batch_and_the_sink_s_progress",
        ],
        "Continuous": ["test_continuous"],
    },
    "Data loss (KafkaDontFailOnDataLossSuite)": {
        "Records that expired before they were read: stream and batch, V1, V2 and deprecated": [
            "test_retention_takes_what_was_not_read"
        ],
        "Records that were deleted: failOnDataLoss both ways": [
            "test_records_that_are_gone",
            "test_offsets_that_are_gone",
        ],
        "Stress: topics deleted and made anew": ["test_topics_deleted_and_made_anew_at_any_time"],
    },
    "Offsets and consumers (KafkaOffsetReader, KafkaOffsetRangeCalculator, KafkaDataConsumer)": {
        "Ranges with known and unknown ends, split": [
            "test_offsets_as_options",
            "test_min_partitions",
            "test_several_consumers_on_one_partition",
        ],
        "Several consumers on one partition, kept and used again": ["test_two_ways_through_one_partition"],
        "Gaps of compaction and of transactions": ["test_compacted_gaps", "test_transactions"],
    },
    "Real-time mode (KafkaRealTimeModeSuite), where PySpark has it": {
        "A simple query; a batch without records; a union; a restart": ["test_real_time"],
        "A partition is found when the next batch begins": ["test_a_new_partition"],
        "Options it does not know": ["test_what_real_time_does_not_know"],
    },
    "The broker": {
        "Killed five times under a running query": ["test_through_five_kills_of_the_server"],
        "Leaders move": ["test_leaders_move"],
        "All codecs, large batches, LogAppendTime": ["test_many_records_in_batches", "test_log_append_time"],
    },
}


def tests() -> dict[str, str]:
    """Each test's name, and its file."""
    found: dict[str, str] = {}
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                found[node.name] = path.name
    return found


def lines() -> Iterator[str]:
    where = tests()
    for suite, cases in CASES.items():
        yield f"\n{suite}"
        for case, names in cases.items():
            yield f"  {case}"
            yield from (f"      {where.get(name, 'NOT THERE')}::{name}" for name in names)
    named = {name for cases in CASES.values() for names in cases.values() for name in names}
    yield f"\n{sum(map(len, CASES.values()))} cases, {len(named)} tests"


def main() -> None:
    told = list(lines())
    print("\n".join(told).lstrip())
    sys.exit(any("NOT THERE" in line for line in told))


if __name__ == "__main__":
    main()
