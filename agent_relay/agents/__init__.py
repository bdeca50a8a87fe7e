"""Agents as data: adapters loaded from disk, trusted, and turned into the start of a process.

`catalog` (`read_catalog`, `load_adapters`) lists every adapter of a user and a project; `adapters`
(`LoadedAdapter`, `load_adapter`, `find_program`) is one of them; `rules`, `packet_template` and
`source_paths` read its further parts; `adapter_folders` says where they are, `trust` which of a project's
count, `agent_versions` which version is installed; `launch_plan` (`build_launch`) and `launch`
(`prepare_launch`) make a leg ready to start. Called by the engine, by sources and usage, and by commands.
"""
