"""What a node finds at its start and does not serve on: it says what it is, and the way out. Nothing is lost silently."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from shutil import rmtree

from bytes_of import as_json, signal, start
from case import Report, case
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType
from patience import most_s, until_blocking
from world import Follower, Node, World, free_port

PARTITIONS = 4
COUNT = iter(range(1000))


@contextmanager
def house(world: World) -> Iterator[World]:
    """A log of its own on the same broker, in which a few workflows were commanded; its node is stopped."""
    prefix = f"start{next(COUNT)}."
    http = free_port()
    settings = {"EVERLOG_KAFKA__PREFIX": prefix, "EVERLOG_HTTP__ADDRESS": f"127.0.0.1:{http}"}
    node = Node(world.folder / prefix, world.bootstrap, **settings)
    own = World(world.bootstrap, f"http://127.0.0.1:{http}", node, node.folder, prefix)
    node.start()
    try:
        own.flush(*(own.send(f"run-{n}", as_json(start()), partition=n % PARTITIONS) for n in range(8)))
        for n in range(8):
            own.await_events(f"run-{n}", "WorkflowExecutionStarted")
        node.stop()
        yield own
    finally:
        if node.process.poll() is None:
            node.kill()
        own.close()


def unread(own: World) -> None:
    """A signal for each, while no node is there to read it."""
    own.flush(*(own.send(f"run-{n}", as_json(signal("unread")), partition=n % PARTITIONS) for n in range(8)))


def signals(own: World) -> int:
    return sum(event["type"] == "WorkflowExecutionSignaled" for n in range(8) for event in own.history(f"run-{n}"))


def all_arrive_once(own: World) -> None:
    for n in range(8):
        own.await_events(f"run-{n}", "WorkflowExecutionSignaled")
    own.flush(*(own.send(f"mark-{n}", as_json(start()), partition=n) for n in range(PARTITIONS)))
    for n in range(PARTITIONS):
        own.await_events(f"mark-{n}", "WorkflowExecutionStarted")
    assert signals(own) == 8, signals(own)
    for n in range(8):
        assert sum(event["type"] == "WorkflowExecutionStarted" for event in own.history(f"run-{n}")) == 1


def refused(own: World, *words: str) -> str:
    """It ends by itself, and its last words hold these."""
    own.node.launch()
    code, said = own.node.ended()
    assert code != 0, f"it ended well: {said}"
    check_words(said, *words)
    print(f"#    ended with {code}: {said.splitlines()[-1][:300]}")
    return said


def does_not_read(own: World, *words: str) -> None:
    """It is not ready and says why with these words, and serves everything but commands; or it ends with them."""
    own.node.launch()
    seen: list[str] = []

    def told() -> bool:
        if own.node.process.poll() is not None:
            seen.append(own.node.said())
            return True
        # It may be ready for a moment, until its group has given it the partitions.
        status, page = own.node.page("/health/ready")
        seen.append(page)
        return status == 503 and all(word in page for word in words)

    until_blocking(f"it says {words}", told)
    check_words(seen[-1], *words)
    print(f"#    {seen[-1][:300]!r}")


def check_words(said: str, *words: str) -> None:
    for word in words:
        assert word in said, f"{word!r} is not in: {said}"


def reset(own: World, offset_of: dict[int, int]) -> None:
    topic = own.topic("commands")
    places = [TopicPartition(topic, partition, offset) for partition, offset in offset_of.items()]
    admin = AdminClient({"bootstrap.servers": own.bootstrap})
    group = f"{own.prefix}ingress"

    def altered() -> bool:
        request = [ConsumerGroupTopicPartitions(group, places)]
        (future,) = admin.alter_consumer_group_offsets(request).values()
        try:
            return all(place.error is None for place in future.result(most_s()).topic_partitions)
        except KafkaException as error:
            # A group that a member has just left is empty after a moment.
            if error.args[0].code() in (KafkaError.UNKNOWN_MEMBER_ID, KafkaError.NON_EMPTY_GROUP):
                return False
            raise

    until_blocking("the offsets are set", altered)


def ends(own: World) -> dict[int, int]:
    consumer = Consumer({"bootstrap.servers": own.bootstrap, "group.id": "look"})
    places = [TopicPartition(own.topic("commands"), partition) for partition in range(PARTITIONS)]
    found = {place.partition: consumer.get_watermark_offsets(place, timeout=most_s())[1] for place in places}
    consumer.close()
    return found


@case
def offsets_that_an_operator_moved_lose_and_double_nothing(world: World, report: Report) -> None:
    with report.row("K22 the group's offsets set to 0: what was read is skipped"), house(world) as own:
        unread(own)
        reset(own, dict.fromkeys(range(PARTITIONS), 0))
        own.node.start()
        all_arrive_once(own)
    with report.row("K22 the group's offsets set to the end: nothing is passed over"), house(world) as own:
        unread(own)
        reset(own, ends(own))
        own.node.start()
        all_arrive_once(own)


@case
def commands_that_are_gone_are_not_passed_over(world: World, report: Report) -> None:
    with report.row("K23 unread commands were deleted: refused with the way out"), house(world) as own:
        unread(own)
        admin = AdminClient({"bootstrap.servers": own.bootstrap})
        places = [TopicPartition(own.topic("commands"), *place) for place in ends(own).items()]
        for future in admin.delete_records(places).values():
            future.result(most_s())
        does_not_read(own, "commands of partition", "are not read", "may be lost")
    with report.row("K23 the topic was made again: what comes is read, nothing is doubled"), house(world) as own:
        made_again(own, "commands")
        own.node.start()
        unread(own)
        all_arrive_once(own)


def made_again(own: World, noun: str) -> None:
    admin = AdminClient({"bootstrap.servers": own.bootstrap})
    topic = own.topic(noun)
    resource = ConfigResource(ResourceType.TOPIC, topic)
    (described,) = admin.describe_configs([resource]).values()
    config = {name: entry.value for name, entry in described.result(most_s()).items()
              if entry.source == 1 and entry.value is not None}  # fmt: skip
    for future in admin.delete_topics([topic]).values():
        future.result(most_s())

    def made() -> bool:
        new = NewTopic(topic, PARTITIONS, 1, config=config)
        (future,) = admin.create_topics([new]).values()
        try:
            future.result(most_s())
        except Exception as error:
            if "ALREADY_EXISTS" in str(error):
                return False
            raise
        return True

    until_blocking("the topic is made again", made)


def is_position(key: bytes) -> bool:
    return key.startswith(b"\xff\xffp")


def is_run(key: bytes) -> bool:
    return not key.startswith(b"\xff\xff") and b"run-" in key


def overwrite(own: World, picks: Callable[[bytes], bool], change: Callable[[bytes], bytes]) -> None:
    """Changes the latest rows of this kind in the changelog, and deletes what the node keeps of them."""
    rows = Follower(own.bootstrap, own.topic("changelog"), None)
    found = rows.wait("rows", lambda records: [read for read in records if read.key and picks(read.key)])
    producer = own.producer()
    for read in {(read.partition, read.key): read for read in found if read.raw}.values():
        producer.produce(rows.topic, change(read.raw), read.key, partition=read.partition)
    assert producer.flush(most_s()) == 0
    rows.close()
    rmtree(own.node.folder / "data" / "rows")


@case
def rows_that_cannot_be_read_are_not_guessed_at(world: World, report: Report) -> None:
    with report.row("K24 a position that cannot be read: refused"), house(world) as own:
        overwrite(own, is_position, lambda value: b"\xff" * 40)
        refused(own, "Way out")
    with report.row("K24 a run that cannot be read: refused, not forgotten"), house(world) as own:
        overwrite(own, is_run, lambda value: b"\xff" * 40)
        unread(own)
        refused(own, "restored from the changelog")


@case
def what_a_later_release_wrote_asks_for_an_upgrade(world: World, report: Report) -> None:
    with report.row("K25 rows of a later release: refused, an upgrade is needed"), house(world) as own:
        # The last field that a position row of ours can have, the level of decisions, with a value of a later one.
        overwrite(own, is_position, lambda value: value + b"\x38\x63")
        refused(own, "install the release that wrote it, or a newer one")
    with report.row("K25 a journal of a later release: refused, an upgrade is needed"), house(world) as own:
        # A journal record is a protobuf message; its first field is its version.
        producer = own.producer()
        for partition in range(PARTITIONS):
            producer.produce(own.topic("journal"), b"\x08\x63", partition=partition)
        assert producer.flush(most_s()) == 0
        refused(own, "install the release that wrote it, or a newer one")
