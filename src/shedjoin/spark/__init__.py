"""The budgeted join on Spark Structured Streaming."""
