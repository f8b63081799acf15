"""The lab: the papers' experiments by one command, their values stored, their figures drawn, their claims checked."""
