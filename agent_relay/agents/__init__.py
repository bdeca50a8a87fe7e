"""Load agents as data: adapters read from disk, trusted, and turned into the start of a process.

`catalog` (`read_catalog`, `load_adapters`, `trust_folder`) lists every adapter of a user and a project and
says which of a project's count; `adapters` (`LoadedAdapter`, `load_adapter`, `load_rules`, `find_program`,
`build_renderer`) is one of them with its rules and its template; `adapter_folders` says where adapters are,
`source_paths` (`LegPlace`, `expand_path`) where the records of agents are, `agent_versions` which version of
an agent is installed; `launch` (`LegStart`, `prepare_launch`) makes a leg ready to start, `base_urls` points
it at relay's proxy, `user_choices` says what its user chose; `hook_files` has our hooks in the configuration
of agents that relay does not start. Called by the engine and the daemon, by `sources` and `usage`, by
commands, the shell and `watch`.
"""
