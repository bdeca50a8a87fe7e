"""Load agents as data: adapters read from disk, trusted, and turned into the start of a process.

`catalog` (`read_catalog`, `load_adapters`, `trust_folder`) lists every adapter of a user and a project and
says which of a project's count; `adapters` (`LoadedAdapter`, `load_adapter`, `load_rules`, `find_program`) is
one of them with its rules; `packet_template` (`build_renderer`) and `source_paths` (`LegPlace`,
`expand_path`) read its further parts; `adapter_folders` says where adapters are, `agent_versions` which
version of an agent is installed; `launch` (`LegStart`, `prepare_launch`) makes a leg ready to start. Called
by the engine and the daemon, by `sources` and `usage`, by commands, the shell and `watch`.
"""
