"""The words of the problem as types: pure values that reach nothing outside memory.

Its public modules: `session` (`Session`, `Leg`, `Handoff`, `Terms`) and `state` (`State`); `effects`
(`Effect`) and `inputs` (`Input`); `signal` (`Signal`, `Scope`, `Record`, `Rest`); `context` and `budgets`;
`screen` (`Screen`); `facts` (`Facts`); `errors` (`RelayError`, `ExitCode`). By subject: `events` (the
journal's lines), `documents` (adapter, rules, config and packet as pydantic models), `protocol` (what other
processes are sent), `text` (words for people) and `values` (ids, versions, moments). Every other room
imports it; hot commands and the holder import single modules, so modules that load nothing heavy say so,
and must stay light.
"""
