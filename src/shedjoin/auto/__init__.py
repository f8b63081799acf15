"""What runs beside a join: miniatures of it by other policies, with a judge, and with other memories."""

from shedjoin.auto.foresight import Foresight as Foresight
from shedjoin.auto.trials import Trials as Trials
