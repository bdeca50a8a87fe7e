"""Where what is printed is read, which decides how it names commands."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class HintStyle:
    """The place of this process: `render` has texts name commands as they are typed there.

    A plain terminal, where they are typed as they stand, unless somebody who knows better sets it.
    """

    render: "Callable[[str], str]" = str
