// Package gatewayapi runs the Gateway API's own conformance tests against the gateway of `isvc up`.
package gatewayapi

import (
	"bytes"
	"io/fs"
	"testing"

	"sigs.k8s.io/gateway-api/conformance"
)

const (
	environment = "        env:\n        - name: POD_NAME\n"
	// Pods share the network of the machine, which finds a port for each that they declare.
	withPorts = "        ports: [{containerPort: 3000}, {containerPort: 3001}, {containerPort: 8443}]\n" +
		"        env:\n" +
		"        - {name: HTTP_PORT, value: \"3000\"}\n" +
		"        - {name: H2C_PORT, value: \"3001\"}\n" +
		"        - {name: HTTPS_PORT, value: \"8443\"}\n" +
		"        - name: POD_NAME\n"
)

// manifests are those of the tests, without what routes of HTTP do not need: Gateways with TLS, servers of TCP and DNS.
type manifests struct{ fs.ReadFileFS }

func (m manifests) ReadFile(name string) ([]byte, error) {
	content, err := m.ReadFileFS.ReadFile(name)
	var kept [][]byte
	for _, document := range bytes.Split(content, []byte("\n---\n")) {
		if !isOther(document) {
			kept = append(kept, document)
		}
	}
	return bytes.ReplaceAll(bytes.Join(kept, []byte("\n---\n")), []byte(environment), []byte(withPorts)), err
}

func isOther(document []byte) bool {
	has := func(text string) bool { return bytes.Contains(document, []byte(text)) }
	return has("kind: Gateway\n") && has("protocol: HTTPS") || has("name: coredns") || has("name: tcp-backend")
}

func TestConformance(t *testing.T) {
	options := conformance.DefaultOptions(t)
	options.ManifestFS = []fs.FS{manifests{&conformance.Manifests}}
	conformance.RunConformanceWithOptions(t, options)
}
