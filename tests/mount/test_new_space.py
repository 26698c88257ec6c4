"""How much programs may write into new/."""
import contextlib
import errno
import os
import time

import pytest

from weftlib import Mount, Store, overlay_over, random_bytes

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
MIB = 1 << 20


@pytest.fixture(name="new", params=["passed through", "served"])
def a_small_area(tmp_path, request):
    with contextlib.ExitStack() as stack:
        served = request.param == "served"
        area = stack.enter_context(overlay_over(tmp_path / "lower", tmp_path)) if served else tmp_path
        mount = stack.enter_context(Mount(Store(area / "store"), tmp_path / "mnt", "publish,drafts_max=8M"))
        (mount / "new/m").mkdir()
        yield mount / "new"


def test_an_announced_size_is_refused(new):
    with open(new / "m/x", "wb") as file:
        for announce in (lambda: file.truncate(9 * MIB), lambda: os.posix_fallocate(file.fileno(), 0, 9 * MIB)):
            with pytest.raises(OSError) as failed:
                announce()
            assert failed.value.errno == errno.EDQUOT
        assert os.fstat(file.fileno()).st_size == 0
        file.truncate(8 * MIB)
    with pytest.raises(OSError) as failed:
        open(new / "m/y", "wb").close()
    assert failed.value.errno == errno.EDQUOT
    os.truncate(new / "m/x", MIB)
    (new / "m/y").write_bytes(random_bytes(MIB, 1))


def test_what_is_written_counts_within_a_second(new):
    with open(new / "m/x", "wb") as file:
        try:
            for _ in range(16):
                file.write(random_bytes(MIB, 1))
                file.flush()
        except OSError as error:  # writes that the server carries out
            assert error.errno == errno.EDQUOT
            assert os.fstat(file.fileno()).st_size <= 8 * MIB
            file.truncate(8 * MIB)
    time.sleep(1.1)
    for make in (lambda: open(new / "m/y", "wb"), lambda: open(new / "m/x", "r+b")):
        with pytest.raises(OSError) as failed:
            make()
        assert failed.value.errno == errno.EDQUOT
    assert (new / "m/x").read_bytes()[:MIB] == random_bytes(MIB, 1)
    os.unlink(new / "m/x")
    (new / "m/y").write_bytes(b"y")


def test_what_is_published_counts_no_more(new):
    for _ in range(4):
        (new / "m").mkdir(exist_ok=True)
        with open(new / "m/x", "wb") as file:
            file.truncate(6 * MIB)
            file.write(os.urandom(6 * MIB))
        os.rename(new / "m", new / "m@")
