package main

import (
	"os"
	"strconv"
	"time"
)

// most is how long a test waits for what must come, whatever the machine: as tests/patience has it.
func most() time.Duration {
	factor, err := strconv.Atoi(os.Getenv("EVERLOG_PATIENCE"))
	if err != nil {
		factor = 1
	}
	return 120 * time.Second * time.Duration(factor)
}
