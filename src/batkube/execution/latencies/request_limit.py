"""The request limit of the client that submits jobs.

client-go limits the requests of a client, by default to 5 per second after a burst of 10 (client-go: rest/config.go,
QPS and Burst). A client that submits 200 jobs at once therefore needs 38 s. For runs recorded with such a client, the
same limit reproduces the real submission times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import msgspec

from batkube.kernel.instants import Instant, seconds
from batkube.workloads.model import Job


@dataclass(frozen=True, slots=True)
class RequestLimit:
    """A limit on requests: `burst` at once, then `qps` per second."""

    qps: float
    burst: int

    @classmethod
    def parse(cls, value: object) -> RequestLimit:
        """Parse `{qps: 5, burst: 10}`; raise ValueError."""
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
        """Yield the jobs, sorted by submission time, each with the time at which this client can submit it.

        This is the token bucket of golang.org/x/time/rate, which client-go uses, without fractions of tokens. `level`
        is the time at which the bucket will be full again.
        """
        spacing = seconds(1 / self.qps)
        level = Instant(0)
        for job in jobs:
            at = Instant(max(job.submit, level - (self.burst - 1) * spacing))
            level = Instant(max(level, job.submit) + spacing)
            yield job if at == job.submit else msgspec.structs.replace(job, submit=at)
