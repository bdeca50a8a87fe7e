"""Read what the agents on this machine have used from their own files, each time only what is new."""

from collections.abc import Mapping

from agent_relay.usage._scan_reader import read_planned
from agent_relay.usage.scan.files import UsageSpec
from agent_relay.usage.scan.index import open_index
from agent_relay.usage.scan.plan import UsageRead, plan_files


def read_usage(
    specs: Mapping[str, UsageSpec], index_path: str, *, home: str, environ: Mapping[str, str]
) -> UsageRead:
    """Return what the agents named in `specs` have used, as far as their files still exist.

    Files that two agents share, as two adapters of one program do, count for the first one. A file that
    cannot be read is reported in `problems` and left out. Raises ConfigurationError for a broken pattern.
    """
    done = UsageRead()
    plan = plan_files(specs, done, home=home, environ=environ)
    with open_index(index_path) as index:
        for files in plan:
            if files.agent not in done.gaps:
                index.forget_others([one.path for one in files.found], files.name)
        read_planned(plan, index, done)
    return done
