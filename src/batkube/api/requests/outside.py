"""Questions to somebody outside in the middle of a request, such as those to webhooks.

Requests are handled one after the other, and an answer from outside may take half a minute. So a request that needs one
is broken off (`Outside`), which is safe as long as it has written nothing; the question is put while others are served;
and then the request is handled again from its beginning, with the answer at hand. What it draws by chance must be the
same the second time, since somebody outside has seen it: `Inquiries.once`.

Components within the process are broken off where they can begin anew (`requests.broken_off`). Others cannot be, nor
can a request that has written: they wait for the answer, and everybody with them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

Answers = dict[Hashable, Any]
"""What a request has got so far, by what it was about."""

_Thing = TypeVar("_Thing")


class Question(NamedTuple):
    """A JSON body that is posted to somebody over TLS."""

    url: str
    #: Where to connect to: the host and port of the URL, or where a service leads; "" if that leads nowhere.
    host: str
    port: int
    #: The name that the certificate must have, and whose word for it is taken: PEM, "" for the machine's authorities.
    server_name: str
    authorities: str
    body: bytes
    timeout_s: float
    #: Why nobody can be asked, if that is known beforehand.
    obstacle: str = ""


class Reply(NamedTuple):
    """What came back."""

    #: Of HTTP; 0 if there was no answer at all.
    status: int
    body: bytes
    #: Why there was none, in the words of Go's net/http.
    problem: str = ""
    content_type: str = "application/json"


Ask = Callable[[Question], Reply]
"""Puts a question and waits for the reply. It is called in threads of their own."""


class Outside(Exception):
    """The request needs answers from outside: let `works` be done apart, all at once, and then ask again."""

    def __init__(self, works: Sequence[Callable[[], None]]) -> None:
        super().__init__("waits for somebody outside")
        self.works = works


class Inquiries:
    """What the request at hand has asked, and what it was answered."""

    def __init__(self, ask: Ask, version: Callable[[], int]) -> None:
        """`version` grows with every write."""
        self._ask = ask
        self._version = version
        #: Of the request at hand; None while a component within the process acts that cannot be broken off.
        self.answers: Answers | None = None
        #: The version when the request first came to where it may be broken off; None if it has not.
        self._began_at: int | None = None

    def begin(self, answers: Answers) -> None:
        """From now on a request is handled that has got these answers so far."""
        self.answers, self._began_at = answers, None

    def end(self) -> None:
        """It is no more."""
        self.answers = None

    @contextlib.contextmanager
    def aside(self, answers: Answers | None = None) -> Iterator[None]:
        """Let a component within the process act, perhaps because time went on: nothing it does is the request's.

        With `answers` it may be broken off.
        """
        before, self.answers, self._began_at = (self.answers, self._began_at), answers, None
        try:
            yield
        finally:
            self.answers, self._began_at = before

    @property
    def _waits(self) -> bool:
        """Whether nothing can be broken off: who asks is no request, or it has written already."""
        return self.answers is None or self._version() != self._began_at

    def mark(self) -> None:
        """Note that the request at hand may be broken off from here on, as long as it writes nothing."""
        if self._began_at is None:
            self._began_at = self._version()

    def once(self, what: Hashable, make: Callable[[], _Thing]) -> _Thing:
        """Return what `make` returned when this request first came here."""
        if self.answers is None:
            return make()
        self.mark()
        if what not in self.answers:
            self.answers[what] = make()
        thing: _Thing = self.answers[what]
        return thing

    def replies(self, questions: Sequence[tuple[Hashable, Question]]) -> list[Reply]:
        """Return the replies to questions that may be put at the same time; each is told apart by its key."""
        answers = {} if self.answers is None else self.answers
        self.mark()
        missing = [(key, question) for key, question in questions if key not in answers]
        if missing and self._waits:
            answers = {**answers, **{key: self._ask(question) for key, question in missing}}
        elif missing:
            raise Outside([self._work(answers, key, question) for key, question in missing])
        return [answers[key] for key, _ in questions]

    def _work(self, answers: Answers, key: Hashable, question: Question) -> Callable[[], None]:
        def work() -> None:
            # Whatever goes wrong, there must be an answer: the request would ask for ever.
            answers[key] = Reply(0, b"", "the question could not be put")
            answers[key] = self._ask(question)

        return work
