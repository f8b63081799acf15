"""Miniatures of a join: with other policies, which are compared, and with other memory sizes."""

from shedjoin.auto.foresight import Foresight as Foresight
from shedjoin.auto.trials import Trials as Trials
