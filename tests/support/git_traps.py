"""Every setting of git that names a program, planted so that each tells when it is run."""

import os
from pathlib import Path

from tests.system.repositories import Git

KEYS = (
    "alias.diff", "alias.ls-files", "alias.merge-tree", "alias.rev-parse", "alias.status", "browser.t.cmd",
    "core.alternateRefsCommand", "core.askPass", "core.editor", "core.fsmonitor", "core.gitProxy",
    "core.pager",
    "core.sshCommand", "credential.helper", "diff.external", "diff.t.command", "diff.t.textconv",
    "diff.tool", "difftool.t.cmd", "gc.recentObjectsHook", "gpg.program", "gpg.ssh.defaultKeyCommand",
    "gpg.ssh.program", "gpg.x509.program", "guitool.t.cmd", "hook.t.command", "imap.tunnel",
    "interactive.diffFilter", "man.t.cmd", "mergetool.t.cmd", "pager.diff", "pager.ls-files", "pager.status",
    "receive.procReceiveRefs", "remote.origin.receivepack", "remote.origin.uploadpack", "remote.origin.vcs",
    "sendemail.smtpServer", "sendemail.toCmd", "sequence.editor", "submodule.t.update", "tar.t.command",
    "trailer.t.cmd", "trailer.t.command", "uploadpack.packObjectsHook",
)  # fmt: skip
"""What never has a say in what relay asks of git, wherever it stands."""
FILTERS = ("filter.t.clean", "filter.t.smudge", "filter.u.process")
MERGES = ("merge.t.driver",)
"""These two decide what a file's contents are: where git itself would ask them, results depend on them."""
SETTINGS = {
    "commit.gpgSign": "true", "core.preloadIndex": "true", "extensions.partialClone": "origin",
    "filter.t.required": "true", "gpg.format": "ssh", "hook.t.event": "post-checkout",
    "log.showSignature": "true",
    "merge.conflictStyle": "diff3", "pull.rebase": "true", "remote.origin.promisor": "true",
    "remote.origin.url": "ext::sh -c 'touch sprung-by-ext'", "status.submoduleSummary": "true",
    "protocol.allow": "always", "protocol.ext.allow": "always", "submodule.recurse": "true",
    "user.signingKey": "x",
}  # fmt: skip
"""What makes git use some of them."""
HOOKS = (
    "fsmonitor-watchman", "post-checkout", "post-commit", "post-index-change", "post-merge", "post-rewrite",
    "pre-auto-gc", "pre-commit", "pre-merge-commit", "prepare-commit-msg", "reference-transaction",
)  # fmt: skip
ATTRIBUTES = "*.txt filter=t diff=t merge=t\n*.dat filter=u diff=t merge=t\n"
VARIABLES = (
    "GIT_ASKPASS", "GIT_EDITOR", "GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_PROXY_COMMAND", "GIT_SEQUENCE_EDITOR",
    "GIT_SSH", "GIT_SSH_COMMAND", "SSH_ASKPASS", "PAGER", "EDITOR", "VISUAL",
)  # fmt: skip
"""What a user's environment may name; relay asks nothing of git that needs one."""


class Traps:
    """Programs below `folder`, one for each name, that tell in a file when they are run."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._told = folder, folder / "sprung"
        folder.mkdir()

    def build(self, name: str) -> str:
        """The path of the program of that name; it passes on what it is given."""
        path = self.folder / name.replace("/", "+")
        path.write_text(f"#!/bin/sh\necho '{name}' >> '{self._told}'\nexec cat\n")
        path.chmod(0o755)
        return str(path)

    def list_sprung(self) -> set[str]:
        """The names of those that were run."""
        return set(self._told.read_text().split()) if self._told.exists() else set()

    def forget(self) -> None:
        """None was run so far."""
        self._told.unlink(missing_ok=True)

    def plant(self, config: Path, git: Git, *, but: tuple[str, ...] = ()) -> None:
        """Every key of these is in that file of settings, but for those left out."""
        for key in (*KEYS, *FILTERS, *MERGES):
            if key not in but:
                git(config.parent, "config", "--file", config, key, self.build(key))
        for key, value in SETTINGS.items():
            git(config.parent, "config", "--file", config, key, value)

    def plant_hooks(self, folder: Path) -> None:
        """Every hook that what we do could run is in that folder."""
        folder.mkdir(parents=True, exist_ok=True)
        for hook in HOOKS:
            (folder / hook).unlink(missing_ok=True)
            (folder / hook).symlink_to(self.build(f"hook-{hook}"))


def touch_all(root: Path) -> None:
    """Git must look into every file to know whether it has changed, which is when it asks filters."""
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name != ".git"]
        for name in names:
            if name != ".git":
                os.utime(os.path.join(folder, name), (1, 1))
