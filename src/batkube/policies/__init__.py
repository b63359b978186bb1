"""In-process scheduling algorithms, and the interface for writing more of them.

A policy imports what it needs from here: `from batkube.policies import Policy, Start, View`.
"""

from batkube.policies.interface import Decision, Evict, Policy, Reject, Running, Start, View, Wait, WakeAt
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
    "Wait",
    "WakeAt",
]
