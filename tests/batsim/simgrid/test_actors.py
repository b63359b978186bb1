"""The order in which actors run and activities end."""

from __future__ import annotations

from batkube.batsim.simgrid.actors import ActorCode, ActorKernel, Sleep
from batkube.batsim.simgrid.mailboxes import Mailbox
from batkube.kernel.instants import Duration


def run_all(kernel: ActorKernel) -> None:
    """Step the kernel until nothing is due."""
    while (due := kernel.due) is not None:
        kernel.step(due)


def test_actors_do_not_see_messages_that_others_put_into_a_mailbox_in_the_same_round() -> None:
    kernel, mailbox, received = ActorKernel(), Mailbox(), []

    def sender() -> ActorCode:
        yield from mailbox.put("first")
        yield from mailbox.put("second")

    def receiver() -> ActorCode:
        for _ in range(2):
            message = yield from mailbox.get()
            received.append((message, (yield from mailbox.is_empty())))

    kernel.spawn(sender(), "here")
    kernel.spawn(receiver(), "here")
    run_all(kernel)

    assert received == [("first", True), ("second", True)]


def test_activities_of_one_date_end_in_the_order_in_which_they_began() -> None:
    kernel, ended = ActorKernel(), []

    def sleeper(name: str, *lengths: int) -> ActorCode:
        for length in lengths:
            yield Sleep(Duration(length))
        ended.append((name, kernel.now))

    kernel.spawn(sleeper("short and long", 2, 8), "here")
    kernel.spawn(sleeper("long", 10), "here")
    run_all(kernel)

    assert ended == [("long", 10), ("short and long", 10)]


def test_messages_to_one_receiver_are_transferred_one_after_the_other() -> None:
    kernel, mailbox, arrivals = ActorKernel(lambda source, target: Duration(600)), Mailbox(), []

    def sender() -> ActorCode:
        yield from mailbox.put("message")

    def receiver() -> ActorCode:
        for _ in range(3):
            yield from mailbox.get()
            arrivals.append(kernel.now)

    for number in range(3):
        kernel.spawn(sender(), f"host{number}")
    kernel.spawn(receiver(), "master")
    run_all(kernel)

    assert arrivals == [600, 1200, 1800]
