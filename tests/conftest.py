"""What all tests share."""

from hypothesis import settings

# A test says nothing of time: the first example of a law may load kernels, and machines are busy.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
