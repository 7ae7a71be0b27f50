// Laid over KServe's package of the same name by `run`: a program in the place of the manager that a suite builds.

package testing

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// runProgram runs the command that MANAGER has until the context ends, on the API server of the suite.
func runProgram(ctx context.Context, environment *envtest.Environment) error {
	webhooks := &environment.WebhookInstallOptions
	user, err := environment.AddUser(envtest.User{Name: "manager", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		return err
	}
	config, err := user.KubeConfig()
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(webhooks.LocalServingCertDir, "kubeconfig")
	if err := os.WriteFile(kubeconfig, config, 0o600); err != nil {
		return err
	}
	log, err := os.Create(os.Getenv("MANAGER_LOG"))
	if err != nil {
		return err
	}
	defer log.Close()
	words := strings.Fields(os.Getenv("MANAGER"))
	port, folder := strconv.Itoa(webhooks.LocalServingPort), webhooks.LocalServingCertDir
	program := exec.CommandContext(ctx, words[0], append(words[1:], "--webhook-port", port, "--webhook-cert-dir", folder)...)
	program.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	program.Stdout, program.Stderr = log, log
	program.Cancel = func() error { return program.Process.Signal(syscall.SIGTERM) }
	if err := program.Run(); ctx.Err() == nil {
		return err
	}
	return nil
}
