"""TEMPORARY."""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SplitPrompt:
    own: str
    pasted: tuple[str, ...]


def split_pasted(text: str) -> SplitPrompt:
    lines, out, pasted, fence = text.split("\n"), [], [], False
    for l in lines:
        mark = l.strip().startswith(("```", "----"))
        if mark:
            fence = not fence
        if (
            mark
            or fence
            or (
                re.match(
                    r"\s*>|\s*at [\w.]+\(|\s*Caused by|\d{4}-\d\d-\d\dT|Fatal |\s*\[\d\d:|\w+: .*|„|\"LGTM| Unable",
                    l,
                )
                and len(lines) > 2
                and l != lines[0]
            )
        ):
            pasted.append(l.strip("`- "))
        else:
            out.append(l)
    return SplitPrompt(
        "\n".join(out).strip(), tuple(["\n".join(p for p in pasted if p)] if any(pasted) else [])
    )
