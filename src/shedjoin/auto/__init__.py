"""What `Auto` does: miniatures of a join, and a judge over what they find."""

from shedjoin.auto.trials import Trials as Trials
