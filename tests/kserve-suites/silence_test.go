// Laid beside KServe's tests of InferenceServices by `run`: where KServe says nothing, isvc may.

package inferenceservice

import (
	"reflect"

	"github.com/google/go-cmp/cmp"
)

// whereBothSpeak ignores reasons, messages and observed generations of a status where one side has none.
var whereBothSpeak = cmp.FilterPath(
	func(path cmp.Path) bool {
		switch path.Last().String() {
		case ".Reason", ".Message", ".ObservedGeneration":
			return true
		}
		return false
	},
	cmp.FilterValues(
		func(one, other interface{}) bool {
			return reflect.ValueOf(one).IsZero() || reflect.ValueOf(other).IsZero()
		},
		cmp.Ignore(),
	),
)
