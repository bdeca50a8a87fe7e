"""Define the words of the problem as types: pure values that reach nothing outside memory.

Its public modules: `session` (`Session`, `Leg`, `Handoff`, `Terms`) and `state` (`State`); `effects`
(`Effect`) and `inputs` (`Input`); `limits` (`Signal`, `Scope`, `Record`, `Rest`, `Context`, `Budget`,
`QuietHours`); `screen` (`Screen`); `facts` (`Facts`); `errors` (`RelayError`, `ExitCode`); `values` (ids,
owners, trees, elapsed time), `moments` and `names` (ULIDs, variables, versions, paths). By subject: `events`
(the journal's lines), `documents` (adapter, rules and config as structs, the packet as pydantic models),
`protocol` (what other processes are sent) and `text` (words for people). Every other room imports it;
hot commands and the holder import single modules, so modules that load nothing heavy say so, and must stay
light.
"""
