"""Joins that are short of CPU: queues, a virtual CPU, selective processing, dual windows."""
