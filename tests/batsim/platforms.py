"""Platforms for the tests of Batsim."""

from __future__ import annotations

from pathlib import Path

_HEAD = '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd"><platform version="4.1">'
#: The coordinates of all hosts, so that routes have no latency.
_ORIGIN = 'coordinates="0 0 0"'


def silent_platform(
    folder: Path, machines: int, *, prefix: str = "host", more: str = 'speed="1Gf"', inside: str = ""
) -> Path:
    """Write machines and a master whose messages take no time; `more` are attributes and `inside` elements of each."""
    hosts = "".join(f'<host id="{prefix}{number}" {_ORIGIN} {more}>{inside}</host>' for number in range(machines))
    master = f'<host id="master_host" {_ORIGIN} {more}>{inside}</host>'
    path = folder / "platform.xml"
    path.write_text(f'{_HEAD}<zone id="z" routing="Vivaldi">{master}{hosts}</zone></platform>')
    return path


def wired_platform(folder: Path, machines: int) -> Path:
    """Write a cluster of machines with links of 125 MB/s and a backbone; each can be the master."""
    path = folder / "platform.xml"
    path.write_text(
        f'{_HEAD}<zone id="z" routing="Full"><cluster id="c" prefix="host" suffix="" radical="0-{machines - 1}" '
        'speed="1Gf" bw="125MBps" lat="50us" bb_bw="2GBps" bb_lat="500us"/></zone></platform>'
    )
    return path
