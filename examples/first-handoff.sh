#!/usr/bin/env bash
# What a successor would be told, from a transcript alone: no session, no daemon, nothing is written.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
exec "${AGENT_RELAY:-agent-relay}" packet build --agent demo --transcript "$here/first-handoff.jsonl" --to understudy "$@"
