"""Joins on Spark beside Spark's own: generated jobs whose rows must be the same.

`jobs` draws them, `inputs` makes their streams, `runs` runs them. `make compare` runs all, tests/spark/test_compare.py a few.
"""
