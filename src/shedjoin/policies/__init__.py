"""Policies: who stays in memory. One file each, named as in its paper; `POLICIES` is the registry."""

from shedjoin.policies.base import Policy
from shedjoin.policies.cumulative import Cumulative
from shedjoin.policies.dgl import Dgl
from shedjoin.policies.dimp_prob import DimpProb
from shedjoin.policies.forms import Additive, Multiplicative
from shedjoin.policies.keep_all import KeepAll
from shedjoin.policies.life import Life
from shedjoin.policies.prob import Prob
from shedjoin.policies.prospect import Prospect
from shedjoin.policies.rand import Rand
from shedjoin.policies.replay import Replay
from shedjoin.policies.simp import Simp
from shedjoin.policies.simp_prob import SimpProb

POLICIES: dict[str, type[Policy]] = {
    kind.name: kind
    for kind in (
        KeepAll,
        Rand,
        Prob,
        Life,
        Prospect,
        Simp,
        SimpProb,
        DimpProb,
        Dgl,
        Additive,
        Multiplicative,
        Cumulative,
        Replay,
    )
}

__all__ = [
    "POLICIES",
    "Additive",
    "Cumulative",
    "Dgl",
    "DimpProb",
    "KeepAll",
    "Life",
    "Multiplicative",
    "Policy",
    "Prob",
    "Prospect",
    "Rand",
    "Replay",
    "Simp",
    "SimpProb",
]
