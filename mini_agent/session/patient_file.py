"""A file that only grows, and that waits out a full disk.

Bytes that cannot be written now are kept and written, in order, with the next ones that can; so what stands in the
file is at any time a beginning of what was appended. It is opened for each write: nothing has to be closed.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

# A link in the place of the file is not followed, and a named pipe does not hold us up. (Windows has neither.)
SAFE_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
OWNER_ONLY = 0o600


class PatientFile:
    """Append to one file; `failure` says why the last bytes are not in it, and is None when they are."""

    def __init__(self, path: Path, size_bytes: int | None = None) -> None:
        """Take the path; nothing is written yet.

        size_bytes: what the file holds now, where nobody else may write to it and it must be there: then a file of
        another size is left alone. None: it is made where it is missing, and others may append to it too.
        """
        self.failure: str | None = None
        self._path = path
        self._size_bytes = size_bytes
        self._pending = bytearray()

    def append(self, data: bytes) -> None:
        """Write what is pending and then `data`, or keep both; raise nothing for a disk that fails."""
        self._pending += data
        try:
            self._write_pending()
            self.failure = None
        except OSError as error:
            self.failure = error.strerror or str(error)

    def _write_pending(self) -> None:
        create = os.O_CREAT if self._size_bytes is None else 0
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | create | SAFE_FLAGS, OWNER_ONLY)
        try:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, "not a regular file")
            if self._size_bytes is not None and self._size_bytes != status.st_size:
                raise OSError(errno.EBUSY, "another program has changed it")
            while self._pending:
                written = os.write(file, self._pending)
                del self._pending[:written]
                if self._size_bytes is not None:
                    self._size_bytes += written
        finally:
            os.close(file)
