"""Show people and programs what relay does: the command line, the relay shell, live views and exports.

Five rooms in one order, each using those after it: `shell`, `export`, `watch`, `cli`, `render`. They ask the
daemon through `client` and read files through `store` and `usage`. Called by `__main__`.
"""
