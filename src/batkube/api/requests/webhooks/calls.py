"""Questions to somebody outside in the middle of a request, such as those to webhooks.

Requests are handled one after the other, and an answer from outside may take half a minute. So a request that needs one
is broken off (`PendingWebhookCalls`), which is safe as long as it has written nothing; the question is put while
others are served;
and then the request is handled again from its beginning, with the answer at hand. What it draws by chance must be the
same the second time, since somebody outside has seen it: `WebhookCalls.once`.

Components within the process are broken off where they can begin anew (`requests.broken_off`). Others cannot be, nor
can a request that has written: they wait for the answer, and everybody with them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

CallResults = dict[Hashable, Any]
"""What a request has got so far, by what it was about."""

_Value = TypeVar("_Value")


class WebhookRequest(NamedTuple):
    """A JSON body that is posted to somebody over TLS."""

    url: str
    #: Where to connect to: the host and port of the URL, or where a service leads; "" if that leads nowhere.
    host: str
    port: int
    #: The name that the certificate must have, and whose word for it is taken: PEM, "" for the machine's authorities.
    server_name: str
    ca_bundle: str
    body: bytes
    timeout_s: float
    #: Why nobody can be asked, if that is known beforehand.
    unreachable_reason: str = ""


class WebhookResponse(NamedTuple):
    """What came back."""

    #: Of HTTP; 0 if there was no answer at all.
    status: int
    body: bytes
    #: Why there was none, in the words of Go's net/http.
    error: str = ""
    content_type: str = "application/json"


CallWebhook = Callable[[WebhookRequest], WebhookResponse]
"""Puts a question and waits for the reply. It is called in threads of their own."""


class PendingWebhookCalls(Exception):
    """The request needs answers from outside: let `works` be done apart, all at once, and then ask again."""

    def __init__(self, works: Sequence[Callable[[], None]]) -> None:
        super().__init__("waits for somebody outside")
        self.calls = works


class WebhookCalls:
    """What the request at hand has asked, and what it was answered."""

    def __init__(self, ask: CallWebhook, version: Callable[[], int]) -> None:
        """`version` grows with every write."""
        self._call_webhook = ask
        self._store_version = version
        #: Of the request at hand; None while a component within the process acts that cannot be broken off.
        self.results: CallResults | None = None
        #: The version when the request first came to where it may be broken off; None if it has not.
        self._restartable_since: int | None = None

    def begin_request(self, answers: CallResults) -> None:
        """From now on a request is handled that has got these answers so far."""
        self.results, self._restartable_since = answers, None

    def end_request(self) -> None:
        """It is no more."""
        self.results = None

    @contextlib.contextmanager
    def outside_request(self, answers: CallResults | None = None) -> Iterator[None]:
        """Let a component within the process act, perhaps because time went on: nothing it does is the request's.

        With `answers` it may be broken off.
        """
        before, self.results, self._restartable_since = (self.results, self._restartable_since), answers, None
        try:
            yield
        finally:
            self.results, self._restartable_since = before

    @property
    def _must_block(self) -> bool:
        """Whether nothing can be broken off: who asks is no request, or it has written already."""
        return self.results is None or self._store_version() != self._restartable_since

    def mark_restartable(self) -> None:
        """Note that the request at hand may be broken off from here on, as long as it writes nothing."""
        if self._restartable_since is None:
            self._restartable_since = self._store_version()

    def once(self, what: Hashable, make: Callable[[], _Value]) -> _Value:
        """Return what `make` returned when this request first came here."""
        if self.results is None:
            return make()
        self.mark_restartable()
        if what not in self.results:
            self.results[what] = make()
        thing: _Value = self.results[what]
        return thing

    def responses(self, questions: Sequence[tuple[Hashable, WebhookRequest]]) -> list[WebhookResponse]:
        """Return the replies to questions that may be put at the same time; each is told apart by its key."""
        answers = {} if self.results is None else self.results
        self.mark_restartable()
        missing = [(key, question) for key, question in questions if key not in answers]
        if missing and self._must_block:
            answers = {**answers, **{key: self._call_webhook(question) for key, question in missing}}
        elif missing:
            raise PendingWebhookCalls([self._deferred_call(answers, key, question) for key, question in missing])
        return [answers[key] for key, _ in questions]

    def _deferred_call(self, answers: CallResults, key: Hashable, question: WebhookRequest) -> Callable[[], None]:
        def work() -> None:
            # Whatever goes wrong, there must be an answer: the request would ask for ever.
            answers[key] = WebhookResponse(0, b"", "the question could not be put")
            answers[key] = self._call_webhook(question)

        return work
