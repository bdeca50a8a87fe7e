"""Read what people wrote by hand: configuration files, and the secrets that lie beside them.

`config_file` reads and changes the user's and the project's `config.toml` (`read_user_config`,
`read_project_config`, `write_order`, `write_model`, `ReloadingConfig`) and turns any TOML file into a model
or into a sentence naming file and key (`parse_document`); `pattern_cost` (`refuse_slow`) refuses slow regular
expressions; `secrets` (`gather_secrets`) gathers the secret values of a user and a project. Called by the
daemon, the engine and race, by commands and the shell, and by `agents` for adapters' files.
"""
