"""shedjoin: sliding-window joins over streams under a budget."""

from shedjoin.batch import ROW_BYTES as ROW_BYTES
from shedjoin.batch import Batch as Batch
from shedjoin.budget import Budget as Budget
from shedjoin.cpu.settings import Deadline as Deadline
from shedjoin.cpu.settings import Dual as Dual
from shedjoin.cpu.settings import Queue as Queue
from shedjoin.cpu.settings import Selective as Selective
from shedjoin.cpu.settings import VirtualCpu as VirtualCpu
from shedjoin.engine.codes import WHY as WHY
from shedjoin.engine.engine import Engine as Engine
from shedjoin.engine.output import LeftOutLog as LeftOutLog
from shedjoin.engine.output import Output as Output
from shedjoin.engine.output import ShedLog as ShedLog
from shedjoin.engine.reordering import Reordering as Reordering
from shedjoin.errors import DataError as DataError
from shedjoin.errors import EnvironmentProblem as EnvironmentProblem
from shedjoin.errors import InputError as InputError
from shedjoin.errors import ShedjoinError as ShedjoinError
from shedjoin.errors import SnapshotError as SnapshotError
from shedjoin.errors import SpecError as SpecError
from shedjoin.estimates import Estimates as Estimates
from shedjoin.estimates import Top as Top
from shedjoin.estimates import estimate_distinct as estimate_distinct
from shedjoin.estimates import estimate_mean as estimate_mean
from shedjoin.estimates import estimate_top as estimate_top
from shedjoin.estimates import estimate_total as estimate_total
from shedjoin.estimators import *
from shedjoin.joins import DualJoin as DualJoin
from shedjoin.joins import MultiJoinSpec as MultiJoinSpec
from shedjoin.joins import PredicateJoin as PredicateJoin
from shedjoin.joins import best_speed as best_speed
from shedjoin.offline import Optimum as Optimum
from shedjoin.offline import Truncated as Truncated
from shedjoin.offline import odja as odja
from shedjoin.offline import optimum as optimum
from shedjoin.offline import truncated_join as truncated_join
from shedjoin.offline import truncated_joins as truncated_joins
from shedjoin.planner import Plan as Plan
from shedjoin.planner import plan as plan
from shedjoin.policies import *
from shedjoin.predicates import *
from shedjoin.simulation import MultiRun as MultiRun
from shedjoin.simulation import Run as Run
from shedjoin.simulation import simulate as simulate
from shedjoin.simulation import simulate_multi as simulate_multi
from shedjoin.spec import JoinSpec as JoinSpec
from shedjoin.target import Target as Target
from shedjoin.target import TargetControl as TargetControl
from shedjoin.what_if import Curve as Curve
from shedjoin.what_if import WhatIf as WhatIf
from shedjoin.window import UNLIMITED as UNLIMITED
from shedjoin.window import RowWindow as RowWindow
from shedjoin.window import TimeWindow as TimeWindow

__version__: str
