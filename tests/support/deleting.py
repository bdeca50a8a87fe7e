"""Delete a folder in which somebody still writes."""

import os
import shutil


def delete_folder(path: str) -> None:
    """Delete it with all it holds; whoever makes it anew meanwhile does not get in the way.

    `rmtree` alone fails with ENOTEMPTY where a daemon writes into the folder it is about to remove.
    """
    gone = f"{path.rstrip('/')}.gone"
    os.rename(path, gone)
    while os.path.lexists(gone):
        shutil.rmtree(gone, ignore_errors=True)
