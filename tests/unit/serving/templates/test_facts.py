"""What Go's text/template makes of templates over an LLMInferenceService: recorded with Go itself."""

from __future__ import annotations

import pytest

from isvc.serving.llm.functions import FUNCTIONS
from isvc.serving.llm.presets import Settings, template_values
from isvc.serving.llm.sample import sample_service
from isvc.serving.templates import TemplateError, fill

SETTINGS = Settings("kserve", "gw", "gwns", True, "X-Model")
FILLED = [
    (
        "{{ .Name }}/{{ .ObjectMeta.Name }}/{{ .LLMInferenceService.Name }}/{{ .GetName }}",
        "sample/sample/sample/sample",
    ),
    ("{{ .Spec.Model.Name }} {{ .Spec.Model.URI }} {{ .Spec.Model.URI.String }}", "llama llama llama"),
    ("{{ .Spec.Replicas }} {{ .Spec.WorkloadSpec.Replicas }} {{ .Spec.Parallelism.Pipeline }}", "2 2 <nil>"),
    ("{{ or .Spec.Parallelism.Pipeline 1 }} {{ or .Spec.Parallelism.DataLocal 1 }}", "1 2"),
    ("{{ if and .Spec.Parallelism .Spec.Parallelism.Tensor }}{{ .Spec.Parallelism.Tensor }}{{ end }}", "1"),
    ("{{ if .Spec.Tracing }}on{{ else if .Spec.Prefill }}prefill{{ end }}", "prefill"),
    ("{{ if and .Spec.Tracing .Spec.Tracing.Sampler }}on{{ else }}off{{ end }}", "off"),
    ("{{ index .Labels `team` }}|{{ index .Labels `app.kubernetes.io/name` }}", "|llminferenceservice"),
    ("{{ (index .Spec.Template.Containers 0).Image }}", "example.com/server:v1"),
    ("{{ with index .Spec.Template.Containers 0 }}{{ .Name }} of {{ $.Name }}{{ end }}", "kserve-container of sample"),
    (
        "{{ range (index .Spec.Router.Scheduler.Template.Containers 0).Ports }}{{ .ContainerPort }} {{ end }}",
        "9002 9003 5557 ",
    ),
    (
        "{{ range $key, $value := .Spec.Template.NodeSelector }}{{ $key }}={{ $value }}{{ end }}",
        "node.kubernetes.io/instance-type=gpu",
    ),
    ("{{ range $i, $c := .Spec.Worker.Tolerations }}{{ $i }}{{ else }}none{{ end }}", "none"),
    ("{{ range 3 }}{{ if eq . 1 }}{{ continue }}{{ end }}{{ . }}{{ end }}", "02"),
    (
        "{{ eq .Namespace `sample-namespace` }} {{ ne 1 2 }} {{ lt 1 2 }} {{ ge 1.5 1.5 }} {{ le `a` `b` }}",
        "true true true true true",
    ),
    (
        "{{ eq .Spec.Tracing nil }} {{ eq .Spec.Worker .Spec.Worker }} {{ eq .Spec.Replicas .Spec.Prefill.Replicas }}",
        "true true false",
    ),
    ("{{ len .Labels }} {{ len .Name }} {{ len `é` }} {{ len .Spec.Template.Containers }}", "3 6 2 1"),
    ("{{ slice .Name 1 3 }} {{ index .Name 0 }}", "am 115"),
    ("{{ not .Spec.Tracing }} {{ not .Name }}", "true false"),
    (
        "{{ printf `%s-%v-%d-%q-%05d-%.2f-%t` .Name .Spec.Parallelism.Expert 7 .Namespace 42 1.5 true }}",
        'sample-true-7-"sample-namespace"-00042-1.50-true',
    ),
    (
        "{{ printf `%d` .Name }} {{ printf `%s` }} {{ printf `x` 1 }} {{ printf `%5s|%-5s|` `a` `b` }}",
        "%!d(string=sample) %!s(MISSING) x%!(EXTRA int=1)     a|b    |",
    ),
    ("{{ print 1 2 `a` `b` 3 }} {{ println 1 `a` }}", "1 2ab3 1 a\n"),
    ("{{ .Name | printf `%s-%s` .Namespace | len }}", "23"),
    ("{{ html `<a&b>` }} {{ js `it's` }} {{ urlquery `a b/c` }}", "&lt;a&amp;b&gt; it\\'s a+b%2Fc"),
    ("{{ $x := 1 }}{{ if true }}{{ $x = 2 }}{{ $y := 3 }}{{ $y }}{{ end }}{{ $x }}", "32"),
    ("{{ define `greet` }}hello {{ . }}{{ end }}{{ template `greet` .Name }}", "hello sample"),
    ("{{ block `b` .Spec.Model }}{{ .Name }}{{ end }}", "llama"),
    (
        "{{ 0x1F }} {{ 017 }} {{ 1_000 }} {{ 'a' }} {{ 1e3 }} {{ 1.0 }} {{ .5 }} {{ 1e21 }} {{ +3 }} {{ 0b11 }}",
        "31 15 1000 97 1000 1 0.5 1e+21 3 3",
    ),
    ("{{ .Annotations }} {{ .Finalizers }} {{ .Generation }}", "map[serving.kserve.io/model-uri:llama] [] 0"),
    (
        "{{ .GlobalConfig.EnableTLS }} {{ .GlobalConfig.InferencePoolNamespacedName }}",
        "true sample-namespace/sample-inference-pool",
    ),
    ("{{ ChildName .Name `-suffix` }}", "sample-suffix"),
    ("{{ ChildName .Spec.Model.Name `-x` }}", "llama-x"),
    (
        "{{ .Spec.Parallelism.GetSize }} {{ .Spec.Prefill.Parallelism.IsDataParallel }} {{ .Spec.Router.HasGroup }}",
        "2 false false",
    ),
    ("{{ .Spec.Router.Gateway.HasRefs }} {{ .Spec.Router.Route.HTTP.HasSpec }}", "true false"),
    ("{{ with (index .Spec.Template.Containers 0).Resources.Limits }}{{ len . }}{{ end }}", "2"),
    ("{{- .Name -}} ", "sample"),
    ("a {{- 1 -}} b {{- /* comment */ -}} c {{/* comment */}} d", "a1bc  d"),
    ("{{ .CreationTimestamp }}", "0001-01-01 00:00:00 +0000 UTC"),
    ("{{ .Name | }}", "sample"),
]
REFUSED = [
    "{{ .Spec.Tracing.Sampler }}",
    "{{ .Spec.Tracing.Nope }}",
    "{{ .Nope }}",
    "{{ .Spec.model }}",
    "{{ .name }}",
    "{{ .Labels.team }}",
    "{{ index .Spec.Template.Containers 7 }}",
    "{{ range .Name }}{{ end }}",
    "{{ eq .Spec.Model.Name `llama` }}",
    "{{ eq .Spec.Replicas 2 }}",
    "{{ eq .Spec.Template.NodeSelector .Spec.Template.NodeSelector }}",
    "{{ lt .Name 1 }}",
    "{{ len .Spec.Replicas }}",
    "{{ if true }}{{ $y := 3 }}{{ end }}{{ $y }}",
    "{{ $x = 1 }}",
    "{{ $x := $x }}",
    "{{ template `none` }}",
    "{{ break }}",
    "{{ 089 }}",
    "{{ 9223372036854775808 }}",
    "{{ true }} {{ nil }}",
    "{{ ChildName .Spec.Template.RestartPolicy `-x` }}",
    "{{ ChildName .Name }}",
    "{{ shutdownTimeout .Spec.Template .Spec.Replicas }}",
    "{{ (index .Spec.Template.Containers 0).Resources.Limits.cpu }}",
    "{{ .Name 1 }}",
    "{{ 1 2 }}",
    "{{ 1 | 2 }}",
    "{{ .Name | .Namespace }}",
    "{{ upper .Name }}",
    "{{ call .Name }}",
    "{{ .Name",
    "{{ if .Name }}",
    "{{ end }}",
    "{{ if }}{{ end }}",
    "{{ if .Name }}a{{ else }}b{{ else }}c{{ end }}",
    "{{ (.Name }}",
    "{{ .Name) }}",
    "{{ .Name.}}",
    "{{ $ | len }}",
]


def filled(template: str) -> str:
    return fill(template, template_values({}, sample_service(), SETTINGS), FUNCTIONS)


@pytest.mark.parametrize(("template", "expected"), FILLED)
def test_filled_as_in_go(template: str, expected: str):
    assert filled(template) == expected


@pytest.mark.parametrize("template", REFUSED)
def test_refused_as_in_go(template: str):
    with pytest.raises(TemplateError) as raised:
        filled(template)
    assert raised.value.at is not None


@pytest.mark.parametrize(
    "template",
    [
        "{{ range 1000000000 }}x{{ end }}",
        "{{ range 100000 }}{{ range 100000 }}{{ end }}{{ end }}",
        "{{ define `a` }}{{ template `a` }}{{ end }}{{ template `a` }}",
        "{{ range 9000 }}{{ printf `%9999s` `x` }}{{ end }}",
        "{{ $x := `a` }}{{ range 99 }}{{ $x = print $x $x }}{{ end }}",
        "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
        "{{ if true }}" * 5000 + "{{ end }}" * 5000,
        "{{ $x := `a` }}{{ range 20 }}{{ $x = print $x $x }}{{ end }}{{ range 9000 }}{{ $y := html $x }}{{ end }}",
        "{{ range 40000 }}{{ $x := print " + "1 " * 9000 + "}}{{ end }}",
        "{{ range 40000 }}{{ $x := 1 " + "| print " * 6000 + "}}{{ end }}",
        "{{ $x := 1 }}" + "{{ $y := 1 }}" * 2000 + "{{ range 9000 }}{{ $y = $x }}{{ end }}",
        "{{ . }}" * 100_000,
    ],
)
def test_nobody_can_keep_us_busy(template: str):
    with pytest.raises(TemplateError):
        filled(template)


@pytest.mark.parametrize(
    ("template", "hint"),
    [
        ("{{ .Spec.Model.Nme }}", "did you mean Name?"),
        ("{{ .Labels.team }}", "use index"),
        ("{{ .Spec.Tracing.Sampler }}", "ask with if"),
        ("{{ if .Name }}", "{{if}} has no {{end}}"),
    ],
)
def test_faults_say_what_would_be_right(template: str, hint: str):
    with pytest.raises(TemplateError) as raised:
        filled(template)
    assert hint in str(raised.value)
