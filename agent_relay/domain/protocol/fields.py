"""The base of every operation's fields."""

import msgspec


class Fields(msgspec.Struct, kw_only=True, rename=lambda name: name.removesuffix("_")):
    """The checked fields of an operation; a client of a later version may send more."""

    def __repr__(self) -> str:
        """Return the fields by name; of an environment, which holds the user's keys, and a token no value."""
        told = {name: getattr(self, name) for name in self.__struct_fields__}
        hidden = ("env", "token")
        shown = (f"{name}={'…' if name in hidden else repr(value)}" for name, value in told.items())
        return f"{type(self).__name__}({', '.join(shown)})"
