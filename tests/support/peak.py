"""How much memory a process has held at most, and how much processor time it took."""


def read_peak_mb(pid: int | str = "self") -> float:
    """The most it ever held since it began to be its program, in MB of 2**20 bytes.

    `ru_maxrss` would not say: a child has its parent's from before (getrusage(2), at an exec).
    """
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024


def read_ticks(pid: int) -> int:
    """Processor time of the process so far, its threads included, in the clock's ticks (proc(5))."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        fields = file.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
