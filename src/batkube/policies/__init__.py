"""Scheduling algorithms of ours, run in-process, and the small interface to write one's own.

What a policy needs is importable from here: `from batkube.policies import Policy, Start, View`.
"""

from batkube.policies.interface import Decision, Evict, Policy, Reject, Running, Start, View, WakeAt
from batkube.policies.rooms import Choice, Placement, Room

__all__ = [
    "Choice",
    "Decision",
    "Evict",
    "Placement",
    "Policy",
    "Reject",
    "Room",
    "Running",
    "Start",
    "View",
    "WakeAt",
]
