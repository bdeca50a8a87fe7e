#!/bin/sh
# Two scripted agents race in a repository with uncommitted work; the test decides, the winner is applied.
set -eu
RELAY="${AGENT_RELAY:-agent-relay}"
here="$(mktemp -d)"
export AGENT_RELAY_HOME="$here/relay" DEMO_AGENT_HOME="$here/agents" DEMO_AGENT_SCREENPLAYS="$here/plays"
export GIT_CONFIG_GLOBAL="$here/gitconfig"
trap '$RELAY daemon stop >/dev/null; rm -rf "$here"' EXIT

mkdir -p "$here/plays" "$here/shed"
printf '[user]\nname = You\nemail = you@example.invalid\n' > "$GIT_CONFIG_GLOBAL"
printf '%s\n' '{"scenes": [{"do": [{"edit": "shed.txt", "text": "red\nred\n"}, {"say": "done"}]}]}' > "$here/plays/demo.json"
printf '%s\n' '{"scenes": [{"do": [{"edit": "shed.txt", "text": "blue\n"}, {"say": "done"}]}]}' > "$here/plays/understudy.json"

cd "$here/shed"
git init -q
echo white > shed.txt
git add .
git commit -qm first
echo 'mine, not committed' > notes.txt

$RELAY race demo understudy "paint the shed red" --test "grep -q red shed.txt && test -f notes.txt"
$RELAY race diff
$RELAY race apply
$RELAY race clean
git status --short
git worktree list
