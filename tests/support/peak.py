"""How much memory a process has held at most."""


def read_peak_mb(pid: int | str = "self") -> float:
    """The most it ever held since it began to be its program, in MB of 2**20 bytes.

    `ru_maxrss` would not say: a child has its parent's from before (getrusage(2), at an exec).
    """
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024
