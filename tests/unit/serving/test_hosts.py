import pytest

from isvc.serving.config.sections import IngressConfig
from isvc.serving.hosts import additional_hosts, domain_name, is_cluster_local, url_path, without_port
from isvc.serving.refused import Refused

SERVICE = {"metadata": {"name": "iris", "namespace": "ns", "labels": {"tenant": "blue"}}}


def ingress(**settings):
    return IngressConfig(ingress_gateway="a/b", **settings).complete()


def test_hosts_follow_the_domain_template():
    assert domain_name("iris-predictor", SERVICE, ingress()) == "iris-predictor-ns.example.com"
    template = '{{ .Name }}{{ with index .Labels "tenant" }}.{{ . }}{{ end }}.{{ .IngressDomain }}'
    assert domain_name("iris", SERVICE, ingress(domain_template=template)) == "iris.blue.example.com"


@pytest.mark.parametrize(
    "template", ["{{ .Name }}", "{{ .Name }}_x.{{ .IngressDomain }}", "{{ .Labels.absent }}.a.b", "{{"]
)
def test_what_is_no_domain_is_refused(template):
    with pytest.raises(Refused):
        domain_name("iris", SERVICE, ingress(domain_template=template))


def test_a_long_label_is_refused():
    with pytest.raises(Refused, match="63"):
        domain_name("x" * 64, SERVICE, ingress())


def test_a_port_stays_in_urls_and_leaves_hosts():
    host = domain_name("iris", SERVICE, ingress(ingress_domain="localhost:8080"))
    assert host == "iris-ns.localhost:8080"
    assert without_port(host) == "iris-ns.localhost"


def test_additional_hosts_are_valid_and_different():
    settings = ingress(additional_ingress_domains=("b.net", "example.com", "b.net", "bad_domain", "c.org"))
    assert additional_hosts("iris-ns.example.com", settings) == ["iris-ns.b.net", "iris-ns.c.org"]
    assert additional_hosts("elsewhere.io", settings) == []


@pytest.mark.parametrize(
    ("template", "expected"), [("", ""), ("/serving/{{ .Namespace }}/{{ .Name }}", "/serving/ns/iris")]
)
def test_paths(template, expected):
    assert url_path("iris", "ns", ingress(path_template=template, ingress_domain="a.b")) == expected


@pytest.mark.parametrize("template", ["http://x/{{ .Name }}", "http://[::1", "{{ .Name }}", "{{ .Nope }}"])
def test_what_is_no_path_is_refused(template):
    with pytest.raises(Refused):
        url_path("iris", "ns", ingress(path_template=template, ingress_domain="a.b"))


def test_visibility():
    local = {"metadata": {**SERVICE["metadata"], "labels": {"networking.kserve.io/visibility": "cluster-local"}}}
    assert is_cluster_local(local, ingress())
    assert not is_cluster_local(SERVICE, ingress())
    assert is_cluster_local(SERVICE, ingress(ingress_domain="svc.cluster.local"))
