"""Hold one leg's PTY and child, in a small process that outlives the daemon: the holder.

Started by `terminal.holder_client.start_holder`; its loop is `select.epoll`, its imports are the standard
library's cheapest, its state is the folder of the leg: `lock` (flocked while it lives), `sock`, `exit.json`.

**Wire.** A stream socket; frames of four bytes of length (big end first) and one JSON object. A request has
`op` and, if answers shall be told apart, `id`; its answer has the same `id` and `ok`: true with the fields
below, or false with `code` (for programs) and `error` (a sentence). Objects with `event` come unasked.
Bytes stand in JSON as text of one character per byte (latin-1). Garbage ends the connection it came on, and
so does a mistake of the holder's own with a request, which it refuses as `failed`: nobody else notices.

Requests, their fields, their answers:

* `hello` -> `protocol` (1), `pid`, `child`, `born` (clock ticks)
* `status` -> `pid child born rows cols attached typed key_age_s offset tail_start title agent_state`,
  `alternate`, `emulator` (false: screens are refused), `queued` (bytes the child has not taken), `exit`
  (null, or the `exit` event), `noted` (the last `note`, empty for none), `faults` (mistakes noted so far),
  `bar` (whether one is shown), `holds_keys`, `held` (bytes typed below it and given to nobody)
* `screen`, `peek` -> `screen` (see `domain.screen`), `offset`. Rows scrolled away and states announced are
  handed out once; with `peek` true they stay for the next look. Refused: `no-emulator`
* `tail`, `offset limit` (at most 131,072) -> `offset` (of the first byte given), `data`, `total`
* `input`, `data unless_typed goes_on note` -> `queued`. Sent whole; waits for the end of a person's paste.
  With `goes_on` true all others wait for the next one, at most two seconds. A `note` (at most 2,000
  characters) tells whoever comes later what was sent; refused input leaves none. Refused: `ended`, `full` (8
  MiB wait), and where `unless_typed` is true `typed` (somebody is in the middle of a line)
* `resize`, `rows cols width_px height_px`: the terminal this connection attached, else the child's itself
* `signal`, `signal` (`SIGTERM`) -> `reached`: how many processes of the child's Unix session got it
* `watch` -> as `status`; from now on the events `settled`, `title`, `clients`, `exit`
* `attach`, `rows cols width_px height_px relay_key modes form held keep` and one descriptor (SCM_RIGHTS) ->
  `child`. It is a tty (opened anew) or one end of a socket pair. Refused: `tty-refused` (try one), `ended`,
  `own-terminal` (the child's). No size: the child keeps its own. `modes`: the tty's line discipline, restored
  here if the client dies. `form`: how the terminal takes notifications (see `terminal.notification`).
  `held`: what was typed on it before, and comes first. With `keep` true, what stands on it moves into its
  scrollback when the agent first paints
* `pause` -> `rest` (what a socket had not handed over yet): the attached terminal is its client's
* `cover` -> nothing: the same, but what is typed there still goes to the child
* `resume`, `relay_key typed`: it is repainted; with `relay_key` true the key itself is typed, in the form the
  program asked for; `typed` is what the client read from the terminal and was not meant for it
* `detach` -> `detached`: this connection's terminal, or all if it attached none
* `say`, `text` (at most 2,000 characters), `kind line` -> `told`: how many terminals got it as an event
* `bar`, `texts holds_keys line`: the bottom line of every terminal, also of those that come later, is the
  bar: the first of `texts` that fits (at most 8 of at most 2,000 characters, saying the same ever shorter).
  With `holds_keys` true what is typed is held, at most 64 KiB a terminal (beyond that the bell rings); else
  it goes to the child, and what is held stays so. No `texts`: the bar is gone, and what was held is typed,
  key by key: the child has read one before the next comes. What is typed meanwhile comes after it.
  What a child that has ended was not given stays its client's. The first one is in the spec. With `line`
  "empty", the daemon saw the child's input line empty, and what was typed no longer counts as half typed;
  with "hidden", none was ever shown, as at a sign-in, and what was typed is not reported as half typed
* `asking`, `texts`: the child asks something. Until the next `bar`, nothing of what is held or is still being
  typed is given to it; where there is any, or a terminal brings some along, `texts` are the bar, and what is
  typed below it goes to the child. Where there is none, there is no bar
* `notify`, `title text bell osc` -> `told`: how many attached terminals were called on, by the bell and by a
  notification in the form each takes, without a change of what they show
* `luggage` -> `luggage`: the opaque text of the spec
* `collect` -> `exit` (as in `exit.json`, and the last `screen`), `survivors` (pids). Ends what is left of the
  child's session; the holder stays, with its luggage. Refused: `running`
* `leave`, `later` -> nothing: the holder ends. Refused: `running`; but with `later` true it stays until the
  child has ended, and five seconds more for whoever collects that

Events:

* `settled offset agent_state typed` to watchers, at most every 100 ms while there is output and once after
* `title title` to watchers
* `fault doing count screen_lost` to watchers: the holder made a mistake and went on, with a note in
  `holder-crash.txt`; `screen_lost`: its screen shows only what the program draws from now on
* `clients attached typed key_age_s` to watchers when terminals come and go, when a line is begun or done
* `exit status signal total_bytes stored` to watchers and clients: `status` as a shell reports it (128 +
  number for a Unix signal); `stored` false: `exit.json` could not be written, ask `collect`
* `relay-key rest` to a client: what was typed after the key; the terminal is the client's until `resume`
* `say text kind line` to a client: a line for its person; with `kind` "rest" every agent rests, and `line` is
  the request's
* `typed` to a client whose terminal is covered: its person typed something
* `hold-back` to a client: its person typed Escape below a bar that holds keys
* `detached`, `terminal-gone` to a client. These and its `exit` have `held`, what was typed on its terminal
  and not given to the child, and `bar`, the texts shown last (none: an empty list). For the last terminal
  that goes, `line` has the keys that retype the child's half-typed input line; else it is empty

**Sizes.** The child's terminal has the size of the terminal that was attached, resized or typed on last.
**The bar** is never painted over: above it, terminals are painted from the emulator (at most every 40 ms),
and the child's own bytes reach them again when it is gone, after a repaint. Without an emulator these go on,
and the bar is painted behind them.
**Terminal queries** are answered by one: the terminal that was attached, resized or typed on last; by the
emulator where that one does not keep up or its client has it. What other terminals answer is dropped.
**Again.** A child that ends with the spec's `again_status` is started again on the same terminal; `hello` and
`status` tell its new pid. One that asks for it within half a second has ended.
**End.** The exit is told when the output was read to its end, or processes the child left behind keep the
terminal open and it fell silent for 250 ms, or they write on for two seconds. It and the luggage are kept
until `leave`, at most eight days: the longest rest between two legs of a session, which a new daemon must
begin with the user's environment. A holder whose child has ended leaves by itself if its folder alone was
removed, or both the runtime folder and the one the child worked in.
"""
