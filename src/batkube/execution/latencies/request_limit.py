"""The client that submits: how fast it may talk to the API server.

Programs written with client-go, Kubernetes' own library, hold themselves back: by default to 5 requests a second after
a burst of 10 (rest.Config, QPS and Burst). A driver that has 200 jobs to submit at once therefore needs 38 s. Where
recorded runs were made with such a driver, the same limit here gives jobs the submission times they really had.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import msgspec

from batkube.kernel.instants import Instant, seconds
from batkube.workloads.model import Job


@dataclass(frozen=True, slots=True)
class RequestLimit:
    """A limit on requests: `burst` at once, then `qps` a second."""

    qps: float
    burst: int

    @classmethod
    def parse(cls, value: object) -> RequestLimit:
        """Return the limit that `{qps: 5, burst: 10}` means; ValueError says what is wrong."""
        if not isinstance(value, Mapping) or value.keys() != {"qps", "burst"}:
            raise ValueError(f"{value!r} is not a client's limit; write {{qps: 5, burst: 10}}")
        qps, burst = value["qps"], value["burst"]
        if isinstance(qps, bool) or not isinstance(qps, int | float) or not 1e-6 <= qps <= 1e9:
            raise ValueError(f"qps is {qps!r}; write how many requests a second are allowed")
        if type(burst) is not int or burst < 1:
            raise ValueError(f"burst is {burst!r}; write how many requests are allowed at once, at least 1")
        return cls(float(qps), burst)

    def describe(self) -> str:
        """Return the limit as the manifest shows it."""
        return f"qps {self.qps:g}, burst {self.burst}"

    def throttle(self, jobs: Iterable[Job]) -> Iterator[Job]:
        """Yield the jobs, ascending by submission time, each with the time at which this client gets to submit it.

        The token bucket of golang.org/x/time/rate, which client-go uses, without its fractions of tokens: `level` is
        the time at which the bucket will be full again.
        """
        spacing = seconds(1 / self.qps)
        level = Instant(0)
        for job in jobs:
            at = Instant(max(job.submit, level - (self.burst - 1) * spacing))
            level = Instant(max(level, job.submit) + spacing)
            yield job if at == job.submit else msgspec.structs.replace(job, submit=at)
