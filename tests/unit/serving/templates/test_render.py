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
        ("{{ range $i, $each := .List }}{{ $i }}{{ $each }}{{ end }}", "0a1b"),
        ("{{ range $each := .List }}{{ $each }}{{ . }}{{ end }}", "aabb"),
        ("{{ with $x := .Name }}{{ $x }}{{ . }}{{ end }}", "irisiris"),
        ("{{ $x := .Name }}{{ if .Flag }}{{ $x }}{{ end }}", "iris"),
        ("{{ if gt (len .List) 1 }}many{{ end }}", "many"),
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
        "{{ if .Flag }}{{ $x := 1 }}{{ end }}{{ $x }}",
        "{{ $x, $y := .List }}",
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
    assert render("{{.Name | html}}", Fields(Name="<"), escape=True) == "&lt;"


def test_maps_are_walked_in_the_order_of_their_keys():
    values = Fields(Labels={"b": "2", "a": "1"})
    assert render("{{ range $k, $v := .Labels }}{{ $k }}={{ $v }};{{ end }}", values) == "a=1;b=2;"
