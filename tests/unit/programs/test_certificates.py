"""A certificate in a place that anybody can write to is used only if it is ours."""

import os
import stat

import pytest

from isvc.programs.certificates import MOUNTED, PrivateFolder, mounted_certificate


@pytest.fixture
def served(tmp_path):
    folder = tmp_path / MOUNTED
    folder.mkdir(parents=True)
    (folder / "tls.crt").touch()
    return folder


def test_the_mounted_certificate_is_used(served, tmp_path):
    assert mounted_certificate(tmp_path, trusted={os.getuid()}) == served
    assert mounted_certificate(tmp_path / "elsewhere", trusted={os.getuid()}) is None


def test_a_certificate_that_another_user_put_there_is_not(served, tmp_path, caplog):
    assert mounted_certificate(tmp_path, trusted={os.getuid() + 1}) is None
    assert "belongs to another user" in caplog.text


async def test_our_own_is_kept_in_a_folder_that_nobody_else_can_enter():
    folder, other = PrivateFolder(), PrivateFolder()
    assert folder.path != other.path
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    for each in (folder, other):
        await each.stop()
        assert not each.path.exists()
