"""Reference of the runtimes that the chart installs."""

from __future__ import annotations

from tools.site.markdown import code, table

from isvc.kube.objects import name_of
from isvc.serving.shipped import shipped_runtimes


def runtimes() -> str:
    rows = []
    for runtime in shipped_runtimes():
        if runtime["kind"] == "ClusterServingRuntime":
            spec = runtime["spec"]
            formats = [f"{each['name']} {each['version']}" for each in spec["supportedModelFormats"]]
            protocols = map(code, spec.get("protocolVersions", ()))
            rows.append((code(name_of(runtime)), ", ".join(formats), ", ".join(protocols)))
    return table(("runtime", "model formats", "protocols"), rows)
