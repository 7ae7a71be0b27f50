"""`isvc up` on a machine whose clock is set: a day ahead, as after a sleep that nobody counted, back again, and behind.

A library in front of libc's adds so many seconds to the time of day of all processes of `isvc up` but Envoy; what only
grows is left alone.
"""

from __future__ import annotations

import json
import struct
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.up.machine import Machine, machine, running, service, until
from tests.up.test_pods import pod

from isvc.kube.timestamps import parse_timestamp

DAY = 86_400
ROWS = json.dumps({"instances": [[5.1, 3.5, 1.4, 0.2]]})
LIBRARY = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static volatile long long *ahead;
__attribute__((constructor)) static void begin(void) {
    int file = open(getenv("CLOCK_AHEAD"), O_RDONLY | O_CLOEXEC);
    ahead = mmap(0, sizeof *ahead, PROT_READ, MAP_SHARED, file, 0);
    close(file);
}
int clock_gettime(clockid_t id, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, id, now);
    if (!failed && ahead != MAP_FAILED && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) now->tv_sec += *ahead;
    return failed;
}
int gettimeofday(struct timeval *now, void *zone) {
    struct timespec found;
    if (clock_gettime(CLOCK_REALTIME, &found)) return -1;
    *now = (struct timeval){found.tv_sec, found.tv_nsec / 1000};
    return 0;
}
time_t time(time_t *now) {
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    return now ? (*now = found.tv_sec) : found.tv_sec;
}
"""
# A token that is not good is answered by 401, one that may not do this by 403.
ASKER = """
import os, ssl, time, urllib.error, urllib.request
account = '/var/run/secrets/kubernetes.io/serviceaccount/'
url = 'https://{KUBERNETES_SERVICE_HOST}:{KUBERNETES_SERVICE_PORT}/api/v1/nodes'.format(**os.environ)
tls = ssl._create_unverified_context()
while True:
    request = urllib.request.Request(url, headers={'Authorization': 'Bearer ' + open(account + 'token').read()})
    try:
        print(urllib.request.urlopen(request, context=tls).status, flush=True)
    except urllib.error.HTTPError as error:
        print(error.code, flush=True)
    time.sleep(0.5)
"""


class Clock:
    def __init__(self, file: Path) -> None:
        self.file = file
        self.set(0)

    def set(self, ahead: int) -> None:
        with self.file.open("r+b" if self.file.exists() else "wb") as file:
            file.write(struct.pack("q", ahead))
        self.ahead = ahead

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self.ahead)


@pytest.fixture(scope="module")
def clock(tmp_path_factory: pytest.TempPathFactory) -> Clock:
    return Clock(tmp_path_factory.mktemp("clock") / "ahead")


@pytest.fixture(scope="module")
def here(models: Path, clock: Clock, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    library = clock.file.with_name("clock.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-o", library, "-"], input=LIBRARY.encode(), check=True)
    found = machine(tmp_path_factory.mktemp("up"), models)
    found.env |= {"LD_PRELOAD": str(library), "CLOCK_AHEAD": str(clock.file)}
    with running(found) as here:
        yield here


def test_work_goes_on_whatever_the_clock_is_set_to(here: Machine, clock: Clock) -> None:
    here.apply(service("settled", "pvc://models/iris"))
    here.apply(pod("asker", ASKER))
    here.wait_ready("settled")
    until(lambda: "403" in here.kubectl("logs", "asker"), "a token that is good")
    for number, ahead in enumerate((DAY, 0, -DAY)):
        clock.set(ahead)
        assert here.predict("settled", ROWS) == {"predictions": [0]}
        here.kubectl("delete", "pod", "-l", "app=isvc.settled-predictor")
        here.apply(service(f"new-{number}", "pvc://models/iris"))
        here.wait_ready(f"new-{number}")
        here.wait_ready("settled")
        assert here.predict(f"new-{number}", ROWS) == here.predict("settled", ROWS) == {"predictions": [0]}
        created = parse_timestamp(here.get("isvc", f"new-{number}")["metadata"]["creationTimestamp"])
        assert abs(clock.now() - created) < timedelta(minutes=10), "isvc up follows another clock"
        until(lambda: here.kubectl("logs", "asker", "--tail=1").strip() == "403", "the pod's token is good again")
        until(lambda: all_leases_are_renewed(here, clock), "leases are renewed")


def all_leases_are_renewed(here: Machine, clock: Clock) -> bool:
    leases = json.loads(here.kubectl("get", "leases", "-n", "kserve", "-o", "json"))["items"]
    ages = [clock.now() - parse_timestamp(lease["spec"]["renewTime"]) for lease in leases]
    return len(ages) == 3 and all(abs(age) < timedelta(minutes=5) for age in ages)
