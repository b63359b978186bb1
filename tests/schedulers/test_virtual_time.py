"""Small Go programs on the virtual clock: time, randomness, and what they report to the coordinator."""

from __future__ import annotations

import random
import selectors
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batkube.timing.pages.clock_page import ClockPage
from schedulers.conftest import HOUR_NS, START_NS, Specimen, Start, started

NEVER = 2**63 - 1
MODES = pytest.mark.parametrize("deterministic", [True, False], ids=["deterministic", "many threads"])


@MODES
@pytest.mark.parametrize("granted", [True, False], ids=["granted", "moved"])
def test_ten_thousand_hours_pass_without_real_time(start: Start, deterministic: bool, granted: bool) -> None:
    with start("sleep", deterministic=deterministic) as specimen:
        lines = specimen.finish(granted=granted)

        assert lines[0] == "2000-01-01T00:00:00Z 0s"
        assert lines[-1] == "2000-11-29T08:00:00Z 8000h0m0s"
        assert specimen.page.now == START_NS + 10_000 * HOUR_NS
        assert specimen.page.jump_count == (5 if granted else 0)


@MODES
def test_tickers_timers_deadlines_and_timeouts_keep_their_order(start: Start, deterministic: bool) -> None:
    with start("tick", deterministic=deterministic) as specimen:
        assert specimen.finish(granted=True) == [
            "30s tick",
            "45s after 45s",
            "1m0s tick",
            "1m10s read timed out",
            "1m30s tick",
            "1m35s context deadline exceeded",
        ]


@MODES
def test_timers_can_be_stopped_and_reset_on_the_virtual_clock(start: Start, deterministic: bool) -> None:
    with start("timers", deterministic=deterministic) as specimen:
        assert specimen.finish(granted=True) == [
            "stopped in time: true and again: false",
            "3s an answer before the timeout",
            "8s timeout",
            "16s ticks at one second and seven",
            "25s postponed",
            "25s no time at all",
            "25.000000001s a nanosecond",
            "29.000000001s inner: context deadline exceeded",
            "35.000000001s outer: context deadline exceeded",
        ]


@MODES
def test_each_of_two_thousand_goroutines_wakes_at_its_instant(start: Start, deterministic: bool) -> None:
    with start("sleepers", deterministic=deterministic) as specimen:
        assert specimen.finish(granted=True) == ["late 0 out of turn 0 after 33m22s"]
        assert specimen.page.jump_count == 2000


@settings(max_examples=20, deadline=None)
@given(naps=st.lists(st.integers(min_value=0, max_value=10**18), min_size=1, max_size=30), granted=st.booleans())
def test_sleepers_wake_in_the_order_of_their_deadlines(specimen_binary: Path, naps: list[int], granted: bool) -> None:
    with started(specimen_binary, "nap", *(f"{nap}ns" for nap in naps)) as specimen:
        lines = specimen.finish(granted=granted)

        assert lines == [f"{nap} {nap}" for nap in sorted(naps)]
        assert specimen.page.now == START_NS + max(naps)
        assert specimen.page.jump_count == (len({*naps} - {0}) if granted else 0)


def test_the_clock_stops_until_it_is_advanced(start: Start) -> None:
    with start("sleep") as specimen:
        for _ in range(20):
            assert specimen.wait_idle()

        assert specimen.page.now == START_NS
        assert specimen.page.next_timer == START_NS + 2000 * HOUR_NS


def test_a_grant_ends_before_its_limit(start: Start) -> None:
    with start("sleep") as specimen:
        specimen.wait_idle()

        specimen.page.grant(START_NS + 4000 * HOUR_NS)
        specimen.wait_idle()

        assert specimen.page.now == START_NS + 2000 * HOUR_NS
        assert specimen.page.next_timer == START_NS + 4000 * HOUR_NS


def test_a_program_without_timers_is_reported_as_idle(start: Start) -> None:
    with start("nothing") as specimen:
        assert specimen.wait_idle()

        assert specimen.page.next_timer == NEVER


def test_maps_keyed_by_addresses_have_an_order_that_does_not_depend_on_the_addresses(start: Start) -> None:
    inner = []
    for ballast in ("0", "1", "37", "5000"):
        with start("order", ballast) as specimen:
            inner.append(specimen.output())

    assert len(inner[0]) == 8
    assert inner[0][-1] == "wrong 0", "maps that grow, shrink, are cleared and copied lose no entry"
    assert inner == [inner[0]] * 4


def test_random_numbers_repeat_with_the_same_seed_only(start: Start) -> None:
    outputs = []
    for seed in (7, 7, 8):
        with start("randomness", seed=seed) as specimen:
            outputs.append(specimen.output())

    assert outputs[0] == outputs[1]
    assert outputs[0][0] == "procs 1"
    sources = ("map", "select", "math/rand", "crypto/rand", "maphash")
    for one, other in zip(outputs[0], outputs[2], strict=True):
        assert (one != other) == one.startswith(sources)


def test_only_a_deterministic_program_is_seeded(start: Start) -> None:
    outputs = []
    for _ in range(2):
        with start("randomness", deterministic=False) as specimen:
            outputs.append(specimen.output())

    assert outputs[0][1:] != outputs[1][1:]


@pytest.fixture
def listener() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


def address(listener: socket.socket) -> str:
    host, port = listener.getsockname()
    return f"{host}:{port}"


def port_of(listener: socket.socket) -> int:
    return int(listener.getsockname()[1])


def test_a_program_that_writes_stops_its_clock(start: Start, listener: socket.socket) -> None:
    with listener, start("send", address(listener), port=port_of(listener)) as specimen:
        specimen.wait_idle()
        connection, _ = listener.accept()
        writes = specimen.page.write_count

        for turn in range(1, 4):
            specimen.page.grant(START_NS + HOUR_NS)
            specimen.wait_idle()

            assert specimen.page.now == START_NS + turn * 10 * 10**9
            assert specimen.page.write_count == writes + turn
            assert specimen.page.bytes_written == turn
            assert connection.recv(16) == b"\x01"
        assert specimen.page.connect_count == 1
        connection.close()


def test_bytes_read_are_counted(start: Start, listener: socket.socket) -> None:
    with listener, start("requests", address(listener), port=port_of(listener)) as specimen:
        connections = [listener.accept()[0] for _ in range(8)]
        for connection in connections:
            assert connection.recv(100).endswith(b" 0\n")
        connections[0].sendall(b"answer\n")
        specimen.wait_idle()

        assert specimen.page.bytes_read == len(b"answer\n")
        assert specimen.page.bytes_written == 8 * len("1 0\n")
        for connection in connections:
            connection.close()


@MODES
def test_bytes_of_other_connections_are_counted_separately(start: Start, deterministic: bool) -> None:
    with start("transfers", deterministic=deterministic) as specimen:
        (total,) = specimen.output()

        assert specimen.page.foreign_bytes == int(total)
        assert specimen.page.foreign_connections == 2
        assert specimen.page.bytes_written == specimen.page.bytes_read == specimen.page.connect_count == 0


def test_announced_bytes_are_read_completely_however_they_are_segmented(start: Start, listener: socket.socket) -> None:
    rng = random.Random(1)
    pieces = [rng.randint(2, 1 << 15) for _ in range(60)]
    with listener, start("receive", address(listener), port=port_of(listener)) as specimen:
        specimen.wait_idle()
        connection, (_, port) = listener.accept()
        total = 0
        for size in pieces:
            total += size
            cut = rng.randint(1, size - 1)
            specimen.page.announce(port, total)
            connection.sendall(bytes(cut))
            if rng.random() < 0.5:
                specimen.page.probe()  # wakes the program between two segments
                time.sleep(0.002)
            connection.sendall(bytes(size - cut))
            specimen.wait_idle()
            assert specimen.page.bytes_read == total, "an idle program has read all announced bytes"
        specimen.page.announce(port, total + 1)
        connection.close()

        assert specimen.output() == [*map(str, pieces), "EOF"]


def test_the_program_does_not_wait_for_withdrawn_bytes(start: Start, listener: socket.socket) -> None:
    with listener, start("receive", address(listener), port=port_of(listener)) as specimen:
        specimen.wait_idle()
        connection, (_, port) = listener.accept()
        specimen.page.announce(port, 100)
        connection.sendall(bytes(60))
        number = specimen.page.probe()
        time.sleep(0.05)
        assert not specimen.page.is_idle_since(number)

        specimen.page.announce(port, 60)
        specimen.wait_idle()

        assert specimen.page.bytes_read == 60
        connection.close()


def test_the_order_of_connections_is_recorded_by_their_ports(start: Start, listener: socket.socket) -> None:
    with listener, start("requests", address(listener), port=port_of(listener)) as specimen:
        specimen.wait_idle()
        accepted = [listener.accept() for _ in range(8)]

        assert [specimen.page.connection_number(port) for _, (_, port) in accepted] == list(range(1, 9))
        for connection, _ in accepted:
            connection.close()


def test_connections_are_opened_in_the_same_order_every_time(start: Start) -> None:
    orders = []
    for _ in range(3):
        with socket.create_server(("127.0.0.1", 0)) as listener, start("requests", address(listener)):
            connections = [listener.accept()[0] for _ in range(8)]
            orders.append([connection.recv(100) for connection in connections])
            for connection in connections:
                connection.close()

    assert orders[0] == orders[1] == orders[2]
    assert sorted(orders[0]) == [f"{worker} 0\n".encode() for worker in range(8)]


@MODES
def test_concurrent_connections_take_as_long_as_the_slowest(
    start: Start, listener: socket.socket, deterministic: bool
) -> None:
    port = port_of(listener)
    with listener, start("requests", address(listener), deterministic=deterministic, port=port) as specimen:
        request_count = respond_to_all(specimen, listener)

        assert specimen.output() == ["6m40s"]
        assert request_count == 8 * 50


def respond_to_all(specimen: Specimen, listener: socket.socket) -> int:
    """Respond to each line at once in real time; advance the clock while no request is pending."""
    request_count = 0
    with selectors.DefaultSelector() as selector:
        selector.register(listener, selectors.EVENT_READ)
        connections = []
        while specimen.wait_idle():
            in_flight = specimen.page.bytes_written
            while ready := selector.select(0):
                for key, _ in ready:
                    if key.fileobj is listener:
                        connections.append(listener.accept()[0])
                        selector.register(connections[-1], selectors.EVENT_READ)
                        continue
                    connection = next(each for each in connections if each is key.fileobj)
                    count = connection.recv(100).count(b"\n")
                    request_count += count
                    connection.sendall(b"answer\n" * count)
                    if not count:
                        selector.unregister(connection)
                        connection.close()
            if specimen.wait_idle() and specimen.page.bytes_written == in_flight and not selector.select(0):
                assert specimen.page.bytes_read == request_count * len(b"answer\n")
                specimen.page.now = max(specimen.page.now, specimen.page.next_timer)
        for connection in connections:
            connection.close()
    return request_count


def test_garbage_is_collected_only_on_request(start: Start) -> None:
    with start("garbage") as specimen:
        specimen.wait_idle()
        before = specimen.page.live_bytes
        specimen.page.request_collection()
        specimen.wait_idle()

        assert before > 90 << 20
        assert not specimen.page.is_collecting
        assert specimen.page.heap_bytes < 10 << 20
        assert specimen.page.live_bytes < 10 << 20
        assert specimen.finish(granted=True) == ["collections 1"]


def test_a_collection_affects_neither_clock_nor_timers(start: Start) -> None:
    with start("garbage") as specimen:
        for second in range(4):
            specimen.wait_idle()
            specimen.page.request_collection()
            specimen.wait_idle()

            assert specimen.page.now == START_NS + second * 10**9
            # The timer of the program, not one of the runtime, which otherwise releases memory in steps.
            assert specimen.page.next_timer == START_NS + (second + 1) * 10**9
            specimen.page.now = START_NS + (second + 1) * 10**9
        assert specimen.finish(granted=True) == ["collections 4"]


def test_a_program_that_is_busy_for_long_collects_at_the_same_turn_every_time(start: Start) -> None:
    def outcome() -> list[str]:
        with start("busygarbage") as specimen:
            specimen.page.collect_when_busy(64 << 20)
            return specimen.finish(granted=True)

    first = outcome()
    assert [outcome(), outcome()] == [first, first]
    collections, turns = first
    assert int(collections.removeprefix("collections ")) == len(turns.split())
    assert len(turns.split()) in range(10, 16), "a gigabyte, collected every 64 MiB, which is checked every 16 MiB"


def test_with_many_threads_garbage_is_collected_as_usual(start: Start) -> None:
    with start("garbage", deterministic=False) as specimen:
        (line,) = specimen.finish(granted=True)

    assert int(line.removeprefix("collections ")) > 10


def test_a_program_started_by_the_program_runs_on_real_time(start: Start) -> None:
    with start("parent") as specimen:
        assert specimen.output() == ["child in this century: true", "error: <nil>", "parent: 2000"]


@MODES
def test_signals_arrive_while_the_clock_is_stopped(start: Start, deterministic: bool) -> None:
    with start("interrupt", deterministic=deterministic) as specimen:
        specimen.wait_idle()
        specimen.process.send_signal(signal.SIGINT)

        assert specimen.output() == ["interrupted"]


def test_without_a_page_the_same_binary_runs_on_real_time(specimen_binary: Path) -> None:
    outputs = [
        subprocess.run([str(specimen_binary), "randomness"], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    with pytest.raises(subprocess.TimeoutExpired) as raised:
        subprocess.run([str(specimen_binary), "sleep"], capture_output=True, timeout=0.3, check=False)

    assert outputs[0] != outputs[1]
    assert b"2000-01-01" not in (raised.value.stdout or b"")


def test_a_wrong_page_is_rejected(specimen_binary: Path, tmp_path: Path) -> None:
    page = tmp_path / "page"
    page.write_bytes(bytes(4096))
    for path in (page, tmp_path / "missing"):
        process = subprocess.run(
            [str(specimen_binary), "sleep"], env={"BATKUBE_PAGE": str(path)}, capture_output=True, check=False
        )

        assert process.returncode == 2
        assert process.stderr.startswith(b"batkube: ")


def test_a_page_without_eventfds_is_rejected(specimen_binary: Path) -> None:
    page = ClockPage(START_NS, deterministic=True, seed=1)
    environment = {**page.environment, "BATKUBE_WAKE": "97"}
    process = subprocess.run(
        [str(specimen_binary), "sleep"],
        env=environment,
        pass_fds=page.descriptors,
        capture_output=True,
        check=False,
    )
    page.close()

    assert process.returncode == 2
    assert b"eventfds" in process.stderr
