"""Policies: which tuples stay in memory. One file each, named as in its paper; a line here registers it."""

from shedjoin.policies.age import Age as Age
from shedjoin.policies.auto import Auto as Auto
from shedjoin.policies.base import Policy as Policy
from shedjoin.policies.cumulative import Cumulative as Cumulative
from shedjoin.policies.dgl import Dgl as Dgl
from shedjoin.policies.dimp_prob import DimpProb as DimpProb
from shedjoin.policies.forms import Additive as Additive
from shedjoin.policies.forms import Multiplicative as Multiplicative
from shedjoin.policies.keep_all import KeepAll as KeepAll
from shedjoin.policies.life import Life as Life
from shedjoin.policies.prob import Prob as Prob
from shedjoin.policies.prospect import Prospect as Prospect
from shedjoin.policies.rand import Rand as Rand
from shedjoin.policies.replay import Replay as Replay
from shedjoin.policies.sample import Sample as Sample
from shedjoin.policies.simp import Simp as Simp
from shedjoin.policies.simp_prob import SimpProb as SimpProb
from shedjoin.registry import registered

#: All policies by name.
POLICIES: dict[str, type[Policy]] = registered(Policy, vars())
