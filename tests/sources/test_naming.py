"""How a leg's native session is learnt from what the agent says about itself."""

from agent_relay.domain.documents.adapter import SourceSpec
from agent_relay.domain.limits import Record, Source
from agent_relay.sources.record_fields import find_names

SPEC = SourceSpec(
    role="hook",
    framing="jsonl",
    path="{leg_folder}/hooks.jsonl",
    names={"native_id": "payload.session_id", "transcript": "payload.transcript_path"},
)


def test_a_record_names_the_session_where_its_source_says_so() -> None:
    """A user may clear or resume inside one process: the newest name counts, from wherever it is told."""
    record = Record(Source.HOOK, {"payload": {"session_id": "s2", "transcript_path": "/t/s2.jsonl"}})
    assert find_names((SPEC,), record) == {"native_id": "s2", "transcript": "/t/s2.jsonl"}


def test_records_of_other_sources_and_other_shapes_name_nothing() -> None:
    """A torn or foreign record must not rename the session."""
    assert find_names((SPEC,), Record(Source.TRANSCRIPT, {"payload": {"session_id": "s2"}})) == {}
    assert find_names((SPEC,), Record(Source.HOOK, {"payload": "s2"})) == {}
    assert find_names((SPEC,), Record(Source.HOOK, {"payload": {"session_id": 7}})) == {}


def test_only_the_records_a_source_means_name_the_session() -> None:
    """A subagent's session is told of by the same server: its parent's name must stay."""
    spec = SourceSpec.parse(
        {
            "role": "event",
            "framing": "sse",
            "path": "http://127.0.0.1:1/event",
            "names": {"native_id": "info.id"},
            "names_where": {"equals": {"type": "session.updated"}, "absent": ["info/parentID"]},
        }
    )
    own = {"type": "session.updated", "info": {"id": "s1"}}
    below = {"type": "session.updated", "info": {"id": "s2", "parentID": "s1"}}
    other = {"type": "session.deleted", "info": {"id": "s3"}}
    assert find_names((spec,), Record(Source.EVENT, own)) == {"native_id": "s1"}
    assert find_names((spec,), Record(Source.EVENT, below)) == {}
    assert find_names((spec,), Record(Source.EVENT, other)) == {}
