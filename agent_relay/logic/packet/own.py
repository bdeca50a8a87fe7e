"""What an agent that comes back need not be told: its own words in the conversation it goes on in."""

from agent_relay.domain.packet import Provenance, ResumePacket


def leave_out_own(packet: ResumePacket) -> ResumePacket:
    """The packet without what its target decided, tried and said in the conversation it resumes.

    The user's rules stay: they are short, and an agent may have forgotten a part of a long conversation.
    """
    own = packet.resumes
    if not own:
        return packet
    # Readers add the line or the message's id to the transcript's path.
    inside = (f"{own}:", f"{own}#")

    def is_new(source: Provenance | None) -> bool:
        return source is None or not (source.transcript == own or source.transcript.startswith(inside))

    return packet.model_copy(
        update={
            "decisions": tuple(one for one in packet.decisions if is_new(one.source)),
            "attempts": tuple(one for one in packet.attempts if is_new(one.source)),
            "recent_turns": tuple(one for one in packet.recent_turns if is_new(one.source)),
        }
    )
