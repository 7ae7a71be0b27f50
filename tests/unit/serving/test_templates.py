import pytest

from isvc.serving.templates import Fields, TemplateError, render

VALUES = Fields(Name="iris", Namespace="ns", Labels={"tenant": "blue", "n": "1"}, Flag=True, List=["a", "b"])


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{ .Name }}-{{.Namespace}}.example.com", "iris-ns.example.com"),
        ("{{.Labels.tenant}}", "blue"),
        ("{{.Labels.absent}}", "<no value>"),
        ('{{ index .Labels "absent" }}|', "|"),
        ("{{ index .Labels `tenant` }}", "blue"),
        ('{{ with index .Labels "tenant" }}.{{ . }}{{ end }}', ".blue"),
        ('{{ with index .Labels "absent" }}.{{ . }}{{ else }}none{{ end }}', "none"),
        ('{{ if eq .Name "iris" }}yes{{ else }}no{{ end }}', "yes"),
        ('{{ if eq .Name "x" }}a{{ else if eq .Namespace "ns" }}b{{ else }}c{{ end }}', "b"),
        ("{{ range .List }}<{{ . }}>{{ end }}", "<a><b>"),
        ("{{ range .List }}{{ $.Name }}{{ end }}", "irisiris"),
        ('{{ printf "%s-%v" .Name .Flag }}', "iris-true"),
        ("{{ .Name | print }}", "iris"),
        ("{{ not .Flag }}", "false"),
        ("a {{- .Name -}} b", "airisb"),
        ("{{/* a comment */}}x", "x"),
        ("no action", "no action"),
    ],
)
def test_what_configuration_uses(template, expected):
    assert render(template, VALUES) == expected


@pytest.mark.parametrize(
    "template",
    [
        "{{.Name",
        "{{ .Unknown }}",
        "{{ .Name.x }}",
        "{{ nothing .Name }}",
        "{{ if .Name }}x",
        "{{ end }}",
        "{{ else }}",
        "{{ }}",
        '{{ index .Labels \\"x\\" }}',
        "{{ $x }}",
        "{{ .Name | .Name }}",
        "{{ (index .Labels }}",
    ],
)
def test_anything_else_is_refused_by_name(template):
    with pytest.raises(TemplateError):
        render(template, VALUES)


def test_html_escapes_values_and_blanks_what_is_missing():
    values = Fields(Name="a\"b<c>&'+", Labels={})
    assert render("{{.Name}}{{.Labels.x}}", values, missing="", escape=True) == "a&#34;b&lt;c&gt;&amp;&#39;&#43;"
