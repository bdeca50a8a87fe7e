"""What people wrote by hand: configuration files, and the secrets that lie beside them.

`config_file` reads and changes the user's and the project's `config.toml` (`read_user_config`,
`read_project_config`, `write_order`, `ReloadingConfig`); `toml_document` turns a TOML file into a model or
into a sentence naming file and key; `pattern_cost` refuses slow regular expressions; `secrets` gathers the
secret values of a user and a project. Called by the daemon, by commands, and by `agents` for adapters'
files.
"""
