"""An error target in place of a budget: memory follows the error of a sum, and the budget is the upper limit."""

from shedjoin.error_target.control import ErrorControl as ErrorControl
from shedjoin.error_target.control import ErrorTarget as ErrorTarget
