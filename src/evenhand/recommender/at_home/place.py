"""Where a person's diary lives: in one place per account, whatever the folder they happen to be in."""

from __future__ import annotations

import os
from pathlib import Path

from evenhand.guarantee import DataError, UsageError


def home_diary() -> Path:
    """The diary of whoever runs this: in the folder that the operating system keeps for a person's data.

    Its folder is made if it is missing, readable by its owner only.
    """
    try:
        from platformdirs import user_data_path
    except ImportError:
        raise UsageError(
            "platformdirs, which knows where your diary lives, is not installed: pip install 'evenhand[recommender]', "
            "or name a diary file yourself."
        ) from None
    folder = user_data_path("evenhand", appauthor=False)
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    for place in reversed(missing):
        try:
            place.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise DataError(
                f"The folder {place} for your diary can't be made: {error.strerror}. Name a diary file elsewhere."
            ) from None
        sync_folder(place.parent)
    return folder / "diary.db"


def sync_folder(folder: Path) -> None:
    """Have the folder's list of files on disk before going on, so that a power cut forgets none of them."""
    if os.name == "nt":  # Windows neither needs nor allows it
        return
    try:
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        raise DataError(
            f"The folder {folder} can't be synced to disk ({error.strerror}), so that a diary in it might be lost in a "
            "power cut. Name a diary file elsewhere."
        ) from None
