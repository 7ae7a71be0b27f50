from __future__ import annotations

from pathlib import Path

from isvc.wire.private_files import write_private


def test_a_file_that_is_right_takes_no_room(tmp_path: Path):
    file = tmp_path / "kubeconfig"
    write_private(file, b"one")
    first = file.stat()
    write_private(file, b"one")
    assert file.stat().st_ino == first.st_ino
    write_private(file, b"two")
    assert (file.read_bytes(), file.stat().st_mode) == (b"two", first.st_mode)


def test_what_others_can_read_or_have_put_there_is_replaced(tmp_path: Path):
    file, other = tmp_path / "key", tmp_path / "other"
    file.write_bytes(b"secret")
    file.chmod(0o644)
    write_private(file, b"secret")
    assert file.stat().st_mode & 0o777 == 0o600
    write_private(other, b"secret")
    link = tmp_path / "link"
    link.symlink_to(other)
    write_private(link, b"secret")
    assert not link.is_symlink()
