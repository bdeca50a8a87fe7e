"""The detector: screens, records and the passing of time in, signals out, by an adapter's rules."""

from agent_relay.logic.detector.detector import Detector

__all__ = ["Detector"]
