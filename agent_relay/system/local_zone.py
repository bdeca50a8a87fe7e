"""The machine's zone, with the offset it has at every moment and not only now."""

from datetime import UTC, datetime, timedelta, tzinfo


class LocalZone(tzinfo):
    """For days: the one on which clocks change has 23 or 25 hours, and begins with yesterday's offset."""

    def utcoffset(self, dt: datetime | None, /) -> timedelta | None:
        """The machine's offset at the local moment."""
        if dt is None:
            return None
        # `astimezone` takes the other side of an hour that is skipped from Python 3.12 on.
        local = dt.replace(tzinfo=None, microsecond=0)
        return timedelta(seconds=local.replace(tzinfo=UTC).timestamp() - local.timestamp())

    def dst(self, dt: datetime | None, /) -> timedelta | None:
        """Not known, and not needed."""
        del dt
        return None

    def tzname(self, dt: datetime | None, /) -> str | None:
        """What the machine calls the offset at the local moment."""
        return None if dt is None else dt.replace(tzinfo=None).astimezone().tzname()

    def fromutc(self, dt: datetime, /) -> datetime:
        """The local moment; the second one of an hour that comes twice is marked as such."""
        found = dt.replace(tzinfo=UTC).astimezone()
        local = found.replace(tzinfo=self)
        return local if local.utcoffset() == found.utcoffset() else local.replace(fold=1)
