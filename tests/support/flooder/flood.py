#!/usr/bin/env python3
"""Paints sixteen rows of numbers, over and over, in colours, as a build that went wild."""

import os

WIDTH = 70


def main() -> None:
    """Until it is ended."""
    number = 0
    while True:
        rows = []
        for row in range(1, 17):
            number += 1
            rows.append(f"\x1b[{row};1H\x1b[3{number % 8}m{number:08} {'compiling ' * 6}\x1b[0m\x1b[K")
        os.write(1, "".join(rows).encode())


if __name__ == "__main__":
    main()
