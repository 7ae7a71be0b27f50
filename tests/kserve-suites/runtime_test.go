// Laid beside KServe's tests of InferenceServices by `run`: a runtime for those that expect a container of a framework
// field alone.

package inferenceservice

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
)

var _ = ginkgo.BeforeEach(func() {
	named := strings.Split(os.Getenv("WITH_RUNTIME"), "\n")
	if !slices.Contains(named, ginkgo.CurrentSpecReport().FullText()) {
		return
	}
	runtime := getServingRuntime("tf-serving", "default")
	gomega.Expect(k8sClient.Create(context.Background(), &runtime)).To(gomega.Succeed())
	ginkgo.DeferCleanup(func() {
		gomega.Expect(k8sClient.Delete(context.Background(), &runtime)).To(gomega.Succeed())
	})
})
