"""Every field of a merged value names the strongest layer that says it."""

from __future__ import annotations

from isvc.insight.rendering.sources import Layer, fields


def test_maps_named_items_and_templates() -> None:
    merged = {
        "containers": [
            {
                "name": "server",
                "image": "mine",
                "args": ["--a=iris", "--mine"],
                "resources": {"cpu": "1", "memory": "2"},
            },
            {"name": "beside", "image": "other"},
        ],
        "restartPolicy": "Always",
        "tolerations": [],
    }
    service = {"containers": [{"name": "server", "image": "mine", "args": ["--mine"], "resources": {"cpu": "1"}}]}
    runtime = {
        "containers": [
            {"name": "beside", "image": "other"},
            {"name": "server", "image": "theirs", "args": ["--a={{.Name}}"], "resources": {"cpu": "3", "memory": "2"}},
        ]
    }
    found = {
        field.path: field.source for field in fields(merged, [Layer("s", service), Layer("r", runtime)], "default")
    }
    assert found == {
        "containers[server].name": "s",
        "containers[server].image": "s",
        "containers[server].args[0]": "r",
        "containers[server].args[1]": "s",
        "containers[server].resources.cpu": "s",
        "containers[server].resources.memory": "r",
        "containers[beside].name": "r",
        "containers[beside].image": "r",
        "restartPolicy": "default",
        "tolerations": "default",
    }
