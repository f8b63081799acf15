"""How often the 95% intervals of counts hold, by groups and the total, on some streams of the lab, before its figures are drawn.

python benchmarks/interval_coverage.py --streams "Zipf 2, equal ranks" "bursts of keys" --parts 0.1 0.35 --seeds 100
python benchmarks/interval_coverage.py --streams names flights --data FOLDER --methods Sample "Sample, keep=0.9"
"""

from __future__ import annotations

import argparse
from pathlib import Path

from shedjoin_lab.papers.estimates.accuracy import measured
from shedjoin_lab.papers.estimates.methods import GROUPS, METHODS
from shedjoin_lab.papers.estimates.streams import STREAMS
from shedjoin_lab.papers.prospect.streams import REAL


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", nargs="+", default=[*STREAMS], choices=[*STREAMS, *REAL], metavar="NAME")
    parser.add_argument("--parts", nargs="+", type=float, default=[0.35], help="of the memory of the exact join")
    parser.add_argument("--methods", nargs="+", default=["Sample"], choices=[*METHODS], metavar="NAME")
    parser.add_argument("--seeds", type=int, default=400)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="the real streams")
    given = parser.parse_args()
    print(
        "| stream | method | memory | intervals that hold | groups that have one |\n| --- | --- | ---: | ---: | ---: |"
    )
    for name in given.streams:
        stage = STREAMS[name]() if name in STREAMS else REAL[name](given.data)
        for part in given.parts:
            for method in given.methods:
                row = measured({"part": part, "method": method, "seed": 0}, stage, given.seeds)[0]
                held, known = int(str(row["held"])), int(str(row["known"]))
                share = f"{held / known:.1%}" if known else ""
                most = given.seeds * (GROUPS + 1)
                print(f"| {name} | {method} | {part:.0%} | {share} | {known / most:.0%} |", flush=True)


if __name__ == "__main__":
    main()
