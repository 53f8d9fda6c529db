// Package patience says how long tests wait for what must come, whatever the machine: as tests/patience has it.
package patience

import (
	"os"
	"strconv"
	"time"
)

// Most is the longest wait.
func Most() time.Duration {
	factor, err := strconv.Atoi(os.Getenv("EVERLOG_PATIENCE"))
	if err != nil {
		factor = 1
	}
	return 120 * time.Second * time.Duration(factor)
}
