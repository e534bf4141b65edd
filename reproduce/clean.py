"""Removes what the project has written: build/, and results/ only when asked."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from pathlib import Path

from reproduce.lock import is_held, lock


def clean(root: Path, *, results: bool) -> list[str]:
    """Removes ``build`` of the project in ``root`` (and ``results``, if so told); says what it removed.

    Raises LockedError while a run uses either of them, and ValueError for a folder that is a link: what it points to
    is not the project's to delete.
    """
    folders = [root / name for name in (("build", "results") if results else ("build",))]
    linked = [folder for folder in folders if folder.is_symlink()]
    if linked:
        raise ValueError(f"{linked[0]} is a link: nothing was removed; remove what it points to yourself")
    with ExitStack() as held:
        # Both, whatever is removed: a step that runs writes to build/, and is known by its lock in results/.
        for path in _locks(root):
            if is_held(path):
                held.enter_context(lock(path, f"{path.parent.relative_to(root)}/"))  # raises, and names the process
        removed = []
        for folder in folders:
            if folder.is_dir():
                size = sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())
                shutil.rmtree(folder)
                removed.append(f"removed {folder.name}/ ({size / 1e6:.0f} MB)")
    return removed or ["nothing to remove"]


def _locks(root: Path) -> list[Path]:
    return [*(root / "results").glob(".lock-*"), *(root / "build").rglob(".lock-*"), *(root / "build").rglob("*.lock")]
