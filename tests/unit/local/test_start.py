"""What `isvc up` does before it is ready is what has to be done before it is ready."""

import subprocess
import sys


def test_what_only_later_requests_need_is_not_imported_at_the_start():
    code = "import isvc.cli.up, isvc.local.stack, isvc.local.parts, isvc.dashboard.entrance, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = set(done.stdout.split())
    assert "isvc.local.gateway.gateway" in imported
    assert not imported & {"aiohttp", "jinja2", "isvc.dashboard.server", "isvc.insight.simulation", "isvc.apiserver"}
