"""What holds for all tests: an example of a property takes as long as the machine is busy."""

from hypothesis import settings

settings.register_profile("house", deadline=None)
settings.load_profile("house")
