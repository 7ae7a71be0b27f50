"""The Helm charts as parts of a chart of somebody else's."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

from tests.packaging.test_chart import CHARTS, helm, objects, settings


def test_the_charts_can_be_parts_of_another_which_switches_them_on_and_off(tmp_path: Path):
    """As platforms have it: a chart of theirs, and conditions on `isvc.enabled`, which the charts get to see."""
    parts = ("isvc", "isvc-crds")
    depends = [{"name": name, "version": ">=0-0", "condition": f"{name}.enabled"} for name in parts]
    chart_of_all = {"apiVersion": "v2", "name": "platform", "version": "0.1.0", "dependencies": depends}
    (tmp_path / "Chart.yaml").write_text(json.dumps(chart_of_all))
    (tmp_path / "charts").mkdir()
    for name in parts:
        (tmp_path / "charts" / name).symlink_to(CHARTS / name)
    alone = [objects(helm("template", "isvc", CHARTS / name, "-n", "serving")) for name in parts]
    for on in itertools.product((True, False), repeat=2):
        chosen = settings([f"{name}.enabled={json.dumps(is_on)}" for name, is_on in zip(parts, on, strict=True)])
        together = objects(helm("template", "isvc", tmp_path, "-n", "serving", *chosen))
        assert together == {
            key: each for made, is_on in zip(alone, on, strict=True) if is_on for key, each in made.items()
        }
