"""Read what the agents on this machine have used from their own files, each time only what is new."""

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack

from agent_relay.usage.scan.files import UsageSpec
from agent_relay.usage.scan.plan import UsageRead, list_tasks, plan_files
from agent_relay.usage.scan.reader_pool import start_reader_pool


def read_usage(
    specs: Mapping[str, UsageSpec],
    index_path: str,
    *,
    home: str,
    environ: Mapping[str, str],
    hands: int = 1,
    meanwhile: Callable[[], None] = lambda: None,
) -> UsageRead:
    """Return what the agents named in `specs` have used, as far as their files still exist.

    Files that two agents share, as two adapters of one program do, count for the first one. A file that
    cannot be read is reported in `problems` and left out. If much is new, `hands` processes read it, forked
    from this one, which must have no threads then; `meanwhile` is called while they read. Raises
    ConfigurationError for a broken pattern.
    """
    done = UsageRead()
    plan = plan_files(specs, done, home=home, environ=environ)
    with ExitStack() as stack:
        crew = None
        if hands > 1 and not os.path.lexists(index_path):
            # Where nothing is known nobody needs to ask, and readers begin before the index is even loaded.
            tasks = list_tasks(plan, done, lambda _path, _reader: True)
            crew = stack.enter_context(start_reader_pool(tasks, hands))
        from agent_relay.usage._scan_reader import read_planned
        from agent_relay.usage.scan.index import open_index

        index = stack.enter_context(open_index(index_path))
        for files in plan:
            if files.agent not in done.gaps:
                index.forget_others([one.path for one in files.found], files.name)
        if crew is None:
            tasks = list_tasks(plan, done, lambda path, reader: hands > 1 and index.get(path, reader) is None)
            crew = stack.enter_context(start_reader_pool(tasks, hands))
        meanwhile()
        read_planned(plan, index, crew, done)
    return done
